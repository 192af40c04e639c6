package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strconv"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// verifierDir is where a trial, or one of its steps, keeps the files of its verifier.
const verifierDir = "verifier"

// checkRewards holds the rewards of a trial against its reward files, and these against
// what was seen of them when the trial ended. The rewards of several steps are not put
// together again: how is said by the task.
func (c *check) checkRewards(t *trialFiles) {
	if t.notes != nil && t.notes.Episode != nil {
		return // rewarded by its task, without files
	}
	checked := true
	if t.result.StepResults == nil {
		checked = c.checkRewardsIn(t, verifierDir, t.result.VerifierResult)
	}
	for _, s := range t.result.StepResults {
		if !isName(s.StepName) {
			t.find(Finding{Kind: Result, File: slashed(t.name, scan.ResultFile), Message: fmt.Sprintf("names a step %q", s.StepName)})
			continue
		}
		checked = c.checkRewardsIn(t, slashed("steps", s.StepName, verifierDir), s.VerifierResult) && checked
	}
	t.noFiles = !checked
	if t.notes == nil {
		return
	}
	for _, v := range t.notes.Verifications() {
		dir := verifierDir
		if v.Step != "" {
			if !isName(v.Step) {
				continue
			}
			dir = slashed("steps", v.Step, verifierDir)
		}
		c.checkEvidence(t, dir, v)
	}
}

// checkRewardsIn reports whether there was anything to hold rewards against.
func (c *check) checkRewardsIn(t *trialFiles, dir string, result *jobdir.VerifierResult) bool {
	if result == nil {
		return true
	}
	place := slashed(t.name, dir)
	if _, err := os.Lstat(filepath.Join(c.dir, filepath.FromSlash(place))); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	found, err := reward.Read(filepath.Join(c.dir, filepath.FromSlash(place)))
	if err != nil {
		t.find(Finding{Kind: Reward, File: place, Message: fmt.Sprintf("gives no rewards, %s has %s: %v", scan.ResultFile, rewardsText(result.Rewards), exception.PlainText(err))})
		return true
	}
	if !sameRewards(found, result.Rewards) {
		t.find(Finding{
			Kind: Reward, File: place,
			Message: fmt.Sprintf("gives %s, %s has %s", rewardsText(found), scan.ResultFile, rewardsText(result.Rewards)),
		})
	}
	return true
}

// sameRewards compares by value: a result keeps neither how a number was spelled nor
// which number beyond the finite ones it was.
func sameRewards(a, b *reward.Rewards) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if a.Len() != b.Len() {
		return false
	}
	for name, x := range a.All() {
		y, ok := b.Get(name)
		if !ok || !sameNumber(x, y) {
			return false
		}
	}
	return true
}

func sameNumber(a, b value.Number) bool {
	x, y := exact(a), exact(b)
	if x == nil || y == nil {
		return x == nil && y == nil
	}
	return x.Cmp(y) == 0
}

// exact is nil for what is not finite.
func exact(n value.Number) *big.Rat {
	switch n := n.(type) {
	case value.Float:
		if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return new(big.Rat).SetFloat64(f)
		}
	case value.Int:
		if r, ok := new(big.Rat).SetString(n.String()); ok {
			return r
		}
	}
	return nil
}

func rewardsText(r *reward.Rewards) string {
	if r == nil {
		return "null"
	}
	text := string(value.AppendDumps(nil, r.Object(), value.DumpsOptions{}))
	if short, cut := bounded.Shorten(text, 200); cut {
		return strconv.Quote(short)
	}
	return text
}

// checkEvidence holds the reward files against what was seen of them.
func (c *check) checkEvidence(t *trialFiles, dir string, v jobdir.VerificationNote) {
	last := v.RewardFiles.After
	if v.ChangedLater != nil {
		last = v.ChangedLater
	}
	seen := map[string]string{}
	for _, f := range last {
		seen[f.Name] = f.SHA256
	}
	for _, name := range []string{reward.JSONFile, reward.TextFile} {
		file := slashed(t.name, dir, name)
		data, err := bounded.ReadIn(c.dir, file, reward.MaxFileSize)
		sum, was := seen[name]
		switch {
		case was && sum == "", err != nil && !errors.Is(err, fs.ErrNotExist):
			continue // no regular file, which is a suspicion; or too large to be one of rewards
		case was && err != nil:
			t.find(Finding{Kind: Reward, File: file, Message: "is gone: it was there when the trial ended"})
		case was && jobdir.DigestOf(data).SHA256 != sum:
			t.find(Finding{Kind: Reward, File: file, Message: "is not what was there when the trial ended: it was changed since"})
		case !was && err == nil:
			t.find(Finding{Kind: Reward, File: file, Message: "was not there when the trial ended: it was added since"})
		}
	}
}
