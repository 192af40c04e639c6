package trial

import (
	"context"
	"errors"
	"fmt"
	"math"

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

// cubeRun is a task that an attempt steps through, with the agent that does, and
// its course.
type cubeRun struct {
	trial   *attempt
	source  *CubeTask
	player  player
	task    *cube.Task      // nil before it is made and after it is closed
	sb      sandbox.Sandbox // of a cube's own container; nil for none
	episode *episode        // nil before it begins
	// abandoned: code of the cube or of its agent did not return when its time was
	// up. Nothing more is asked of the task.
	abandoned bool
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
func (a *attempt) prepareCube(agents *agentBuilder, source *CubeTask) error {
	if a.r.SealedVerifier {
		return exception.Errorf(exception.ValueError, "the verifier of %s cannot be sealed: a task that runs through CUBE's layer judges itself", source.Name)
	}
	a.res.TaskName, a.res.TaskChecksum = source.Name, source.Checksum
	if source.Make != nil && agents.worksApart() {
		a.cube = &cubeRun{trial: a, source: source}
		return a.prepareDesk(agents)
	}
	p, err := agents.newPlayer(source)
	if err != nil {
		return err
	}
	a.cube, a.trusted = &cubeRun{trial: a, source: source, player: p}, p.trusted
	a.res.AgentInfo = agentInfo(a.cfg.Agent, p.info)
	return nil
}

// runCube goes through the phases with a cube's task.
func (a *attempt) runCube(ctx context.Context, source *CubeTask) error {
	a.limits = limits{cfg: &a.cfg}
	if err := a.prepareCube(a.agents(nil), source); err != nil {
		return err
	}
	if err := a.cube.setUp(ctx); err != nil {
		return err
	}
	if a.desk != nil {
		if err := a.desk.open(ctx); err != nil {
			return err
		}
	}
	return a.cube.run(ctx)
}

// runHarborCube goes through CUBE's layer with the trial's Harbor task, in the
// trial's own environment.
func (a *attempt) runHarborCube(ctx context.Context) (err error) {
	if a.cube.task, err = harborcube.NewTask(ctx, a.env); err != nil {
		return err
	}
	return a.cube.run(ctx)
}

// setUp makes the task of a cube, and notes the sandbox that it runs in, if there
// is one. The sandbox belongs to the task, which removes it.
func (c *cubeRun) setUp(ctx context.Context) error {
	a := c.trial
	a.enter(phaseEnvironment)
	return a.timed(ctx, a.whole(), environment.Limit{}, nil, func(ctx context.Context) (err error) {
		if c.task, err = c.make(ctx); err != nil {
			return err
		}
		if container := c.task.Container(); container != nil {
			c.sb, _ = cube.SandboxOf(container)
		}
		if a.desk != nil {
			err = a.env.Start(ctx)
		}
		if sb := a.sandbox(); sb != nil { // the agent's, where it has one
			a.notes.SandboxID, a.notes.Supervision = sb.ID(), supervision(sb)
			a.notes.ImageDigest = imageDigest(sb)
		}
		return err
	})
}

// make makes the task. One that comes when nobody waits for it any more is closed.
func (c *cubeRun) make(ctx context.Context) (*cube.Task, error) {
	backend := labelled{c.trial.r.Backend, c.trial.r.labels(&c.trial.cfg)}
	return apart(ctx, c, "making the task", func(ctx context.Context) (*cube.Task, error) {
		return c.source.Make(ctx, backend)
	}, func(late *cube.Task) { _ = late.Close(context.WithoutCancel(ctx)) })
}

// labelled is a backend whose sandboxes bear the labels of a trial, whatever the one
// who makes them knows of it.
type labelled struct {
	sandbox.Backend
	labels sandbox.Labels
}

func (l labelled) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec.Labels = l.labels
	return l.Backend.Create(ctx, spec)
}

// run goes through the task.
func (c *cubeRun) run(ctx context.Context) error {
	a := c.trial
	if err := c.setUpAgent(ctx); err != nil {
		return err
	}
	defer c.closeEpisode()
	return a.runStage(ctx, c, &stage{results: a.whole(), last: true})
}

// setUpAgent sets up an agent that works apart. Any other needs no set-up; the phase is
// recorded all the same.
func (c *cubeRun) setUpAgent(ctx context.Context) error {
	a := c.trial
	if a.desk != nil {
		return a.setUpAgent(ctx)
	}
	a.enter(phaseAgentSetup)
	return a.timed(ctx, a.whole(), environment.Limit{}, nil, func(context.Context) error { return nil })
}

func (c *cubeRun) agent(ctx context.Context, s *stage) error {
	err := c.trial.orNotBegun(c.play(ctx, s))
	if c.abandoned {
		return err
	}
	return c.trial.survive(err)
}

// play lets the agent play an episode within its limit. When the limit passes,
// nothing that the agent started is left when play returns, or the error says that
// this could not be proven.
func (c *cubeRun) play(ctx context.Context, s *stage) error {
	a := c.trial
	a.enter(phaseAgent)
	limit := a.limits.agent(nil)
	s.setAgent(&jobdir.AgentResult{})
	marks, err := markAll(ctx, c.sandboxes()...)
	if err != nil {
		return err
	}
	if err := c.beginEpisode(); err != nil {
		return err
	}
	passed := limit.Passed(exception.AgentTimeoutError, "Agent execution")
	err = a.timed(ctx, s.results, limit, passed, func(ctx context.Context) error {
		if a.desk != nil {
			return c.playApart(ctx, s, limit)
		}
		return c.playWith(ctx, c.player.Agent)
	})
	if errors.Is(err, passed) {
		c.episode.cut(jobdir.EpisodeTimeout)
	}
	err = a.end(ctx, s, marks, err, passed)
	if a.desk != nil {
		s.instruction = a.desk.instruction
		err = a.readLogs(ctx, s, err)
	}
	c.noteEpisode()
	return err
}

// playWith plays the episode, and tells the agent of its end.
func (c *cubeRun) playWith(ctx context.Context, player cube.Agent) error {
	err := c.apart(ctx, "the episode", c.episode.play)
	if f, ok := player.(agent.Finisher); ok && !c.abandoned {
		failed := c.episode.failure()
		finish := func(ctx context.Context) error { return f.Finish(ctx, failed) }
		if finishErr := c.apart(ctx, "the agent's end", finish); err == nil {
			err = finishErr
		}
	}
	return err
}

// sandboxes are those in which the agent can start something: the task's and, where it works
// apart, its own.
func (c *cubeRun) sandboxes() []sandbox.Sandbox {
	if c.trial.desk != nil {
		return []sandbox.Sandbox{c.sb, c.trial.sandbox()}
	}
	return []sandbox.Sandbox{c.trial.sandbox()}
}

// verify scores the episode. A Harbor task's rewards are those of its reward file,
// any other's the one number of the cube.
func (c *cubeRun) verify(ctx context.Context, s *stage) error {
	a := c.trial
	leave, err := a.turn(ctx, a.r.Verifiers, "verifies", "verify")
	if err != nil {
		return err
	}
	defer leave()
	a.enter(phaseVerification)
	limit := a.limits.verifier(nil)
	var got evaluation
	err = a.timed(ctx, s.results, limit, environment.VerifierPassed(limit), func(ctx context.Context) (err error) {
		got, err = apart(ctx, c, "the evaluation", c.episode.evaluate, nil)
		return err
	})
	if p, ok := c.task.Problem().(*harborcube.Task); ok && !c.abandoned {
		return c.takeVerdict(s, p.Verdict(), err)
	}
	if err != nil {
		return err
	}
	return c.takeScore(s, got)
}

// takeScore records what a cube's own evaluation gave. A score that is no number that
// can be averaged is an error of the cube.
func (c *cubeRun) takeScore(s *stage, got evaluation) error {
	if math.IsNaN(got.reward) || math.IsInf(got.reward, 0) {
		return exception.Errorf(exception.ValueError, "the reward of %s is %s, which is not a score: it must be a finite number", c.source.Name, value.FloatRepr(got.reward))
	}
	rewards := &reward.Rewards{}
	rewards.Set(reward.Name, value.Float(got.reward))
	s.setVerifier(&jobdir.VerifierResult{Rewards: rewards})
	dir := c.trial.hostDir("verifier")
	if err := atomicfile.WriteIn(dir, reward.JSONFile, value.AppendPydantic(nil, rewards.Object(), 0), 0o644); err != nil {
		return err
	}
	if got.info == nil {
		return nil
	}
	data := value.AppendPydantic(nil, got.info, jobdir.Indent)
	if n := int64(len(data)); n > c.trial.r.outputLimit() {
		c.trial.warn("the info of the evaluation is not kept: it has %d bytes", n)
		return nil
	}
	return atomicfile.WriteIn(dir, "info.json", data, 0o644)
}

// takeVerdict records the result of a Harbor task's own verifier, which is nil
// when it did not run. err is why the evaluation failed as a whole.
func (c *cubeRun) takeVerdict(s *stage, own *harborcube.Verdict, err error) error {
	if own == nil {
		return err
	}
	v := c.trial.addVerdict(s)
	v.res = own.Verification
	if err != nil {
		return err
	}
	if own.Err != nil && v.res.Rewards == nil {
		return own.Err
	}
	s.setVerifier(&jobdir.VerifierResult{Rewards: v.res.Rewards})
	return nil
}

// close closes the task. A cube's own sandbox goes with it.
func (c *cubeRun) close(ctx context.Context) {
	task, sb := c.task, c.sb
	c.task, c.sb = nil, nil
	if task == nil {
		return
	}
	// The agent's own sandbox is another matter.
	if c.source.Make != nil && !c.trial.cfg.Environment.Delete && (c.trial.desk == nil || sb != nil) {
		c.trial.warn("the sandbox is not kept: it belongs to the cube's task")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	err := c.apart(ctx, "closing the task", task.Close)
	if c.abandoned && errors.Is(err, context.Canceled) {
		err = errAbandoned
	}
	if err != nil {
		c.trial.enter(phaseTeardown)
		c.trial.record(fmt.Errorf("closing the task: %w", err))
	}
}
