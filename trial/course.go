package trial

import (
	"context"
	"errors"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
)

// stage is what an agent works on and a verifier judges: a task as a whole, or one
// step of it.
type stage struct {
	results
	step        *harbor.Step // nil for a task without steps
	instruction string
	last        bool // no agent works after it
	killed      bool // the agent, at its deadline
	answered    bool // the agent, by its model through the gateway
	verdict     *verdict
}

// course is how the agent works on a stage and how that is judged. Both record the
// errors that the trial survives; one that they return ends it.
type course interface {
	agent(ctx context.Context, s *stage) error
	verify(ctx context.Context, s *stage) error
}

// runStage goes through a stage: the agent works, what it made is saved, and it is
// judged (Harbor task format, sections 6.1 and 6.5).
func (a *attempt) runStage(ctx context.Context, c course, s *stage) error {
	if err := c.agent(ctx, s); err != nil {
		return err
	}
	if a.env != nil && a.desk == nil {
		a.collectArtifacts(ctx, s.step)
		a.noteLeft(ctx, s)
		if s.last && separate(a.task, s.step) {
			a.destroy(ctx)
		}
	}
	if a.cfg.Verifier.Disable {
		return nil
	}
	return c.verify(ctx, s)
}

// singleCourse is the course of a single-step task.
type singleCourse struct{ trial *attempt }

func (c singleCourse) agent(ctx context.Context, s *stage) error {
	return c.trial.survive(c.trial.runAgent(ctx, s))
}

func (c singleCourse) verify(ctx context.Context, s *stage) error {
	err := c.trial.judge(ctx, s)
	if errors.Is(err, errVerifierLimit) {
		return environment.VerifierPassed(c.trial.limits.verifier(nil))
	}
	return err
}
