package jobdir

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Format is the syntax of a configuration file.
type Format string

// The formats that configurations come in.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// FormatOf derives the format from a file name. Only ".json" and ".yaml" are
// known; ".yml" is not (Harbor job format, section 1.11).
func FormatOf(name string) (Format, error) {
	switch ext := filepath.Ext(name); ext {
	case ".json":
		return JSON, nil
	case ".yaml":
		return YAML, nil
	default:
		return "", RuleError("Unsupported config file format: " + ext)
	}
}

// DecodeDocument reads the text of a configuration file as a value: JSON, or
// YAML 1.1.
func DecodeDocument(data []byte, format Format) (value.Value, error) {
	if format == YAML {
		return yaml11.Decode(data)
	}
	return value.Decode(data)
}

// ParseConfig reads a job configuration. now, in local time, names a job
// without name. The error for an invalid document is a *schema.Errors holding
// every problem; keys that nothing asks for are in the report.
func ParseConfig(data []byte, format Format, now time.Time) (Config, schema.Report, error) {
	v, err := DecodeDocument(data, format)
	if err != nil {
		return Config{}, schema.Report{}, fmt.Errorf("reading job config: %w", err)
	}
	return schema.Validate(v, decodeConfig(now))
}

func decodeConfig(now time.Time) schema.Decoder[Config] {
	return schema.Before(legacyOrchestrator, schema.Model("JobConfig", func(f *schema.Fields) Config {
		return configFields(f, now)
	}))
}

func configFields(f *schema.Fields, now time.Time) Config {
	def := NewConfig(now)
	return Config{
		JobName:                           schema.Default(f, "job_name", def.JobName, schema.Str),
		JobsDir:                           schema.Default(f, "jobs_dir", def.JobsDir, schema.Path),
		NAttempts:                         schema.Default(f, "n_attempts", def.NAttempts, schema.SmallInt),
		TimeoutMultiplier:                 schema.Default(f, "timeout_multiplier", def.TimeoutMultiplier, schema.Float),
		AgentTimeoutMultiplier:            schema.Optional(f, "agent_timeout_multiplier", schema.Float),
		VerifierTimeoutMultiplier:         schema.Optional(f, "verifier_timeout_multiplier", schema.Float),
		AgentSetupTimeoutMultiplier:       schema.Optional(f, "agent_setup_timeout_multiplier", schema.Float),
		EnvironmentBuildTimeoutMultiplier: schema.Optional(f, "environment_build_timeout_multiplier", schema.Float),
		Debug:                             schema.Default(f, "debug", false, schema.Bool),
		NConcurrentTrials:                 schema.Default(f, "n_concurrent_trials", def.NConcurrentTrials, schema.SmallInt),
		Quiet:                             schema.Default(f, "quiet", false, schema.Bool),
		Retry:                             schema.Nested(f, "retry", decodeRetry),
		Environment:                       schema.Nested(f, "environment", DecodeEnvironment),
		Verifier:                          schema.Nested(f, "verifier", decodeVerifier),
		Metrics:                           schema.Default(f, "metrics", nil, schema.List(DecodeMetric)),
		Agents:                            schema.Default(f, "agents", def.Agents, schema.List(decodeAgent)),
		Datasets:                          schema.Default(f, "datasets", nil, schema.List(decodeDataset)),
		Tasks:                             schema.Default(f, "tasks", nil, schema.List(decodeTask)),
		Artifacts:                         schema.Default(f, "artifacts", nil, schema.List(harbor.DecodeArtifact)),
		ExtraInstructionPaths:             schema.Default(f, "extra_instruction_paths", nil, schema.List(schema.Path)),
		Plugins:                           schema.Default(f, "plugins", nil, schema.List(schema.Model("PluginConfig", pluginFields))),
	}
}

// legacyOrchestrator dissolves the block "orchestrator" of old files. Keys at
// the top level win over it.
func legacyOrchestrator(_ *schema.Cursor, v value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	old, ok := obj.Get("orchestrator")
	if !ok {
		return v, nil
	}
	block, ok := old.(*value.Object)
	if !ok {
		block = &value.Object{}
	}
	out := value.NewObject(obj.Len() + 2)
	for key, item := range obj.All() {
		if key != "orchestrator" {
			out.Set(key, item)
		}
	}
	for _, key := range []string{"n_concurrent_trials", "quiet", "retry"} {
		if item, given := block.Get(key); given && !out.Has(key) {
			out.Set(key, item)
		}
	}
	return out, nil
}

