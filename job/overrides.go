package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Overrides are the settings of a command line, on top of a configuration. Nil
// and empty fields change nothing (Harbor job format, section 7.1).
type Overrides struct {
	JobName, JobsDir       *string
	NAttempts, NConcurrent *int
	Quiet, Debug           bool

	TimeoutMultiplier, AgentTimeoutMultiplier, VerifierTimeoutMultiplier *float64
	AgentSetupTimeoutMultiplier, EnvironmentBuildTimeoutMultiplier       *float64

	MaxRetries                 *int
	RetryInclude, RetryExclude []string

	Agent, AgentImportPath *string
	Models                 []string
	AgentKwargs, AgentEnv  []string // "key=value"
	MaxSteps               *int     // of an episode
	// KnownAgents says which settings of an agent are text; nil means none.
	KnownAgents        agent.Registry
	MCPServers         []jobdir.MCPServer
	Skills, AgentHosts []string

	EnvironmentType, EnvironmentImportPath       *string
	ForceBuild, Delete                           *bool
	CPUPolicy, MemoryPolicy                      *string
	CPUs, MemoryMB, StorageMB, GPUs              *int
	TPU                                          *string // "TYPE=TOPOLOGY"
	Mounts                                       *string // JSON
	DockerCompose, EnvironmentHosts              []string
	EnvironmentKwargs                            []string // "key=value"
	VerifierEnv, VerifierKwargs                  []string // "key=value"
	VerifierImportPath                           *string
	DisableVerification                          bool
	Artifacts, ExtraInstructionPaths             []string
	Path, Dataset, Task                          *string
	IncludeTasks, ExcludeTasks                   []string
	NTasks                                       *int
	RegistryURL, RegistryPath, GitURL, GitCommit *string
	Plugins, PluginKwargs                        []string
}

// Apply changes the configuration. isTask tells whether a path is a valid task
// directory; any other path is a dataset. All problems are reported at once.
func (o Overrides) Apply(c *jobdir.Config, isTask func(path string) bool) error {
	set(&c.JobName, o.JobName)
	if o.JobsDir != nil {
		c.JobsDir = schema.CleanPath(*o.JobsDir)
	}
	set(&c.NAttempts, o.NAttempts)
	set(&c.NConcurrentTrials, o.NConcurrent)
	c.Quiet = c.Quiet || o.Quiet
	c.Debug = c.Debug || o.Debug
	set(&c.TimeoutMultiplier, o.TimeoutMultiplier)
	setPtr(&c.AgentTimeoutMultiplier, o.AgentTimeoutMultiplier)
	setPtr(&c.VerifierTimeoutMultiplier, o.VerifierTimeoutMultiplier)
	setPtr(&c.AgentSetupTimeoutMultiplier, o.AgentSetupTimeoutMultiplier)
	setPtr(&c.EnvironmentBuildTimeoutMultiplier, o.EnvironmentBuildTimeoutMultiplier)
	set(&c.Retry.MaxRetries, o.MaxRetries)
	setList(&c.Retry.IncludeExceptions, o.RetryInclude)
	setList(&c.Retry.ExcludeExceptions, o.RetryExclude)
	if len(o.Artifacts) > 0 {
		c.Artifacts = nil
		for _, source := range o.Artifacts {
			c.Artifacts = append(c.Artifacts, jobdir.Artifact{Bare: true, Source: source})
		}
	}
	if len(o.ExtraInstructionPaths) > 0 {
		c.ExtraInstructionPaths = cleanPaths(o.ExtraInstructionPaths)
	}
	return errors.Join(
		o.applyAgents(c),
		o.applyEnvironment(&c.Environment),
		o.applyVerifier(&c.Verifier),
		o.applyTasks(c, isTask),
		o.applyPlugins(c),
	)
}

func set[T any](dst *T, v *T) {
	if v != nil {
		*dst = *v
	}
}

func setPtr[T any](dst **T, v *T) {
	if v != nil {
		*dst = v
	}
}

func setList(dst *[]string, v []string) {
	if len(v) > 0 {
		*dst = v
	}
}

func cleanPaths(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = schema.CleanPath(p)
	}
	return out
}

