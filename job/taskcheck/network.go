package taskcheck

import "github.com/proctor-run/proctor/harbor"

// Reach says how far the network can be taken from a verification alone.
type Reach string

const (
	// ReachNone: the task's verifier has no network as it is.
	ReachNone Reach = "none"
	// ReachVerifier: only the verification loses it.
	ReachVerifier Reach = "verifier"
	// ReachTrial: the sandbox cannot change its network while it runs, so the
	// agent loses it as well.
	ReachTrial Reach = "trial"
)

var offline = harbor.Network{Mode: harbor.NoNetwork}

// TakeNetwork changes a task's configuration so that its verifier has no
// network. canSwitch says that the network of a running sandbox can be changed.
func TakeNetwork(c *harbor.Config, canSwitch bool) Reach {
	reach := ReachNone
	for _, step := range stepsOf(c) {
		plan := c.PlanNetwork(step, nil, nil)
		switch {
		case plan.VerifierPhase.Equal(offline):
			continue
		case plan.VerifierBaseline != nil || canSwitch:
			if reach == ReachNone {
				reach = ReachVerifier
			}
		default:
			reach = ReachTrial
		}
	}
	if reach == ReachNone {
		return reach
	}
	separateOffline(c)
	if reach == ReachTrial {
		c.Environment.Network = offline
		c.Agent.Network = harbor.NetworkOverride{}
		for i := range c.Steps {
			c.Steps[i].Agent.Network = harbor.NetworkOverride{}
		}
	}
	// Said where nothing overrides it: with the task, or with each step.
	c.Verifier.Network = harbor.NetworkOverride(offline)
	for i := range c.Steps {
		c.Steps[i].Verifier.Network = harbor.NetworkOverride{}
	}
	return reach
}

// separateOffline starts separate verifier environments without network, so
// that none has to be switched.
func separateOffline(c *harbor.Config) {
	if !c.HasSteps() {
		if c.VerifierMode(nil) == harbor.Separate {
			env := c.VerifierEnvironment(nil)
			env.Network = offline
			c.Verifier.Environment = &env
		}
		return
	}
	// Each step's first, while they can still be told from the task's.
	for i := range c.Steps {
		step := &c.Steps[i]
		if c.VerifierMode(step) == harbor.Separate {
			env := c.VerifierEnvironment(step)
			env.Network = offline
			step.Verifier.Environment = &env
		}
	}
}

// stepsOf lists the steps; a task without steps is one.
func stepsOf(c *harbor.Config) []*harbor.Step {
	if !c.HasSteps() {
		return []*harbor.Step{nil}
	}
	steps := make([]*harbor.Step, len(c.Steps))
	for i := range c.Steps {
		steps[i] = &c.Steps[i]
	}
	return steps
}
