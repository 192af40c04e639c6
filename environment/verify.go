package environment

import (
	"context"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/verify"
)

// Verify runs the tests of the task, or of one of its steps, in the sandbox and
// reads the rewards (section 6.2). step is nil for a single-step task. The
// caller bounds it, see VerifierPassed.
func (e *Environment) Verify(ctx context.Context, step *harbor.Step) (verify.Result, error) {
	sb, err := e.running()
	if err != nil {
		return verify.Result{}, err
	}
	e.mu.Lock()
	again := e.testsInside
	e.testsInside = true
	e.mu.Unlock()
	spec := e.VerifySpec(step)
	spec.TestDirs = e.testDirs(step)
	if step != nil {
		spec.Prepare = func(ctx context.Context) error { return emptyForTests(ctx, sb) }
	} else if again {
		if err := emptyForTests(ctx, sb); err != nil {
			return verify.Result{}, err
		}
	}
	return verify.Run(ctx, sb, spec)
}

// VerifySpec describes a verification as far as it does not depend on the
// sandbox that it runs in: where the tests come from is not said.
func (e *Environment) VerifySpec(step *harbor.Step) verify.Spec {
	cfg := &e.cfg.Task.Config
	return verify.Spec{
		Script: cfg.Environment.OS.TestScript(),
		Env: func() ([]string, error) {
			env, err := harbor.ResolveEnv(cfg.VerifierEnv(step, e.cfg.VerifierEnv), e.cfg.Lookup)
			return harbor.Assignments(env), err
		},
		User:        userName(cfg.VerifierUser(step)),
		LogDir:      e.LogDir(VerifierLogs),
		Mounted:     e.cfg.Backend.Capabilities().Mounted,
		OutputLimit: e.cfg.OutputLimit,
		Redact:      e.cfg.Redact,
		Sealed:      e.cfg.Sealed,
		Now:         e.cfg.Now,
	}
}

// testDirs are the task's tests and then the step's, as far as they are there.
func (e *Environment) testDirs(step *harbor.Step) []string {
	task := e.cfg.Task
	if step == nil {
		return []string{task.TestsDir()}
	}
	var dirs []string
	for _, dir := range []string{task.TestsDir(), filepath.Join(task.StepDir(step.Name), "tests")} {
		if _, err := os.Stat(dir); err == nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
