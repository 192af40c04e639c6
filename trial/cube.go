package trial

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// CubeTask is a task that a trial runs through CUBE's layer: making it is the
// environment's setup, reset and steps are the agent's execution, evaluating
// is the verification.
type CubeTask struct {
	// Make sets the task up; its containers run in sandboxes of the backend.
	Make func(ctx context.Context, b sandbox.Backend) (*cube.Task, error)
	// Name of the task in results.
	Name string
	// Checksum identifies the task's content.
	Checksum string
	// Oracle makes an agent that plays the task's solution once; nil when the
	// solution is not known.
	Oracle func() cube.Agent
}

// cubeRun is what an attempt holds of a cube task.
type cubeRun struct {
	*recorder
	r      *Runner
	cfg    *jobdir.TrialConfig
	source *CubeTask
	agent  cube.Agent
	info   agent.Info
	task   *cube.Task      // nil before it is made and after it is closed
	sb     sandbox.Sandbox // of a cube's own container; nil for none
	// maxSteps was asked for; 0 for as many as the task recommends.
	maxSteps int
	episode  *episode // nil before it begins
}

// findCube returns the cube task that the trial runs, nil when it runs a
// Harbor task.
func (a *attempt) findCube() (*CubeTask, error) {
	if a.r.Cube == nil {
		return nil, nil
	}
	return a.r.Cube(a.cfg)
}

// prepareCube builds the agent of a task that runs through CUBE's layer.
func (a *attempt) prepareCube(source *CubeTask) (err error) {
	if a.r.SealedVerifier {
		return exception.Errorf(exception.ValueError, "the verifier of %s cannot be sealed: a task that runs through CUBE's layer judges itself", source.Name)
	}
	c := &cubeRun{recorder: a.recorder, r: a.r, cfg: &a.cfg, source: source}
	a.cube = c
	a.res.TaskName, a.res.TaskChecksum = source.Name, source.Checksum
	if c.agent, c.info, c.maxSteps, err = a.agents.newStepAgent(source); err != nil {
		return err
	}
	a.res.AgentInfo = agentInfo(a.cfg.Agent, c.info)
	return nil
}

// runCube goes through the phases with a cube's task.
func (a *attempt) runCube(ctx context.Context, source *CubeTask) error {
	if err := a.prepareCube(source); err != nil {
		return err
	}
	if err := a.cube.setUp(ctx); err != nil {
		return err
	}
	return a.runEpisode(ctx)
}

// runHarborCube goes through CUBE's layer with the trial's Harbor task, in the
// trial's own environment.
func (a *attempt) runHarborCube(ctx context.Context) (err error) {
	if a.cube.task, err = harborcube.NewTask(ctx, a.env); err != nil {
		return err
	}
	return a.runEpisode(ctx)
}

// runEpisode lets the agent play and scores what it did.
func (a *attempt) runEpisode(ctx context.Context) error {
	a.enter(phaseAgentSetup)
	if err := a.timed(ctx, a.whole(), environment.Limit{}, nil, func(context.Context) error { return nil }); err != nil {
		return err
	}
	defer a.cube.closeEpisode()
	if err := a.playCube(ctx); err != nil {
		if !verifiedAnyway(err) {
			return err
		}
		a.record(err)
	}
	if a.env != nil {
		a.artifacts.collectAll(ctx, nil)
		a.processes.noteLeft(ctx)
	}
	if a.cfg.Verifier.Disable {
		return nil
	}
	return a.evaluateCube(ctx)
}

// setUp sets the task of a cube up: environment setup.
func (c *cubeRun) setUp(ctx context.Context) error {
	c.enter(phaseEnvironment)
	return c.timed(ctx, c.whole(), environment.Limit{}, nil, func(ctx context.Context) (err error) {
		if c.task, err = c.source.Make(ctx, c.r.Backend); err != nil {
			return err
		}
		c.useSandbox()
		return nil
	})
}

// useSandbox notes the sandbox that the task runs in, if there is one. It
// belongs to the task, which removes it.
func (c *cubeRun) useSandbox() {
	if container := c.task.Container(); container != nil {
		c.sb, _ = cube.SandboxOf(container)
	}
	if c.sb != nil {
		c.notes.SandboxID, c.notes.Supervision = c.sb.ID(), supervision(c.sb)
	}
}

// playCube lets the agent play an episode: agent execution. What the agent
// started is gone when its time is up, or the error says that this could not
// be proven.
func (a *attempt) playCube(ctx context.Context) error {
	a.enter(phaseAgent)
	limit := a.limits.agent(nil)
	a.res.AgentResult = &jobdir.AgentResult{}
	var mark sandbox.Mark
	if sb := a.sandbox(); sb != nil {
		var err error
		if mark, err = sb.Mark(ctx); err != nil {
			return err
		}
	}
	if err := a.cube.beginEpisode(); err != nil {
		return err
	}
	passed := limit.Passed(exception.AgentTimeoutError, "Agent execution")
	err := a.timed(ctx, a.whole(), limit, passed, a.cube.episode.play)
	a.cube.noteEpisode(err, passed)
	if !errors.Is(err, passed) || a.sandbox() == nil {
		return err
	}
	return a.killAgent(ctx, mark, passed)
}

// evaluateCube scores the episode: verification. A Harbor task's rewards are
// those of its reward file, any other's the one number of the cube.
func (a *attempt) evaluateCube(ctx context.Context) error {
	a.enter(phaseVerification)
	limit := a.limits.verifier(nil)
	var score float64
	var info cube.Info
	err := a.timed(ctx, a.whole(), limit, environment.VerifierPassed(limit), func(ctx context.Context) (err error) {
		score, info, err = a.cube.episode.evaluate(ctx)
		return err
	})
	if p, ok := a.cube.task.Problem().(*harborcube.Task); ok {
		return a.evidence.take(p.Verdict(), err)
	}
	if err != nil {
		return err
	}
	rewards := &reward.Rewards{}
	rewards.Set(reward.Name, value.Float(score))
	a.res.VerifierResult = &jobdir.VerifierResult{Rewards: rewards}
	if err := atomicfile.WriteIn(a.hostDir("verifier"), reward.JSONFile, value.AppendPydantic(nil, rewards.Object(), 0), 0o644); err != nil {
		return err
	}
	if info == nil {
		return nil
	}
	return atomicfile.WriteIn(a.hostDir("verifier"), "info.json", value.AppendPydantic(nil, info, jobdir.Indent), 0o644)
}

// close closes the task. A cube's own sandbox goes with it.
func (c *cubeRun) close(ctx context.Context) {
	task := c.task
	c.task, c.sb = nil, nil
	if task == nil {
		return
	}
	if c.source.Make != nil && !c.cfg.Environment.Delete {
		c.warn("the sandbox is not kept: it belongs to the cube's task")
	}
	if err := task.Close(ctx); err != nil {
		c.enter(phaseTeardown)
		c.record(fmt.Errorf("closing the task: %w", err))
	}
}

// CubePath is how trial configurations name a task of a cube.
func CubePath(benchmark, taskID string) string {
	return filepath.ToSlash(filepath.Join("cube", benchmark, taskID))
}
