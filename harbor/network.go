package harbor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// NetworkMode says what an environment may reach.
type NetworkMode string

// Network modes.
const (
	NoNetwork NetworkMode = "no-network"
	Public    NetworkMode = "public"
	Allowlist NetworkMode = "allowlist"
)

// Network is a network policy. AllowedHosts are normalised host names, with
// "*." in front for any subdomain; only an allow list has some.
type Network struct {
	Mode         NetworkMode
	AllowedHosts []string
}

// Equal reports whether two policies allow the same, hosts in the same order.
func (n Network) Equal(m Network) bool {
	return n.Mode == m.Mode && slices.Equal(n.AllowedHosts, m.AllowedHosts)
}

// NetworkOverride is a policy for one phase. An empty mode is no override.
type NetworkOverride struct {
	Mode         NetworkMode
	AllowedHosts []string // nil when absent
}

var (
	errHostsNeeded = exception.Errorf(exception.ValueError, "allowed_hosts must be non-empty when network_mode='allowlist'.")
	errHostsUnused = exception.Errorf(exception.ValueError, "allowed_hosts is only valid when network_mode='allowlist'.")
)

func (n Network) check() error {
	switch {
	case n.Mode == Allowlist && len(n.AllowedHosts) == 0:
		return errHostsNeeded
	case n.Mode != Allowlist && len(n.AllowedHosts) > 0:
		return errHostsUnused
	}
	return nil
}

func (n NetworkOverride) check() error {
	if n.Mode == "" {
		if n.AllowedHosts != nil {
			return errHostsUnused
		}
		return nil
	}
	return Network(n).check()
}

func networkOverride(f *schema.Fields) NetworkOverride {
	var o NetworkOverride
	if mode := schema.Optional(f, "network_mode", decodeNetworkMode); mode != nil {
		o.Mode = *mode
	}
	o.AllowedHosts = schema.OptionalList(f, "allowed_hosts", DecodeHosts)
	return o
}

func decodeNetworkMode(c *schema.Cursor, v value.Value) (NetworkMode, bool) {
	return schema.Enum(NoNetwork, Public, Allowlist)(c, v)
}

// DecodeHosts validates and normalises a list of host names.
func DecodeHosts(c *schema.Cursor, v value.Value) ([]string, bool) {
	return schema.After(schema.List(schema.Str), NormalizeHosts)(c, v)
}

// NormalizeHosts trims host names, makes them lower case and drops trailing
// dots; the first that is no host name is an error (section 3.7).
func NormalizeHosts(hosts []string) ([]string, error) {
	out := make([]string, len(hosts))
	for i, host := range hosts {
		normal, err := normalizeHost(host)
		if err != nil {
			return nil, err
		}
		out[i] = normal
	}
	return out, nil
}

var (
	errHostEmpty    = exception.Errorf(exception.ValueError, "allowed_hosts entries must be non-empty hostnames.")
	errHostURL      = exception.Errorf(exception.ValueError, "allowed_hosts entries must be hostnames, not URLs, ports, or paths.")
	errHostWildcard = exception.Errorf(exception.ValueError, "allowed_hosts wildcard entries must use a leading '*.' prefix.")
	errHostInvalid  = exception.Errorf(exception.ValueError, "allowed_hosts entries must be valid hostnames or leading wildcard host patterns "+
		"containing only letters, digits, hyphens, and dots.")
)

var hostLabel = regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

func normalizeHost(host string) (string, error) {
	host = strings.TrimRight(lower(value.Strip(host)), ".")
	switch name := strings.TrimPrefix(host, "*."); {
	case host == "":
		return "", errHostEmpty
	case strings.Contains(host, "://") || strings.ContainsAny(host, "/:"):
		return "", errHostURL
	case strings.Contains(name, "*"):
		return "", errHostWildcard
	default:
		for label := range strings.SplitSeq(name, ".") {
			if !hostLabel.MatchString(label) {
				return "", errHostInvalid
			}
		}
		return host, nil
	}
}

