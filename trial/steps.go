package trial

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
)

// runSteps is the course of a multi-step task (Harbor task format, section
// 6.5; Harbor job format, section 3.6). What goes wrong with a step is
// recorded with the step; the error is what ends the trial as a whole.
func (a *attempt) runSteps(ctx context.Context) error {
	a.res.StepResults = make([]jobdir.StepResult, 0, len(a.task.Config.Steps))
	for i := range a.task.Config.Steps {
		step := &a.task.Config.Steps[i]
		a.res.StepResults = append(a.res.StepResults, jobdir.StepResult{StepName: step.Name})
		res := &a.res.StepResults[i]
		s := &stage{results: results{trial: a.res, step: res}, step: step, last: i == len(a.task.Config.Steps)-1}
		if err := (&stepRun{trial: a, step: step, res: res}).run(ctx, s); err != nil {
			return err
		}
		stop, reason := reward.Stop(stepReward(res), res.ExceptionInfo != nil, minReward(step), a.cfg.Verifier.Disable)
		if reason != "" {
			a.log.printf("Step %s: %s", step.Name, reason)
		}
		if stop {
			break
		}
	}
	return a.combineSteps()
}

func (a *attempt) combineSteps() error {
	a.enter(phaseCombining)
	results := make([]*reward.Result, len(a.res.StepResults))
	for i := range a.res.StepResults {
		results[i] = stepReward(&a.res.StepResults[i])
	}
	combined, err := reward.Combine(reward.Strategy(a.task.Config.MultiStepRewardStrategy), results)
	if err != nil {
		return err
	}
	if combined != nil {
		a.res.VerifierResult = &jobdir.VerifierResult{Rewards: combined.Rewards}
	}
	for _, d := range environment.LogDirs() {
		// Only empty ones go; what is left there stays for people to see.
		_ = os.Remove(a.hostDir(d.Name))
	}
	return nil
}

func stepReward(res *jobdir.StepResult) *reward.Result {
	if res.VerifierResult == nil {
		return nil
	}
	return &reward.Result{Rewards: res.VerifierResult.Rewards}
}

func minReward(step *harbor.Step) reward.MinReward {
	if step.MinReward == nil {
		return nil
	}
	if step.MinReward.ByKey == nil {
		return reward.MinReward{{Name: reward.Name, Value: step.MinReward.Number}}
	}
	var m reward.MinReward
	for name, value := range step.MinReward.ByKey.All() {
		m = append(m, reward.Threshold{Name: name, Value: value})
	}
	return m
}

// stepRun is one step of a trial, and its course.
type stepRun struct {
	trial *attempt
	step  *harbor.Step
	res   *jobdir.StepResult
}

func (run *stepRun) run(ctx context.Context, s *stage) error {
	run.trial.enter(stepPhase(run.step.Name))
	dir := filepath.Join("steps", filepath.FromSlash(run.step.Name))
	if !filepath.IsLocal(dir) || filepath.Clean(dir) == "steps" {
		return exception.Errorf(exception.ValueError, "step name '%s' leads out of the trial's directory", run.step.Name)
	}
	for _, name := range []string{"agent", "verifier"} {
		if err := run.trial.makeBelow(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	run.trial.collected = false
	if err := run.work(ctx, s); err != nil {
		return err
	}
	if s.verdict != nil {
		s.verdict.dir = filepath.Join(run.trial.dir, dir, "verifier")
	}
	run.trial.env.OwnLogs(ctx) // only the owner of a directory can move it
	return run.archive(dir)
}

// work sets the step up and goes through it.
func (run *stepRun) work(ctx context.Context, s *stage) (err error) {
	if err := run.setUp(ctx); err != nil {
		if typ, _ := describe(err); typ != exception.HealthcheckError && !errors.Is(err, errStepSetup) {
			return err
		}
		run.fail(err)
		return nil
	}
	if s.instruction, err = run.trial.task.StepInstruction(run.step.Name); err != nil {
		return err
	}
	return run.trial.runStage(ctx, run, s)
}

func (run *stepRun) agent(ctx context.Context, s *stage) error {
	err := run.trial.runAgent(ctx, s)
	if err == nil || endsTrial(err) || ctx.Err() != nil {
		return err
	}
	run.fail(err)
	return nil
}

func (run *stepRun) verify(ctx context.Context, s *stage) error {
	err := run.trial.judge(ctx, s)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errCancelled
	case errors.Is(err, errVerifierLimit):
		err = &exception.Error{Type: exception.TimeoutError}
	}
	if endsTrial(err) {
		return err
	}
	run.fail(err)
	return nil
}

// fail keeps an error with its step; the first one counts, and the trial
// itself has no exception.
func (run *stepRun) fail(err error) {
	info := run.trial.note(err)
	run.trial.log.printf("Step %s failed: %s", run.res.StepName, info.Message)
	if run.res.ExceptionInfo == nil {
		run.res.ExceptionInfo = info
	}
}

var errStepSetup = errors.New("the step's set-up failed")

// setUp puts the step's files into the working directory, runs its set-up
// script and waits for its healthcheck, all as the step's agent user.
func (run *stepRun) setUp(ctx context.Context) error {
	if !run.trial.r.Backend.Capabilities().Mounted {
		if err := environment.EmptyDirs(ctx, run.trial.sandbox(), harbor.AgentLogsDir); err != nil {
			return err
		}
	}
	user := run.trial.env.AgentUser(run.step)
	if dir := run.trial.task.StepDir(run.step.Name); harbor.Has(dir, "workdir") {
		if err := run.stageFiles(ctx, filepath.Join(dir, "workdir"), user); err != nil {
			return err
		}
	}
	err := run.trial.env.WaitForStep(ctx, run.step)
	if ctx.Err() != nil {
		return errCancelled
	}
	return err
}

func (run *stepRun) stageFiles(ctx context.Context, files, user string) error {
	workdir, err := environment.Workdir(ctx, run.trial.sandbox(), user)
	if err != nil {
		return err
	}
	if err := sandbox.UploadDir(ctx, run.trial.sandbox(), files, workdir); err != nil {
		return err
	}
	if !harbor.Has(files, "setup.sh") {
		return nil
	}
	script, err := harbor.Linux.Quote(filepath.ToSlash(filepath.Join(workdir, "setup.sh")))
	if err != nil {
		return err
	}
	tail := bounded.NewTail(4 << 10)
	status, err := run.trial.sandbox().Exec(ctx, sandbox.Command{Shell: "bash " + script, User: user, Stdout: tail})
	if err != nil {
		return err
	}
	if status.Code == 0 {
		return nil
	}
	run.trial.log.printf("%s", tail)
	message := fmt.Sprintf("Step '%s' setup.sh exited with code %d: None", run.step.Name, status.Code)
	return &exception.Error{Type: exception.RuntimeError, Message: message, Err: errStepSetup}
}

// archive moves what the step left in the mounted directories to the
// directory of the step.
func (run *stepRun) archive(dir string) error {
	if run.trial.calls != nil {
		run.trial.calls.file.endStep()
	}
	for _, d := range environment.LogDirs() {
		entries, err := os.ReadDir(run.trial.hostDir(d.Name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			continue // a step that never began has no artifacts
		}
		to := filepath.Join(run.trial.dir, dir, d.Name)
		if err := run.trial.makeBelow(filepath.Join(dir, d.Name)); err != nil {
			return err
		}
		for _, e := range entries {
			target := filepath.Join(to, e.Name())
			if err := os.RemoveAll(target); err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(run.trial.hostDir(d.Name), e.Name()), target); err != nil {
				return err
			}
		}
	}
	return nil
}
