package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/jobdir"
)

// against finds where the directory is not the one of a manifest. Who wrote either, and
// what was found then, does not count.
func (c *check) against(want, own *Manifest) {
	differs := func(what string, a, b any) {
		x, errA := json.Marshal(a)
		y, errB := json.Marshal(b)
		if errA != nil || errB != nil || string(x) != string(y) {
			c.find(Finding{Kind: Manifested, Message: fmt.Sprintf("has %s %s, the directory %s", what, x, y)})
		}
	}
	differs("the job", want.Job, own.Job)
	differs("the result line", want.ResultLine, own.ResultLine)
	differs("the tasks", want.Tasks, own.Tasks)
	differs("the agents", want.Agents, own.Agents)
	differs("the images", want.Images, own.Images)
	c.againstFiles("", want.Files, own.Files)
	have := map[string]*TrialEntry{}
	for i := range own.Trials {
		have[own.Trials[i].Trial] = &own.Trials[i]
	}
	for i := range want.Trials {
		t := &want.Trials[i]
		o := have[t.Trial]
		delete(have, t.Trial)
		if o == nil {
			c.find(Finding{Kind: Manifested, Trial: t.Trial, Message: "has this trial, the directory does not"})
			continue
		}
		c.againstFiles(t.Trial, t.Files, o.Files)
		c.againstTrees(t, o)
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		c.find(Finding{Kind: Manifested, Trial: name, Message: "does not have this trial, the directory does"})
	}
}

func (c *check) againstFiles(trial string, want, own map[string]jobdir.FileDigest) {
	for _, name := range names(want, own) {
		a, was := want[name]
		b, is := own[name]
		if was && is && a == b {
			continue
		}
		c.find(Finding{Kind: Manifested, Trial: trial, File: slashed(trial, name), Message: changeText(was, is)})
	}
}

func (c *check) againstTrees(want, own *TrialEntry) {
	for _, name := range names(want.Trees, own.Trees) {
		a, was := want.Trees[name]
		b, is := own.Trees[name]
		if a != b || was != is {
			c.find(Finding{Kind: Manifested, Trial: want.Trial, File: slashed(want.Trial, name), Message: changeText(was, is)})
		}
	}
}

func names[T any](a, b map[string]T) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]T{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func changeText(was, is bool) string {
	switch {
	case was && is:
		return "does not have the content that the manifest pins"
	case was:
		return "is gone: the manifest pins it"
	}
	return "is not in the manifest"
}
