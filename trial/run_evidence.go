package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/verify"
)

// verdict is one verification and where its files lie.
type verdict struct {
	stage *stage
	step  *harbor.Step // nil for a single-step task
	res   verify.Result
	dir   string // of the reward files, on the host
	left  int    // processes that the agent left running
	later []verify.RewardFile
}

func (a *attempt) newVerdict(s *stage) *verdict {
	v := &verdict{stage: s, step: s.step, dir: a.hostDir("verifier")}
	if a.notes.AgentLeft != nil {
		v.left = a.notes.AgentLeft.Processes
	}
	a.verdicts = append(a.verdicts, v)
	return v
}

// movedTo tells that the last verification's files are moved, to a directory
// relative to the trial's.
func (a *attempt) movedTo(dir string) {
	if n := len(a.verdicts); n > 0 && a.verdicts[n-1].dir == a.hostDir("verifier") {
		a.verdicts[n-1].dir = filepath.Join(a.dir, dir)
	}
}

// recheckEvidence compares the reward files, when nothing runs any more that could
// write to them, with those that the rewards were read from, and writes the
// notes of all verifications. What was changed behind a sealed verifier gives
// no reward.
func (a *attempt) recheckEvidence() {
	mounted := a.r.Backend.Capabilities().Mounted
	for _, v := range a.verdicts {
		if why := strings.TrimSpace(v.res.NotStarted); why != "" {
			a.warn("the tests could not be started: %s", why)
		}
		if now := verify.RewardFiles(v.dir); mounted && *v.stage.verifierResult != nil && !slices.EqualFunc(now, v.res.Evidence.After, sameFile) {
			v.later = now
			a.revoke(v)
		}
		note := v.note()
		if a.notes.Verification = &note; v.step != nil {
			a.notes.Steps = append(a.notes.Steps, note)
		}
	}
}

// sameFile leaves out what sealing, archiving and cleaning up change.
func sameFile(a, b verify.RewardFile) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.SHA256 == b.SHA256 && a.ModTime == b.ModTime
}

func (a *attempt) revoke(v *verdict) {
	if !a.r.SealedVerifier {
		return
	}
	a.phase = "verification"
	*v.stage.verifierResult = nil
	a.res.VerifierResult = nil
	a.record(&exception.Error{Type: exception.RewardTamperedError, Message: "a reward file was changed after it was read"})
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

// baseline is the moment when the environment was ready: what is younger is the
// agent's.
type baseline struct {
	mark      sandbox.Mark // only for a sealed verifier
	processes processes    // nil for an agent that is trusted
}

// noteBaseline is called before the agent is set up.
func (a *attempt) noteBaseline(ctx context.Context) (err error) {
	a.notes.SealedVerifier = a.r.SealedVerifier
	if !a.entry.Trusted {
		a.baseline.processes = a.list(ctx)
	}
	if a.r.SealedVerifier {
		a.baseline.mark, err = a.sandbox().Mark(ctx)
	}
	return err
}

// killBeforeSeal ends everything that was started since the environment was
// ready.
func (a *attempt) killBeforeSeal(ctx context.Context) error {
	if !a.r.SealedVerifier || a.sandbox() == nil {
		return nil
	}
	kctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	err := a.sandbox().KillTree(kctx, a.baseline.mark, agentGrace)
	a.notes.AgentKilled = &jobdir.KillNote{Reason: "sealed verifier", ProvenGone: err == nil}
	if err != nil {
		a.notes.AgentKilled.Error = err.Error()
		return &unprovenError{err}
	}
	return nil
}