// NetworkPlan holds the policies of one trial or step (section 3.7). A
// baseline holds while the environment starts, a phase's policy while the
// agent or the verifier runs.
type NetworkPlan struct {
	AgentBaseline Network
	AgentPhase    Network
	// VerifierBaseline is nil when the verifier shares the agent's environment.
	VerifierBaseline *Network
	VerifierPhase    Network
	// Warnings name hosts that could not be added because everything is
	// allowed already.
	Warnings []string
}

// Isolate takes the network from the environments of a task that do not say that
// they want one: Harbor's default is the public network.
func (c *Config) Isolate() {
	environments := []*Environment{&c.Environment, c.Verifier.Environment}
	for i := range c.Steps {
		environments = append(environments, c.Steps[i].Verifier.Environment)
	}
	for _, e := range environments {
		if e != nil && !e.NetworkStated {
			e.Network = Network{Mode: NoNetwork}
		}
	}
}

// PlanNetwork computes the policies of a step, or of a single-step task when
// step is nil. agentHosts and environmentHosts are what the job allows in
// addition; they must be normalised.
func (c *Config) PlanNetwork(step *Step, agentHosts, environmentHosts []string) NetworkPlan {
	var p NetworkPlan
	p.AgentBaseline = p.extend(c.Environment.Network, environmentHosts, "environment.extra_allowed_hosts")
	stepAgent, stepVerifier := NetworkOverride{}, NetworkOverride{}
	if step != nil {
		stepAgent, stepVerifier = step.Agent.Network, step.Verifier.Network
	}
	p.AgentPhase = p.extend(override(p.AgentBaseline, c.Agent.Network, stepAgent), agentHosts, "agent.extra_allowed_hosts")
	base := p.AgentBaseline
	if c.VerifierMode(step) == Separate {
		base = c.VerifierEnvironment(step).Network
		if c.Verifier.Environment == nil && (step == nil || step.Verifier.Environment == nil) {
			base = p.extend(base, environmentHosts, "")
		}
		p.VerifierBaseline = &base
	}
	p.VerifierPhase = override(base, c.Verifier.Network, stepVerifier)
	return p
}

// override returns the last of the overrides that is one, else the base.
func override(base Network, overrides ...NetworkOverride) Network {
	for _, o := range overrides {
		if o.Mode != "" {
			base = Network(o)
		}
	}
	return base
}

// extend adds hosts to a policy: without a network it becomes an allow list,
// and where everything is allowed nothing changes. A warning names the
// setting; an empty name is silent.
func (p *NetworkPlan) extend(n Network, hosts []string, setting string) Network {
	if len(hosts) == 0 {
		return n
	}
	if n.Mode == Public {
		if setting != "" {
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s has no effect: the network mode is 'public'", setting))
		}
		return n
	}
	merged := slices.Clone(n.AllowedHosts)
	for _, host := range hosts {
		if !slices.Contains(merged, host) {
			merged = append(merged, host)
		}
	}
	return Network{Mode: Allowlist, AllowedHosts: merged}
}

// CheckSwitching returns the error of a trial whose phases need another policy
// than their environment started with, for an environment that cannot change
// it. step is empty for a single-step task.
func (p *NetworkPlan) CheckSwitching(step string) error {
	agent, verifier := "[agent]", "[verifier]"
	if step != "" {
		agent = "Step " + value.Repr(value.Str(step))
		verifier = agent
	}
	if !p.AgentPhase.Equal(p.AgentBaseline) {
		return switchError(agent, "agent", "agent environment")
	}
	base, environment := p.AgentBaseline, "agent environment"
	if p.VerifierBaseline != nil {
		base, environment = *p.VerifierBaseline, "separate verifier environment"
	}
	if !p.VerifierPhase.Equal(base) {
		return switchError(verifier, "verifier", environment)
	}
	return nil
}

func switchError(label, phase, environment string) error {
	return exception.Errorf(exception.ValueError, "%s %s phase network policy differs from the %s baseline, "+
		"but this environment cannot change network policy after start.", label, phase, environment)
}