func decodeRetry(c *schema.Cursor, v value.Value) (RetryConfig, bool) {
	return schema.Model("RetryConfig", retryFields)(c, v)
}

func retryFields(f *schema.Fields) RetryConfig {
	def := NewRetryConfig()
	exclude := schema.Default(f, "exclude_exceptions", def.ExcludeExceptions, schema.NullableList(schema.Set(schema.Str)))
	return RetryConfig{
		MaxRetries:        schema.Default(f, "max_retries", 0, schema.AtLeast(0, schema.SmallInt)),
		IncludeExceptions: schema.OptionalList(f, "include_exceptions", schema.Set(schema.Str)),
		ExcludeExceptions: exclude,
		WaitMultiplier:    schema.Default(f, "wait_multiplier", def.WaitMultiplier, schema.Float),
		MinWaitSec:        schema.Default(f, "min_wait_sec", def.MinWaitSec, schema.Float),
		MaxWaitSec:        schema.Default(f, "max_wait_sec", def.MaxWaitSec, schema.Float),
	}
}

func DecodeMetric(c *schema.Cursor, v value.Value) (MetricConfig, bool) {
	return schema.Model("MetricConfig", func(f *schema.Fields) MetricConfig {
		kind := schema.Enum(MetricSum, MetricMin, MetricMax, MetricMean, MetricUVScript)
		return MetricConfig{
			Type:   schema.Default(f, "type", MetricMean, kind),
			Kwargs: schema.Default(f, "kwargs", nil, schema.Object),
		}
	})(c, v)
}

func pluginFields(f *schema.Fields) PluginConfig {
	return PluginConfig{
		ImportPath: schema.Required(f, "import_path", schema.Str),
		Kwargs:     schema.Default(f, "kwargs", nil, schema.Object),
	}
}

func decodeDataset(c *schema.Cursor, v value.Value) (DatasetConfig, bool) {
	model := schema.After(schema.Model("DatasetConfig", datasetFields), checkDataset)
	return schema.Before(legacyRegistry, model)(c, v)
}

func datasetFields(f *schema.Fields) DatasetConfig {
	return DatasetConfig{
		Path:             schema.Optional(f, "path", schema.Path),
		Name:             schema.Optional(f, "name", schema.Str),
		Version:          schema.Optional(f, "version", schema.Str),
		Ref:              schema.Optional(f, "ref", schema.Str),
		RegistryURL:      schema.Optional(f, "registry_url", schema.Str),
		RegistryPath:     schema.Optional(f, "registry_path", schema.Path),
		Overwrite:        schema.Default(f, "overwrite", false, schema.Bool),
		DownloadDir:      schema.Optional(f, "download_dir", schema.Path),
		TaskNames:        schema.OptionalList(f, "task_names", schema.List(schema.Str)),
		ExcludeTaskNames: schema.OptionalList(f, "exclude_task_names", schema.List(schema.Str)),
		NTasks:           schema.Optional(f, "n_tasks", schema.SmallInt),
	}
}

// legacyRegistry reads the nested block "registry" of old files as
// registry_url and registry_path, where those are absent.
func legacyRegistry(_ *schema.Cursor, v value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	old, ok := obj.Get("registry")
	if !ok {
		return v, nil
	}
	out := value.NewObject(obj.Len() + 1)
	for key, item := range obj.All() {
		if key != "registry" {
			out.Set(key, item)
		}
	}
	block, ok := old.(*value.Object)
	if !ok {
		return out, nil
	}
	for _, part := range []string{"url", "path"} {
		if item, given := block.Get(part); given && !out.Has("registry_"+part) {
			out.Set("registry_"+part, item)
		}
	}
	return out, nil
}

const errVersionAndRef RuleError = "Cannot set both 'version' and 'ref'."

func checkDataset(d DatasetConfig) (DatasetConfig, error) {
	switch {
	case d.Path == nil && d.Name == nil:
		return d, errNoSource
	case d.Path != nil && d.Name != nil:
		return d, errTwoSources
	case d.Version != nil && d.Ref != nil:
		return d, errVersionAndRef
	}
	return d, nil
}
