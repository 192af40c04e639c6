package jobdir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

// Change is one difference between what a job directory was made with and what
// is asked for now.
type Change struct {
	Path string // "agents[0].model_name", `task "hello": task.digest`
	// Old and New are values as compact JSON, cut when they are long; "" where
	// there is none.
	Old, New string
	// Results: trials that run after the change are not comparable with those
	// before.
	Results bool
}

func (c Change) String() string {
	effect := "does not change results"
	if c.Results {
		effect = "changes results"
	}
	return fmt.Sprintf("%s: %s → %s (%s)", c.Path, orAbsent(c.Old), orAbsent(c.New), effect)
}

func orAbsent(s string) string {
	if s == "" {
		return "(absent)"
	}
	return s
}

// ChangedError is the error of a job directory that was made with something
// else than what is asked for now. Its first line is the reference's.
type ChangedError struct {
	Err     error
	Changes []Change
}

func (e *ChangedError) Error() string {
	lines := []string{e.Err.Error()}
	for i, c := range e.Changes {
		if i == maxChanges {
			lines = append(lines, fmt.Sprintf("… and %d more", len(e.Changes)-i))
			break
		}
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n  ")
}

func (e *ChangedError) Unwrap() error { return e.Err }

// Harmless reports whether no change is of a kind that changes results.
func (e *ChangedError) Harmless() bool { return Harmless(e.Changes) }

func Harmless(changes []Change) bool {
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c Change) bool { return c.Results })
}

const (
	maxChanges     = 20 // that are listed
	maxChangeValue = 80 // bytes of a value
)

// harmlessKeys are the settings of a job that say how trials are run, not what
// they are.
var harmlessKeys = []string{"job_name", "jobs_dir", "debug", "quiet", "n_concurrent_trials", "retry", "plugins"}

// Changes lists where another configuration differs from this one. Credentials
// are redacted, as in files.
func (c Config) Changes(now Config, lookup harbor.Lookup) []Change {
	e := encoder{Encoder{Lookup: lookup}}
	c.JobName, c.Debug = now.JobName, now.Debug // no difference to resuming
	return differences("", e.config(c), e.config(now))
}

// differences walks two documents.
func differences(path string, old, now value.Value) []Change {
	if sameValue(old, now) {
		return nil
	}
	switch o := old.(type) {
	case *value.Object:
		if n, ok := now.(*value.Object); ok {
			return objectDifferences(path, o, n)
		}
	case value.List:
		if n, ok := now.(value.List); ok && len(o) > 0 && len(n) > 0 {
			return listDifferences(path, o, n)
		}
	}
	return []Change{newChange(path, old, now)}
}

// sameValue compares as Python does.
func sameValue(a, b value.Value) bool {
	return a != nil && b != nil && string(dump.AppendCanonical(nil, a)) == string(dump.AppendCanonical(nil, b))
}

func objectDifferences(path string, old, now *value.Object) []Change {
	keys := slices.Collect(old.Keys())
	for key := range now.Keys() {
		if !old.Has(key) {
			keys = append(keys, key)
		}
	}
	var list []Change
	for _, key := range keys {
		a, hasA := old.Get(key)
		b, hasB := now.Get(key)
		below := key
		if path != "" {
			below = path + "." + key
		}
		if hasA && hasB {
			list = append(list, differences(below, a, b)...)
			continue
		}
		list = append(list, newChange(below, a, b))
	}
	return list
}

func listDifferences(path string, old, now value.List) []Change {
	var list []Change
	for i := range max(len(old), len(now)) {
		below := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(old):
			list = append(list, newChange(below, nil, now[i]))
		case i >= len(now):
			list = append(list, newChange(below, old[i], nil))
		default:
			list = append(list, differences(below, old[i], now[i])...)
		}
	}
	return list
}

// newChange notes a difference; nil values are absent.
func newChange(path string, old, now value.Value) Change {
	top, _, _ := strings.Cut(path, ".")
	top, _, _ = strings.Cut(top, "[")
	return Change{Path: path, Old: valueText(old), New: valueText(now), Results: !slices.Contains(harmlessKeys, top)}
}

func valueText(v value.Value) string {
	if v == nil {
		return ""
	}
	text := string(value.AppendPydantic(nil, v, 0))
	if len(text) > maxChangeValue {
		text = strings.ToValidUTF8(text[:maxChangeValue], "") + "…"
	}
	return text
}

// Changes lists where another lock differs from this one, as far as locks are
// compared. Trials are told apart by their tasks.
func (l Lock) Changes(now Lock, lookup harbor.Lookup) []Change {
	e := encoder{Encoder{Lookup: lookup, OmitNull: true}}
	top := func(l Lock) value.Value {
		o := e.object()
		o.Int("schema_version", l.SchemaVersion)
		o.Int("n_concurrent_trials", l.NConcurrentTrials)
		o.Set("retry", e.retry(l.Retry))
		return o.Value()
	}
	list := differences("", top(l), top(now))
	gone, added := e.unmatched(l.Trials, now.Trials), e.unmatched(now.Trials, l.Trials)
	for _, old := range gone {
		name := fmt.Sprintf("task %q", old.Task.Name)
		i := slices.IndexFunc(added, func(t TrialLock) bool { return t.Task.Name == old.Task.Name })
		if i < 0 {
			list = append(list, Change{Path: name, Old: old.Task.Digest, Results: true})
			continue
		}
		same := added[i]
		same.Task = old.Task // but for the content, which alone counts
		same.Task.Digest = added[i].Task.Digest
		for _, c := range differences("", e.trialLock(&old), e.trialLock(&same)) {
			c.Path, c.Results = name+": "+c.Path, true
			list = append(list, c)
		}
		added = slices.Delete(added, i, i+1)
	}
	for _, t := range added {
		list = append(list, Change{Path: fmt.Sprintf("task %q", t.Task.Name), New: t.Task.Digest, Results: true})
	}
	return unique(list)
}

// unmatched lists the trials of a that b lacks, each as often as it does.
func (e encoder) unmatched(a, b []TrialLock) []TrialLock {
	have := map[string]int{}
	for _, t := range b {
		have[e.trialKey(t)]++
	}
	var rest []TrialLock
	for _, t := range a {
		if key := e.trialKey(t); have[key] > 0 {
			have[key]--
			continue
		}
		rest = append(rest, t)
	}
	return rest
}

// unique drops changes that are there before: attempts of a task differ alike.
func unique(list []Change) []Change {
	seen := map[Change]bool{}
	return slices.DeleteFunc(list, func(c Change) bool {
		was := seen[c]
		seen[c] = true
		return was
	})
}

// trialChanges lists how the configurations of two trials differ. Every
// difference between trials changes results.
func TrialChanges(path string, old, now TrialConfig, lookup harbor.Lookup) []Change {
	e := Encoder{Lookup: lookup}
	list := differences("", e.Config(old), e.Config(now))
	for i := range list {
		list[i].Path, list[i].Results = path+": "+list[i].Path, true
	}
	return list
}
