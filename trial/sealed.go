package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/verify"
)

// agentIsRoot asks before the agent begins, while the programs that answer are the task's,
// whether it works as root in any step. What cannot be told counts as root.
func (a *attempt) agentIsRoot(ctx context.Context) bool {
	users := map[string]bool{a.env.AgentUser(nil): true}
	for i := range a.task.Config.Steps {
		users[a.env.AgentUser(&a.task.Config.Steps[i])] = true
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(users)), func(user string) bool {
		uid, err := verify.UserID(ctx, a.sandbox(), user)
		return err != nil || uid == 0
	})
}

// endBeforeSeal ends everything in the sandbox before a sealed verifier begins, also what is
// older than the agent: such a process can have been made the agent's. What the environment
// itself runs is started again where the agent cannot have changed what it is made of.
func (a *attempt) endBeforeSeal(ctx context.Context, s *stage) error {
	sb := a.sandbox()
	if !a.r.SealedVerifier || sb == nil {
		return nil
	}
	const reason = "sealed verifier"
	ender, ok := sandbox.As[sandbox.Restarter](sb)
	err := sandbox.ErrUnsupported
	if ok {
		ectx, cancel := context.WithTimeout(ctx, killLimit)
		defer cancel()
		err = ender.EndAll(ectx, agentGrace)
	}
	a.notes.AgentKilled = &jobdir.KillNote{Reason: reason, ProvenGone: err == nil}
	switch {
	case errors.Is(err, sandbox.ErrUnsupported):
		a.notes.AgentKilled.Error = err.Error()
		return exception.Errorf(exception.VerifierSealError, "the reward channel cannot be sealed: not everything in this sandbox can be ended: %v", err)
	case err != nil:
		a.notes.AgentKilled.Error = err.Error()
		return &unprovenError{err}
	}
	a.notes.AgentLeft = nil
	if a.baseline.root {
		a.warnEnded()
	} else if err := a.startServices(ctx, ender, s); err != nil {
		return fmt.Errorf("starting again what ran before the agent: %w", err)
	}
	if s.last {
		return nil
	}
	if err := a.renewGateway(ctx); err != nil {
		return err
	}
	a.baseline.processes = listProcesses(ctx, sb)
	return nil
}

// startServices starts again what ran before the agent, and waits until it is healthy.
func (a *attempt) startServices(ctx context.Context, services sandbox.Restarter, s *stage) error {
	if err := services.StartServices(ctx); err != nil {
		return err
	}
	if err := a.env.WaitHealthy(ctx); err != nil || s.step == nil {
		return err
	}
	return a.env.WaitForStep(ctx, s.step)
}

// warnEnded names what ran before the agent and does not run any more.
func (a *attempt) warnEnded() {
	names := slices.DeleteFunc(a.baseline.processes.names(), func(name string) bool { return name == sandbox.HelperName })
	if len(names) == 0 {
		return
	}
	names = slices.Compact(names)
	a.warn("what ran before the agent was ended before the sealed verification and, because the agent is root and may have changed it, is not started again: %q",
		names[:min(len(names), maxNames)])
}
