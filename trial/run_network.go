package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
)

// EgressLog is the file in a trial's directory that says, one JSON object per
// line, what its sandboxes asked the egress proxy for (egress.Line). It is
// there when a sandbox had an allow list, or a network that is switched.
const EgressLog = "egress.jsonl"

const (
	// egressLogLimit bounds the file, in bytes. Beyond it lines are dropped
	// and counted.
	egressLogLimit = 8 << 20
	// switchLimit bounds going back to the baseline after a phase.
	switchLimit = 60 * time.Second
)

func (a *attempt) network(step *harbor.Step) harbor.NetworkPlan {
	return a.task.Config.PlanNetwork(step, a.cfg.Agent.ExtraAllowedHosts, a.cfg.Environment.ExtraAllowedHosts)
}

// eachPlan calls f for the plan of a single-step task, or of each step, until
// it returns an error.
func (a *attempt) eachPlan(f func(step *harbor.Step, plan *harbor.NetworkPlan) error) error {
	if !a.task.Config.HasSteps() {
		plan := a.network(nil)
		return f(nil, &plan)
	}
	for i := range a.task.Config.Steps {
		step := &a.task.Config.Steps[i]
		plan := a.network(step)
		if err := f(step, &plan); err != nil {
			return err
		}
	}
	return nil
}

// planNetworks refuses phases that need another network policy than their
// environment starts with where that cannot be changed, and policies that
// cannot be enforced (Harbor task format, sections 3.7 and 4.1).
func (a *attempt) planNetworks() error {
	can := a.r.Backend.Capabilities()
	return a.eachPlan(func(step *harbor.Step, plan *harbor.NetworkPlan) error {
		name, verifierDir := "", a.task.EnvironmentDir()
		if step != nil {
			name = step.Name
		}
		if plan.VerifierBaseline != nil {
			verifierDir = a.task.VerifierDir(step)
		}
		switchable := *plan
		extra := len(a.cfg.Environment.ExtraDockerCompose) > 0
		if a.canSwitch(a.task.EnvironmentDir()) && !extra {
			switchable.AgentPhase = plan.AgentBaseline
		}
		if a.canSwitch(verifierDir) && (!extra || plan.VerifierBaseline != nil) {
			switchable.VerifierPhase = plan.AgentBaseline
			if plan.VerifierBaseline != nil {
				switchable.VerifierPhase = *plan.VerifierBaseline
			}
		}
		if err := switchable.CheckSwitching(name); err != nil {
			return err
		}
		for _, n := range []harbor.Network{plan.AgentPhase, plan.VerifierPhase} {
			if n.Mode == harbor.Allowlist && !can.Allowlist || n.Mode == harbor.NoNetwork && !can.NoNetwork {
				return exception.Errorf(exception.ValueError, "network_mode='%s' is not supported by %s environment.", n.Mode, a.r.Backend.Name())
			}
		}
		return nil
	})
}

// canSwitch tells whether the policy of an environment with this directory can
// be changed while it runs. A compose project's cannot: main would lose its
// other services.
func (a *attempt) canSwitch(dir string) bool {
	return a.r.Backend.Capabilities().SwitchNetwork && !a.fixedNetwork && !isThere(filepath.Join(dir, "docker-compose.yaml"))
}

// agentSwitches tells whether a phase in the agent's environment has another
// policy than its baseline.
func (a *attempt) agentSwitches() bool {
	switches := false
	_ = a.eachPlan(func(_ *harbor.Step, plan *harbor.NetworkPlan) error { // f never fails
		switches = switches || !plan.AgentPhase.Equal(plan.AgentBaseline) ||
			plan.VerifierBaseline == nil && !plan.VerifierPhase.Equal(plan.AgentBaseline)
		return nil
	})
	return switches
}

// watchNetwork completes a Spec's network: whether its policy will be changed,
// and where the egress proxy's log goes.
func (a *attempt) watchNetwork(spec *sandbox.Spec, switches bool) error {
	spec.Network.Switchable = switches
	if !switches && spec.Network.Mode != sandbox.NetworkAllowlist {
		return nil
	}
	if a.egress == nil {
		f, err := os.Create(filepath.Join(a.dir, EgressLog))
		if err != nil {
			return fmt.Errorf("keeping the log of the egress proxy: %w", err)
		}
		a.egress = egress.NewBoundedLog(f, egressLogLimit)
	}
	spec.Network.Log = a.egress
	return nil
}

// runAgent lets the agent work on a stage under the policy of its phase.
func (a *attempt) runAgent(ctx context.Context, s *stage) error {
	plan := a.network(s.step)
	return a.underNetwork(ctx, a.sandbox(), plan.AgentBaseline, plan.AgentPhase, func() error { return a.letWork(ctx, s) })
}

// underNetwork does work while a sandbox has the policy of a phase, and goes
// back to its baseline. Where that fails the trial cannot go on.
func (a *attempt) underNetwork(ctx context.Context, sb sandbox.Sandbox, base, phase harbor.Network, work func() error) error {
	if phase.Equal(base) {
		return work()
	}
	if err := a.setNetwork(ctx, sb, phase); err != nil {
		return err
	}
	err := work()
	bctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), switchLimit)
	defer cancel()
	if back := a.setNetwork(bctx, sb, base); back != nil {
		if err != nil {
			a.note(err)
		}
		return back
	}
	return err
}

// networkError ends a trial whose sandbox may not have the network policy that
// it should.
type networkError struct{ err error }

func (e *networkError) Error() string { return "changing the network policy: " + e.err.Error() }

func (e *networkError) Unwrap() error { return e.err }

// ErrorType is the name under which results record the error.
func (e *networkError) ErrorType() string { return exception.RuntimeError }

// endsTrial tells errors after which no further step may be run.
func endsTrial(err error) bool {
	_, unproven := errors.AsType[*unprovenError](err)
	_, network := errors.AsType[*networkError](err)
	return unproven || network
}

func (a *attempt) setNetwork(ctx context.Context, sb sandbox.Sandbox, n harbor.Network) error {
	sw, ok := sandbox.As[sandbox.NetworkSwitcher](sb)
	if !ok {
		return &networkError{sandbox.ErrUnsupported}
	}
	if err := sw.SetNetwork(ctx, sandbox.NetworkMode(n.Mode), n.AllowedHosts); err != nil {
		return &networkError{err}
	}
	a.log.printf("The network policy is now %s %s", n.Mode, strings.Join(n.AllowedHosts, " "))
	return nil
}

// closeEgressLog ends the log when every sandbox is gone.
func (a *attempt) closeEgressLog() {
	if a.egress == nil {
		return
	}
	if err := a.egress.Close(a.r.Now()); err != nil {
		a.warn("keeping the log of the egress proxy: %v", err)
	}
	a.egress = nil
}
