package trial

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/verify"
)

// verdict is one verification and where its files lie.
type verdict struct {
	stage *stage
	step  *harbor.Step // nil for a single-step task
	res   verify.Result
	dir   string // of the reward files, on the host
	left  int    // processes that the agent left running
	later []reward.File
}

// evidence is what is known of how a trial's rewards came about.
type evidence struct {
	*recorder
	mounted  bool
	sealed   bool
	verdicts []*verdict
}

// add begins the evidence of a verification.
func (e *evidence) add(s *stage) *verdict {
	v := &verdict{stage: s, step: s.step, dir: e.hostDir("verifier")}
	if e.notes.AgentLeft != nil {
		v.left = e.notes.AgentLeft.Processes
	}
	e.verdicts = append(e.verdicts, v)
	return v
}

// take records what a Harbor task's own verifier said, which is nil when
// it was not asked. err is why the evaluation failed as a whole.
func (e *evidence) take(said *harborcube.Verdict, err error) error {
	if said == nil {
		return err
	}
	v := e.add(&stage{results: e.whole()})
	v.res = said.Verification
	if err != nil {
		return err
	}
	if said.Err != nil && v.res.Rewards == nil {
		return said.Err
	}
	e.res.VerifierResult = &jobdir.VerifierResult{Rewards: v.res.Rewards}
	return nil
}

// movedTo tells that the last verification's files are moved, to a directory
// relative to the trial's.
func (e *evidence) movedTo(dir string) {
	if n := len(e.verdicts); n > 0 && e.verdicts[n-1].dir == e.hostDir("verifier") {
		e.verdicts[n-1].dir = filepath.Join(e.dir, dir)
	}
}

// recheck compares the reward files, when nothing runs any more that could
// write to them, with those that the rewards were read from, and writes the
// notes of all verifications. What was changed behind a sealed verifier gives
// no reward.
func (e *evidence) recheck() {
	for _, v := range e.verdicts {
		if why := strings.TrimSpace(v.res.NotStarted); why != "" {
			e.warn("the tests could not be started: %s", why)
		}
		if now := verify.RewardFiles(v.dir); e.mounted && v.stage.verifier() != nil && !slices.EqualFunc(now, v.res.Evidence.After, sameFile) {
			v.later = now
			e.revoke(v)
		}
		note := v.note()
		if e.notes.Verification = &note; v.step != nil {
			e.notes.Steps = append(e.notes.Steps, note)
		}
	}
}

// sameFile leaves out what sealing, archiving and cleaning up change.
func sameFile(a, b reward.File) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.SHA256 == b.SHA256 && a.ModTime == b.ModTime
}

func (e *evidence) revoke(v *verdict) {
	if !e.sealed {
		return
	}
	e.phase = phaseVerification
	v.stage.setVerifier(nil)
	e.res.VerifierResult = nil
	e.record(&exception.Error{Type: exception.RewardTamperedError, Message: "a reward file was changed after it was read"})
}

func (v *verdict) note() jobdir.VerificationNote {
	n := jobdir.VerificationNote{
		ExitCode: v.res.ExitCode, OutputCutBytes: v.res.OutputCut,
		RewardFiles: v.res.Evidence, ChangedLater: v.later, Suspicions: v.suspicions(),
	}
	if v.step != nil {
		n.Step = v.step.Name
	}
	return n
}

// suspicions reads the evidence. It judges nothing: a task may well leave a
// reward file before its tests run, or a service that its tests need.
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
		found = append(found, fmt.Sprintf("%d processes that the agent left running could write to the reward files", v.left))
	}
	return found
}
