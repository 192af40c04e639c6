package harbor

import (
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

// JSON returns the configuration as Harbor dumps it: every key in its order,
// absent ones as null, enums as strings (sections 3.2 to 3.9). Write it with
// value.AppendPydantic.
func (c *Config) JSON() *value.Object {
	var o dump.Object
	o.Str("schema_version", c.SchemaVersion)
	o.Set("task", nullable(c.Task, dumpPackage))
	o.Dict("metadata", c.Metadata)
	o.Dict("verifier", dumpVerifier(&c.Verifier))
	o.Dict("agent", dumpAgent(&c.Agent))
	o.Dict("environment", dumpEnvironment(&c.Environment))
	var solution dump.Object
	solution.Dict("env", dumpEnv(c.Solution.Env))
	o.Dict("solution", solution.Value())
	o.OptStr("source", c.Source)
	o.Set("multi_step_reward_strategy", wordOrNull(c.MultiStepRewardStrategy))
	o.Set("steps", nil)
	if c.Steps != nil {
		o.Set("steps", dump.List(c.Steps, dumpStep))
	}
	o.Set("artifacts", dump.List(c.Artifacts, dumpArtifact))
	return o.Value()
}

func nullable[T any](v *T, value func(*T) *value.Object) value.Value {
	if v == nil {
		return nil
	}
	return value(v)
}

func wordOrNull[T ~string](word T) value.Value {
	if word == "" {
		return nil
	}
	return value.Str(word)
}

func strsOrNull(list []string) value.Value {
	if list == nil {
		return nil
	}
	return dump.Strs(list)
}

func intOrNull(n *value.Int) value.Value {
	if n == nil {
		return nil
	}
	return *n
}

func dumpEnv(env Env) *value.Object {
	out := value.NewObject(env.Len())
	for k, v := range env.All() {
		out.Set(k, value.Str(v))
	}
	return out
}

func dumpPackage(p *PackageInfo) *value.Object {
	var o dump.Object
	o.Str("name", p.Name)
	o.Str("description", p.Description)
	o.Set("authors", dump.List(p.Authors, func(a Author) value.Value {
		var o dump.Object
		o.Str("name", a.Name)
		o.OptStr("email", a.Email)
		return o.Value()
	}))
	o.Strs("keywords", p.Keywords)
	return o.Value()
}

func dumpOverride(o *dump.Object, n NetworkOverride) {
	o.Set("network_mode", wordOrNull(n.Mode))
	o.Set("allowed_hosts", strsOrNull(n.AllowedHosts))
}

func dumpUser(u *User) value.Value {
	switch {
	case u == nil:
		return nil
	case u.ID != nil:
		return *u.ID
	}
	return value.Str(u.Name)
}

func dumpAgent(a *Agent) *value.Object {
	var o dump.Object
	dumpOverride(&o, a.Network)
	o.OptFloat("timeout_sec", a.TimeoutSec)
	o.Set("user", dumpUser(a.User))
	return o.Value()
}

func dumpVerifier(v *Verifier) *value.Object {
	var o dump.Object
	dumpOverride(&o, v.Network)
	o.Float("timeout_sec", v.TimeoutSec)
	o.Dict("env", dumpEnv(v.Env))
	o.Set("user", dumpUser(v.User))
	o.Set("environment_mode", wordOrNull(v.EnvironmentMode))
	o.Set("environment", nullable(v.Environment, dumpEnvironment))
	return o.Value()
}

func dumpEnvironment(e *Environment) *value.Object {
	var o dump.Object
	o.Str("network_mode", string(e.Network.Mode))
	o.Set("allowed_hosts", strsOrNull(e.Network.AllowedHosts))
	o.Float("build_timeout_sec", e.BuildTimeoutSec)
	o.OptStr("docker_image", e.DockerImage)
	o.Str("os", string(e.OS))
	o.Set("cpus", intOrNull(e.CPUs))
	o.Set("memory_mb", intOrNull(e.MemoryMB))
	o.Set("storage_mb", intOrNull(e.StorageMB))
	o.Set("gpus", intOrNull(e.GPUs))
	o.Set("gpu_types", strsOrNull(e.GPUTypes))
	o.Set("tpu", nullable(e.TPU, func(t *TPU) *value.Object {
		var o dump.Object
		o.Str("type", t.Type)
		o.Str("topology", t.Topology)
		return o.Value()
	}))
	o.Set("mcp_servers", dump.List(e.MCPServers, dumpMCPServer))
	o.Dict("env", dumpEnv(e.Env))
	o.OptStr("skills_dir", e.SkillsDir)
	o.Set("healthcheck", nullable(e.Healthcheck, dumpHealthcheck))
	o.OptStr("workdir", e.Workdir)
	return o.Value()
}

func dumpMCPServer(s MCPServer) value.Value {
	var o dump.Object
	o.Str("name", s.Name)
	o.Str("transport", s.Transport)
	o.OptStr("url", s.URL)
	o.OptStr("command", s.Command)
	o.Strs("args", s.Args)
	return o.Value()
}

func dumpHealthcheck(h *Healthcheck) *value.Object {
	var o dump.Object
	o.Str("command", h.Command)
	o.Float("interval_sec", h.IntervalSec)
	o.Float("timeout_sec", h.TimeoutSec)
	o.Float("start_period_sec", h.StartPeriodSec)
	o.Float("start_interval_sec", h.StartIntervalSec)
	o.Int("retries", h.Retries)
	return o.Value()
}

func dumpStep(s Step) value.Value {
	var o dump.Object
	o.Str("name", s.Name)
	o.Dict("agent", dumpAgent(&s.Agent))
	o.Dict("verifier", dumpVerifier(&s.Verifier))
	o.Set("min_reward", dumpMinReward(s.MinReward))
	o.Set("healthcheck", nullable(s.Healthcheck, dumpHealthcheck))
	o.Set("artifacts", dump.List(s.Artifacts, dumpArtifact))
	return o.Value()
}

func dumpMinReward(m *MinReward) value.Value {
	switch {
	case m == nil:
		return nil
	case m.ByKey == nil:
		return value.Float(m.Number)
	}
	out := value.NewObject(m.ByKey.Len())
	for k, x := range m.ByKey.All() {
		out.Set(k, value.Float(x))
	}
	return out
}

func dumpArtifact(a Artifact) value.Value {
	if a.Bare {
		return value.Str(a.Source)
	}
	var o dump.Object
	o.Str("source", a.Source)
	o.OptStr("destination", a.Destination)
	o.Strs("exclude", a.Exclude)
	return o.Value()
}
