package jobdir

import (
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

// Indent is the indentation of the files that Harbor also writes.
const Indent = 4

// Encoder turns configurations and results into documents. Credentials in env
// maps are redacted always.
type Encoder struct {
	// Host is the environment of the runner: a credential that equals the
	// host variable of the same name is written as a reference to it. Nil is
	// an empty environment.
	Lookup harbor.Lookup
	// OmitNull leaves out model fields that are null, as lock files do.
	OmitNull bool
}

func (e Encoder) object() *dump.Object { return &dump.Object{OmitNull: e.OmitNull} }

// AppendJSON appends the text of a trial's config.json.
func (c TrialConfig) AppendJSON(dst []byte, lookup harbor.Lookup) []byte {
	return value.AppendPydantic(dst, Encoder{Lookup: lookup}.Config(c), Indent)
}

// Config dumps a trial configuration.
func (e Encoder) Config(c TrialConfig) *value.Object {
	o := e.object()
	o.Set("task", e.Task(c.Task))
	o.Str("trial_name", c.TrialName)
	o.Str("trials_dir", c.TrialsDir)
	o.Float("timeout_multiplier", c.TimeoutMultiplier)
	o.OptFloat("agent_timeout_multiplier", c.AgentTimeoutMultiplier)
	o.OptFloat("verifier_timeout_multiplier", c.VerifierTimeoutMultiplier)
	o.OptFloat("agent_setup_timeout_multiplier", c.AgentSetupTimeoutMultiplier)
	o.OptFloat("environment_build_timeout_multiplier", c.EnvironmentBuildTimeoutMultiplier)
	o.Set("agent", e.Agent(c.Agent))
	o.Set("environment", e.Environment(c.Environment))
	o.Set("verifier", e.Verifier(c.Verifier))
	o.Set("artifacts", e.Artifacts(c.Artifacts))
	o.Strs("extra_instruction_paths", c.ExtraInstructionPaths)
	if c.JobID == nil {
		o.Set("job_id", nil)
	} else {
		o.Str("job_id", c.JobID.String())
	}
	return o.Value()
}

// Task dumps the run side of a task.
func (e Encoder) Task(t TaskConfig) *value.Object {
	o := e.object()
	o.OptStr("path", t.Path)
	o.OptStr("git_url", t.GitURL)
	o.OptStr("git_commit_id", t.GitCommitID)
	o.OptStr("name", t.Name)
	o.OptStr("ref", t.Ref)
	o.Bool("overwrite", t.Overwrite)
	o.OptStr("download_dir", t.DownloadDir)
	o.OptStr("source", t.Source)
	return o.Value()
}

// Agent dumps an agent configuration.
func (e Encoder) Agent(a AgentConfig) *value.Object {
	o := e.object()
	o.OptStr("name", a.Name)
	o.OptStr("import_path", a.ImportPath)
	o.OptStr("model_name", a.ModelName)
	o.Strs("skills", a.Skills)
	o.OptFloat("override_timeout_sec", a.OverrideTimeoutSec)
	o.OptFloat("override_setup_timeout_sec", a.OverrideSetupTimeoutSec)
	o.OptFloat("max_timeout_sec", a.MaxTimeoutSec)
	o.Strs("extra_allowed_hosts", a.ExtraAllowedHosts)
	o.Dict("kwargs", a.Kwargs)
	o.Set("env", e.env(a.Env))
	o.Set("mcp_servers", dump.List(a.MCPServers, e.mcpServer))
	return o.Value()
}

func (e Encoder) mcpServer(s MCPServer) value.Value {
	o := e.object()
	o.Str("name", s.Name)
	o.Str("transport", s.Transport)
	o.OptStr("url", s.URL)
	o.OptStr("command", s.Command)
	o.Strs("args", s.Args)
	return o.Value()
}

// Environment dumps an environment configuration.
func (e Encoder) Environment(c EnvironmentConfig) *value.Object {
	o := e.object()
	o.OptStr("type", c.Type)
	o.OptStr("import_path", c.ImportPath)
	o.Bool("force_build", c.ForceBuild)
	o.Bool("delete", c.Delete)
	o.Str("cpu_enforcement_policy", c.CPUEnforcementPolicy)
	o.Str("memory_enforcement_policy", c.MemoryEnforcementPolicy)
	o.OptInt("override_cpus", c.OverrideCPUs)
	o.OptInt("override_memory_mb", c.OverrideMemoryMB)
	o.OptInt("override_storage_mb", c.OverrideStorageMB)
	o.OptInt("override_gpus", c.OverrideGPUs)
	if c.OverrideTPU == nil {
		o.Set("override_tpu", nil)
	} else {
		tpu := e.object()
		tpu.Str("type", c.OverrideTPU.Type)
		tpu.Str("topology", c.OverrideTPU.Topology)
		o.Set("override_tpu", tpu.Value())
	}
	if c.Mounts == nil {
		o.Set("mounts", nil)
	} else {
		o.Set("mounts", dump.List(c.Mounts, func(m *value.Object) value.Value { return m }))
	}
	o.Strs("extra_docker_compose", c.ExtraDockerCompose)
	o.Set("env", e.env(c.Env))
	o.Dict("kwargs", c.Kwargs)
	o.Strs("extra_allowed_hosts", c.ExtraAllowedHosts)
	return o.Value()
}

// Verifier dumps the run side of verification. An import path that is null
// and keyword arguments that are empty are left out always.
func (e Encoder) Verifier(c VerifierConfig) *value.Object {
	o := e.object()
	o.OptFloat("override_timeout_sec", c.OverrideTimeoutSec)
	o.OptFloat("max_timeout_sec", c.MaxTimeoutSec)
	o.Set("env", e.env(c.Env))
	if c.ImportPath != nil {
		o.OptStr("import_path", c.ImportPath)
	}
	if c.Kwargs != nil && c.Kwargs.Len() > 0 {
		o.Dict("kwargs", c.Kwargs)
	}
	o.Bool("disable", c.Disable)
	return o.Value()
}

// Artifacts dumps a list of artifacts.
func (e Encoder) Artifacts(list []Artifact) value.List {
	return dump.List(list, func(a Artifact) value.Value {
		if a.Bare {
			return value.Str(a.Source)
		}
		o := e.object()
		o.Str("source", a.Source)
		o.OptStr("destination", a.Destination)
		o.Strs("exclude", a.Exclude)
		return o.Value()
	})
}

// env dumps a redacted env map.
func (e Encoder) env(env Env) *value.Object {
	out := value.NewObject(env.Len())
	for name, text := range env.All() {
		out.Set(name, value.Str(harbor.RedactEnv(name, text, e.Lookup)))
	}
	return out
}
