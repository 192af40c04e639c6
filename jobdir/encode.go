package jobdir

import (
	"slices"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/value"
)

// AppendJSON appends the text of a job's config.json. Credentials in env maps
// are redacted; lookup is the environment they are looked up in.
func (c Config) AppendJSON(dst []byte, lookup harbor.Lookup) []byte {
	return value.AppendPydantic(dst, encoder{Encoder{Lookup: lookup}}.config(c), Indent)
}

// encoder adds the job's models to those of a trial.
type encoder struct{ Encoder }

func (e encoder) object() *dump.Object { return &dump.Object{OmitNull: e.OmitNull} }

func (e encoder) config(c Config) *value.Object {
	o := e.object()
	o.Str("job_name", c.JobName)
	o.Str("jobs_dir", c.JobsDir)
	o.Int("n_attempts", c.NAttempts)
	o.Float("timeout_multiplier", c.TimeoutMultiplier)
	o.OptFloat("agent_timeout_multiplier", c.AgentTimeoutMultiplier)
	o.OptFloat("verifier_timeout_multiplier", c.VerifierTimeoutMultiplier)
	o.OptFloat("agent_setup_timeout_multiplier", c.AgentSetupTimeoutMultiplier)
	o.OptFloat("environment_build_timeout_multiplier", c.EnvironmentBuildTimeoutMultiplier)
	o.Bool("debug", c.Debug)
	o.Int("n_concurrent_trials", c.NConcurrentTrials)
	o.Bool("quiet", c.Quiet)
	o.Set("retry", e.retry(c.Retry))
	o.Set("environment", e.Environment(c.Environment))
	o.Set("verifier", e.Verifier(c.Verifier))
	o.Set("metrics", dump.List(c.Metrics, func(m MetricConfig) value.Value {
		return e.withKwargs("type", string(m.Type), m.Kwargs)
	}))
	o.Set("agents", dump.List(c.Agents, func(a AgentConfig) value.Value { return e.Agent(a) }))
	o.Set("datasets", dump.List(c.Datasets, e.dataset))
	o.Set("tasks", dump.List(c.Tasks, func(t TaskConfig) value.Value { return e.Task(t) }))
	o.Set("artifacts", e.Artifacts(c.Artifacts))
	o.Strs("extra_instruction_paths", c.ExtraInstructionPaths)
	o.Set("plugins", dump.List(c.Plugins, func(p PluginConfig) value.Value {
		return e.withKwargs("import_path", p.ImportPath, p.Kwargs)
	}))
	return o.Value()
}

func (e encoder) withKwargs(key, value string, kwargs *value.Object) value.Value {
	o := e.object()
	o.Str(key, value)
	o.Dict("kwargs", kwargs)
	return o.Value()
}

func (e encoder) retry(r RetryConfig) *value.Object {
	o := e.object()
	o.Int("max_retries", r.MaxRetries)
	o.Set("include_exceptions", sortedSet(r.IncludeExceptions))
	o.Set("exclude_exceptions", sortedSet(r.ExcludeExceptions))
	o.Float("wait_multiplier", r.WaitMultiplier)
	o.Float("min_wait_sec", r.MinWaitSec)
	o.Float("max_wait_sec", r.MaxWaitSec)
	return o.Value()
}

// sortedSet dumps a set of texts; nil is null. The format leaves the order
// open.
func sortedSet(set []string) value.Value {
	if set == nil {
		return value.Null{}
	}
	sorted := slices.Clone(set)
	slices.Sort(sorted)
	return dump.Strs(slices.Compact(sorted))
}

func (e encoder) dataset(d DatasetConfig) value.Value {
	o := e.object()
	o.OptStr("path", d.Path)
	o.OptStr("name", d.Name)
	o.OptStr("version", d.Version)
	o.OptStr("ref", d.Ref)
	o.OptStr("registry_url", d.RegistryURL)
	o.OptStr("registry_path", d.RegistryPath)
	o.Bool("overwrite", d.Overwrite)
	o.OptStr("download_dir", d.DownloadDir)
	optStrs(o, "task_names", d.TaskNames)
	optStrs(o, "exclude_task_names", d.ExcludeTaskNames)
	o.OptInt("n_tasks", d.NTasks)
	return o.Value()
}

func optStrs(o *dump.Object, key string, list []string) {
	if list == nil {
		o.Set(key, nil)
		return
	}
	o.Strs(key, list)
}

// Equal reports whether two configurations describe the same job, as resuming
// asks: everything counts but the name and debug (Harbor job format, section
// 1.1). Values are compared as they would be written.
func (c Config) Equal(d Config, lookup harbor.Lookup) bool {
	return c.identity(lookup) == d.identity(lookup)
}

func (c Config) identity(lookup harbor.Lookup) string {
	c.JobName, c.Debug = "", false
	return string(dump.AppendCanonical(nil, encoder{Encoder{Lookup: lookup}}.config(c)))
}
