package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/egress"
)

const (
	// egressLogLimit bounds the file, in bytes. Beyond it lines are dropped
	// and counted.
	egressLogLimit = 8 << 20
	// switchLimit bounds going back to the baseline after a phase.
	switchLimit = 60 * time.Second
)

// networks are the network policies of a trial's sandboxes and phases.
type networks struct {
	dir     string // of the trial
	backend sandbox.Backend
	cfg     *jobdir.TrialConfig
	task    *harbor.Task
	fixed   bool // phases cannot have policies of their own
	veil    *veil
	egress  *egress.BoundedLog // nil when no sandbox needs it
}

// plan is what a step, or a single-step task, asks for.
func (n *networks) plan(step *harbor.Step) harbor.NetworkPlan {
	return n.task.Config.PlanNetwork(step, n.cfg.Agent.ExtraAllowedHosts, n.cfg.Environment.ExtraAllowedHosts)
}

// each calls f for the plan of a single-step task, or of each step, until
// it returns an error.
func (n *networks) each(f func(step *harbor.Step, plan *harbor.NetworkPlan) error) error {
	if !n.task.Config.HasSteps() {
		plan := n.plan(nil)
		return f(nil, &plan)
	}
	for i := range n.task.Config.Steps {
		step := &n.task.Config.Steps[i]
		plan := n.plan(step)
		if err := f(step, &plan); err != nil {
			return err
		}
	}
	return nil
}

// check refuses phases that need another network policy than their
// environment starts with where that cannot be changed, and policies that
// cannot be enforced (Harbor task format, sections 3.7 and 4.1).
func (n *networks) check() error {
	can := n.backend.Capabilities()
	return n.each(func(step *harbor.Step, plan *harbor.NetworkPlan) error {
		name, verifierDir := "", n.task.EnvironmentDir()
		if step != nil {
			name = step.Name
		}
		if plan.VerifierBaseline != nil {
			verifierDir = n.task.VerifierDir(step)
		}
		switchable := *plan
		extra := len(n.cfg.Environment.ExtraDockerCompose) > 0
		if n.canSwitch(n.task.EnvironmentDir()) && !extra {
			switchable.AgentPhase = plan.AgentBaseline
		}
		if n.canSwitch(verifierDir) && (!extra || plan.VerifierBaseline != nil) {
			switchable.VerifierPhase = plan.AgentBaseline
			if plan.VerifierBaseline != nil {
				switchable.VerifierPhase = *plan.VerifierBaseline
			}
		}
		if err := switchable.CheckSwitching(name); err != nil {
			return err
		}
		for _, policy := range []harbor.Network{plan.AgentPhase, plan.VerifierPhase} {
			if policy.Mode == harbor.Allowlist && !can.Allowlist || policy.Mode == harbor.NoNetwork && !can.NoNetwork {
				return exception.Errorf(exception.ValueError, "network_mode='%s' is not supported by %s environment.", policy.Mode, n.backend.Name())
			}
		}
		return nil
	})
}

// canSwitch reports whether the policy of an environment with this directory can
// be changed while it runs. A compose project's cannot: main would lose its
// other services.
func (n *networks) canSwitch(dir string) bool {
	return n.backend.Capabilities().SwitchNetwork && !n.fixed && !harbor.Has(dir, harbor.ComposeFile)
}

// switches reports whether a phase in the agent's environment has another
// policy than its baseline.
func (n *networks) switches() bool {
	switches := false
	_ = n.each(func(_ *harbor.Step, plan *harbor.NetworkPlan) error { // f never fails
		switches = switches || !plan.AgentPhase.Equal(plan.AgentBaseline) ||
			plan.VerifierBaseline == nil && !plan.VerifierPhase.Equal(plan.AgentBaseline)
		return nil
	})
	return switches
}

// watch completes a Spec's network: whether its policy will be changed,
// and where the egress proxy's log goes.
func (n *networks) watch(spec *sandbox.Spec, switches bool) error {
	spec.Network.Switchable = switches
	if !switches && spec.Network.Mode != sandbox.NetworkAllowlist {
		return nil
	}
	if n.egress == nil {
		f, err := bounded.Truncate(n.dir, jobdir.EgressLog)
		if err != nil {
			return fmt.Errorf("keeping the log of the egress proxy: %w", err)
		}
		n.egress = egress.NewBoundedLog(veiledLines{f, n.veil}, egressLogLimit)
	}
	spec.Network.Log = n.egress
	return nil
}

// veiledLines is a file to which whole lines are written, with their secrets hidden.
type veiledLines struct {
	*os.File
	veil *veil
}

func (v veiledLines) Write(line []byte) (int, error) {
	if _, err := v.File.Write(v.veil.bytes(line)); err != nil {
		return 0, fmt.Errorf("writing %s: %w", jobdir.EgressLog, err)
	}
	return len(line), nil
}

// close ends the log when every sandbox is gone.
func (n *networks) close(now time.Time) error {
	if n.egress == nil {
		return nil
	}
	err := n.egress.Close(now)
	n.egress = nil
	return err
}

// withNetwork does work while a sandbox has the policy of a phase, and goes back
// to its baseline. If that fails, the trial ends.
func (a *attempt) withNetwork(ctx context.Context, sb sandbox.Sandbox, base, phase harbor.Network, work func() error) error {
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

// setNetwork gives a sandbox a policy.
func (a *attempt) setNetwork(ctx context.Context, sb sandbox.Sandbox, policy harbor.Network) error {
	sw, ok := sandbox.As[sandbox.NetworkSwitcher](sb)
	if !ok {
		return &networkError{sandbox.ErrUnsupported}
	}
	if err := sw.SetNetwork(ctx, sandbox.NetworkMode(policy.Mode), policy.AllowedHosts); err != nil {
		return &networkError{err}
	}
	a.log.printf("The network policy is now %s %s", policy.Mode, strings.Join(policy.AllowedHosts, " "))
	return nil
}

// networkError ends a trial whose sandbox may not have the network policy that
// it should.
type networkError struct{ err error }

func (e *networkError) Error() string { return "changing the network policy: " + e.err.Error() }

func (e *networkError) Unwrap() error { return e.err }

// ErrorType returns RuntimeError.
func (e *networkError) ErrorType() string { return exception.RuntimeError }

// endsTrial reports whether no further step may be run after an error.
func endsTrial(err error) bool {
	if errors.Is(err, errCancelled) {
		return true
	}
	_, unproven := errors.AsType[*unprovenError](err)
	_, network := errors.AsType[*networkError](err)
	return unproven || network
}