// applyAgents replaces the agents when one is named, one for each model;
// otherwise the settings go to every configured agent, and models are ignored.
func (o Overrides) applyAgents(c *jobdir.Config) error {
	if o.Agent != nil || o.AgentImportPath != nil {
		models := []*string{nil}
		if len(o.Models) > 0 {
			models = nil
			for _, m := range o.Models {
				models = append(models, &m)
			}
		}
		c.Agents = nil
		for _, m := range models {
			c.Agents = append(c.Agents, jobdir.AgentConfig{Name: o.Agent, ImportPath: o.AgentImportPath, ModelName: m})
		}
	}
	var errs []error
	for i := range c.Agents {
		errs = append(errs, o.configureAgent(&c.Agents[i]))
	}
	return errors.Join(dedup(errs)...)
}

// configureAgent adds settings to an agent's own.
func (o Overrides) configureAgent(a *jobdir.AgentConfig) error {
	var entry agent.Entry
	if a.Name != nil {
		entry, _ = o.KnownAgents.Find(*a.Name)
	}
	var kwargsErr, envErr error
	a.Kwargs, kwargsErr = mergeKwargs(a.Kwargs, o.AgentKwargs, entry.Texts()...)
	if o.MaxSteps != nil {
		a.Kwargs = withSetting(a.Kwargs, agent.MaxStepsSetting, value.NewInt(int64(*o.MaxSteps)))
	}
	a.Env, envErr = mergeEnv(a.Env, o.AgentEnv)
	hosts, hostsErr := normaliseHosts(o.AgentHosts)
	a.Skills = append(a.Skills, cleanPaths(o.Skills)...)
	a.MCPServers = append(a.MCPServers, o.MCPServers...)
	a.ExtraAllowedHosts = append(a.ExtraAllowedHosts, hosts...)
	return errors.Join(hostsErr, kwargsErr, envErr)
}

// dedup drops errors that repeat another: the same flag goes to every agent.
func dedup(errs []error) []error {
	seen := map[string]bool{}
	var out []error
	for _, err := range errs {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			out = append(out, err)
		}
	}
	return out
}

func (o Overrides) applyEnvironment(e *jobdir.EnvironmentConfig) error {
	if o.EnvironmentType != nil {
		e.SetBackend(*o.EnvironmentType)
	}
	if o.EnvironmentImportPath != nil {
		e.Type, e.ImportPath = nil, o.EnvironmentImportPath
	}
	set(&e.ForceBuild, o.ForceBuild)
	set(&e.Delete, o.Delete)
	set(&e.CPUEnforcementPolicy, o.CPUPolicy)
	set(&e.MemoryEnforcementPolicy, o.MemoryPolicy)
	setPtr(&e.OverrideCPUs, o.CPUs)
	setPtr(&e.OverrideMemoryMB, o.MemoryMB)
	setPtr(&e.OverrideStorageMB, o.StorageMB)
	setPtr(&e.OverrideGPUs, o.GPUs)
	e.ExtraDockerCompose = append(e.ExtraDockerCompose, cleanPaths(o.DockerCompose)...)
	hosts, hostsErr := normaliseHosts(o.EnvironmentHosts)
	e.ExtraAllowedHosts = append(e.ExtraAllowedHosts, hosts...)
	var kwargsErr error
	e.Kwargs, kwargsErr = mergeKwargs(e.Kwargs, o.EnvironmentKwargs)
	return errors.Join(hostsErr, kwargsErr, o.applyTPU(e), o.applyMounts(e))
}

func (o Overrides) applyTPU(e *jobdir.EnvironmentConfig) error {
	if o.TPU == nil {
		return nil
	}
	kind, topology, ok := strings.Cut(*o.TPU, "=")
	if !ok {
		return jobdir.RuleError(fmt.Sprintf("Invalid TPU format: %s. Expected TYPE=TOPOLOGY", *o.TPU))
	}
	doc := value.NewObject(0)
	tpu := value.NewObject(0)
	tpu.Set("type", value.Str(strings.TrimSpace(kind)))
	tpu.Set("topology", value.Str(strings.TrimSpace(topology)))
	doc.Set("override_tpu", tpu)
	parsed, _, err := schema.Validate(doc, jobdir.DecodeEnvironment)
	if err != nil {
		return fmt.Errorf("reading --override-tpu: %w", err)
	}
	e.OverrideTPU = parsed.OverrideTPU
	return nil
}

