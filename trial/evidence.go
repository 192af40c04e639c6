package trial

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/verify"
)

// verdict is one verification: how its rewards came about, and where its files lie.
type verdict struct {
	stage *stage
	res   verify.Result
	dir   string // of the reward files, on the host
	left  int    // processes that the agent left running
	later []reward.File
}

// recheck compares the reward files with those that the rewards were read from,
// and reports whether they were changed.
func (v *verdict) recheck() bool {
	now := verify.RewardFiles(v.dir)
	if v.stage.verifier() == nil || slices.EqualFunc(now, v.res.Evidence.After, sameFile) {
		return false
	}
	v.later = now
	return true
}

// sameFile leaves out what sealing, archiving and cleaning up change.
func sameFile(a, b reward.File) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.SHA256 == b.SHA256 && a.ModTime == b.ModTime
}

func (v *verdict) note() jobdir.VerificationNote {
	n := jobdir.VerificationNote{
		ExitCode: v.res.ExitCode, OutputCutBytes: v.res.OutputCut,
		RewardFiles: v.res.Evidence, ChangedLater: v.later, Suspicions: v.suspicions(),
	}
	if v.stage.step != nil {
		n.Step = v.stage.step.Name
	}
	return n
}

// suspicions describes what is conspicuous. It decides nothing: a task may well
// leave a reward file before its tests run, or a service that its tests need.
func (v *verdict) suspicions() []string {
	found := []string{}
	e := v.res.Evidence
	for _, before := range e.Before {
		what := before.Name + " existed before the verifier started"
		if slices.Contains(e.After, before) {
			what += " and was not changed by it"
		}
		found = append(found, what)
	}
	for _, f := range e.After {
		switch {
		case f.Kind == "link":
			found = append(found, f.Name+" is a symbolic link")
		case f.Links > 1:
			found = append(found, f.Name+" has more than one name")
		}
		if e.Ended != 0 && f.ModTime > e.Ended {
			found = append(found, f.Name+" was written after the verifier had ended")
		}
	}
	if v.later != nil {
		found = append(found, "the reward files were changed after they were read")
	}
	if v.left > 0 && !e.Sealed {
		found = append(found, fmt.Sprintf("processes that the agent left running could write to the reward files: %d", v.left))
	}
	return found
}

// addVerdict begins the verdict of a stage.
func (a *attempt) addVerdict(s *stage) *verdict {
	v := &verdict{stage: s, dir: a.hostDir("verifier")}
	if a.notes.AgentLeft != nil {
		v.left = a.notes.AgentLeft.Processes
	}
	s.verdict = v
	a.verdicts = append(a.verdicts, v)
	return v
}

// recheck compares the reward files, once nothing runs that could write to them,
// with those that the rewards were read from, and notes all verifications. What was changed behind a sealed verifier gives no reward.
func (a *attempt) recheck() {
	mounted := a.r.Backend.Capabilities().Mounted
	for _, v := range a.verdicts {
		if why := strings.TrimSpace(v.res.NotStarted); why != "" {
			a.warn("the tests could not be started: %s", why)
		}
		if mounted && v.recheck() && a.r.SealedVerifier {
			a.revoke(v)
		}
		note := v.note()
		if a.notes.Verification = &note; v.stage.step != nil {
			a.notes.Steps = append(a.notes.Steps, note)
		}
	}
}

// revoke takes the rewards of a verdict back.
func (a *attempt) revoke(v *verdict) {
	v.stage.setVerifier(nil)
	a.res.VerifierResult = nil
	a.recordIn(phaseVerification, &exception.Error{Type: exception.RewardTamperedError, Message: "a reward file was changed after it was read"})
}