func (o Overrides) applyMounts(e *jobdir.EnvironmentConfig) error {
	if o.Mounts == nil {
		return nil
	}
	list, err := value.DecodeText(*o.Mounts)
	if err != nil {
		return fmt.Errorf("reading --mounts: %w", err)
	}
	doc := value.NewObject(0)
	doc.Set("mounts", list)
	parsed, _, err := schema.Validate(doc, jobdir.DecodeEnvironment)
	if err != nil {
		return fmt.Errorf("reading --mounts: %w", err)
	}
	e.Mounts = parsed.Mounts
	return nil
}

func (o Overrides) applyVerifier(v *jobdir.VerifierConfig) error {
	var envErr, kwargsErr error
	v.Env, envErr = mergeEnv(v.Env, o.VerifierEnv)
	v.Kwargs, kwargsErr = mergeKwargs(v.Kwargs, o.VerifierKwargs)
	setPtr(&v.ImportPath, o.VerifierImportPath)
	v.Disable = v.Disable || o.DisableVerification
	return errors.Join(envErr, kwargsErr)
}

func (o Overrides) applyPlugins(c *jobdir.Config) error {
	for _, path := range o.Plugins {
		c.Plugins = append(c.Plugins, jobdir.PluginConfig{ImportPath: path})
	}
	if len(o.PluginKwargs) == 0 {
		return nil
	}
	switch {
	case len(c.Plugins) == 0:
		return jobdir.RuleError("Plugin kwargs require --plugin or a plugin configured in the job config.")
	case len(o.Plugins) == 0 && len(c.Plugins) > 1:
		return jobdir.RuleError("Plugin kwargs with multiple config plugins require --plugin to disambiguate.")
	}
	last := &c.Plugins[len(c.Plugins)-1]
	var err error
	last.Kwargs, err = mergeKwargs(last.Kwargs, o.PluginKwargs)
	return err
}

// mergeKwargs adds "key=value" settings: the value as JSON, else True, False
// or None, else as text. The settings called texts are text in any case; one in
// the quotes of JSON is what they enclose.
func mergeKwargs(into *value.Object, kwargs []string, texts ...string) (*value.Object, error) {
	if len(kwargs) == 0 {
		return into, nil
	}
	out := copyObject(into)
	var errs []error
	for _, kwarg := range kwargs {
		key, text, ok := strings.Cut(kwarg, "=")
		if !ok {
			errs = append(errs, jobdir.RuleError(fmt.Sprintf("Invalid kwarg format: %s. Expected key=value", kwarg)))
			continue
		}
		key, text = strings.TrimSpace(key), strings.TrimSpace(text)
		v := kwargValue(text)
		if _, isText := v.(value.Str); !isText && slices.Contains(texts, key) {
			v = value.Str(text)
		}
		out.Set(key, v)
	}
	return out, errors.Join(errs...)
}

// withSetting returns a copy with another setting.
func withSetting(o *value.Object, key string, v value.Value) *value.Object {
	out := copyObject(o)
	out.Set(key, v)
	return out
}

func copyObject(o *value.Object) *value.Object {
	out := value.NewObject(0)
	if o != nil {
		for k, v := range o.All() {
			out.Set(k, v)
		}
	}
	return out
}

func kwargValue(text string) value.Value {
	switch text {
	case "True":
		return value.Bool(true)
	case "False":
		return value.Bool(false)
	case "None":
		return value.Null{}
	}
	if v, err := value.DecodeText(text); err == nil {
		return v
	}
	return value.Str(text)
}

// mergeEnv adds "KEY=VALUE" settings; values are always text.
func mergeEnv(into jobdir.Env, pairs []string) (jobdir.Env, error) {
	out := jobdir.Env{Map: into.Clone()}
	var errs []error
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			errs = append(errs, jobdir.RuleError(fmt.Sprintf("Invalid env var format: %s. Expected KEY=VALUE", pair)))
			continue
		}
		out.Set(strings.TrimSpace(key), strings.TrimSpace(value))
	}
	return out, errors.Join(errs...)
}

// normaliseHosts checks host names the way configurations do.
func normaliseHosts(hosts []string) ([]string, error) {
	if len(hosts) == 0 {
		return nil, nil
	}
	list := make(value.List, len(hosts))
	for i, h := range hosts {
		list[i] = value.Str(h)
	}
	doc := value.NewObject(0)
	doc.Set("extra_allowed_hosts", list)
	parsed, _, err := schema.Validate(doc, jobdir.DecodeEnvironment)
	if err != nil {
		return nil, fmt.Errorf("reading allowed hosts: %w", err)
	}
	return parsed.ExtraAllowedHosts, nil
}
