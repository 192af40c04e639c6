package jobdir

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Config is a job's configuration (Harbor job format, section 1.1).
// [NewConfig] gives the defaults. Paths are kept as text, normalised like
// Python's pathlib does on POSIX.
type Config struct {
	JobName   string
	JobsDir   string
	NAttempts int

	TimeoutMultiplier float64
	// A nil specific multiplier means TimeoutMultiplier.
	AgentTimeoutMultiplier            *float64
	VerifierTimeoutMultiplier         *float64
	AgentSetupTimeoutMultiplier       *float64
	EnvironmentBuildTimeoutMultiplier *float64

	Debug             bool
	NConcurrentTrials int
	Quiet             bool
	Retry             RetryConfig

	Environment EnvironmentConfig
	Verifier    VerifierConfig
	Metrics     []MetricConfig
	Agents      []AgentConfig
	Datasets    []DatasetConfig
	Tasks       []TaskConfig

	Artifacts             []Artifact
	ExtraInstructionPaths []string
	Plugins               []PluginConfig
}

// Defaults of a job configuration.
const (
	defaultJobsDir     = "jobs"
	defaultConcurrency = 4
)

// NewConfig returns the configuration that an empty document gives. now, in
// local time, makes the job's name.
func NewConfig(now time.Time) Config {
	return Config{
		JobName:           DefaultName(now),
		JobsDir:           defaultJobsDir,
		NAttempts:         1,
		TimeoutMultiplier: 1,
		NConcurrentTrials: defaultConcurrency,
		Retry:             NewRetryConfig(),
		Environment:       newEnvironmentConfig(),
		Agents:            []AgentConfig{NewAgentConfig()},
	}
}

// DefaultName is the name of a job that was given none: its local start time,
// like "2026-06-09__10-00-00".
func DefaultName(now time.Time) string { return now.Format("2006-01-02__15-04-05") }

// RetryConfig says which failed trials run again and when (Harbor job format,
// section 1.2). [NewRetryConfig] gives the defaults; see [RetryConfig.Decide].
type RetryConfig struct {
	MaxRetries int
	// Sets of exception type names; nil is null. They are written sorted.
	IncludeExceptions []string
	ExcludeExceptions []string
	WaitMultiplier    float64
	MinWaitSec        float64
	MaxWaitSec        float64
}

// NewRetryConfig returns the default policy: no retries, and never after
// exceptions that another attempt would repeat.
func NewRetryConfig() RetryConfig {
	return RetryConfig{
		ExcludeExceptions: []string{
			exception.AgentTimeoutError, exception.RewardFileEmptyError, exception.RewardFileNotFoundError,
			exception.VerifierOutputParseError, exception.VerifierTimeoutError,
		},
		WaitMultiplier: 1,
		MinWaitSec:     1,
		MaxWaitSec:     60,
	}
}

// MetricType names how the rewards of a dataset are aggregated.
type MetricType string

// The metric types of the format.
const (
	MetricSum      MetricType = "sum"
	MetricMin      MetricType = "min"
	MetricMax      MetricType = "max"
	MetricMean     MetricType = "mean"
	MetricUVScript MetricType = "uv-script" // kwargs: script_path
)

// MetricConfig chooses a metric.
type MetricConfig struct {
	Type   MetricType
	Kwargs *value.Object
}

// PluginConfig names a plugin. proctor keeps it in files and runs none.
type PluginConfig struct {
	ImportPath string
	Kwargs     *value.Object
}

// DatasetConfig chooses tasks of a dataset (Harbor job format, section 1.6).
type DatasetConfig struct {
	Path             *string // local directory
	Name             *string // registry name, or "org/name" of a package
	Version          *string
	Ref              *string
	RegistryURL      *string
	RegistryPath     *string
	Overwrite        bool
	DownloadDir      *string
	TaskNames        []string // globs; nil is null
	ExcludeTaskNames []string // globs; nil is null
	NTasks           *int
}

// DatasetKind says where a dataset comes from.
type DatasetKind string

// Kinds of datasets.
const (
	LocalDataset    DatasetKind = "local"
	PackageDataset  DatasetKind = "package"
	RegistryDataset DatasetKind = "registry"
)

// Kind derives the kind: a path makes a local dataset, a name with a slash a
// package, any other name an entry of a registry.
func (d DatasetConfig) Kind() DatasetKind {
	switch {
	case d.Path != nil:
		return LocalDataset
	case d.Name != nil && strings.Contains(*d.Name, "/"):
		return PackageDataset
	default:
		return RegistryDataset
	}
}

// SourceName is the name under which a dataset's trials are counted: that of
// the directory a local dataset resolves to, else the configured name.
func (d DatasetConfig) SourceName() string {
	if d.Path == nil {
		if d.Name == nil {
			return ""
		}
		return *d.Name
	}
	dir := *d.Path
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return filepath.Base(dir)
}

// Dir is the directory of the job, normalised.
func (c Config) Dir() string { return joinPath(c.JobsDir, c.JobName) }

// joinPath joins as pathlib does: an absolute second part replaces the first.
func joinPath(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return schema.CleanPath(name)
	}
	return schema.CleanPath(dir + "/" + name)
}

// CheckRunnable reports what a job cannot run with although its configuration
// is valid as a document.
func (c Config) CheckRunnable() error {
	var errs []error
	if c.JobName == "" || c.JobName == "." || !filepath.IsLocal(c.JobName) {
		errs = append(errs, fmt.Errorf("job_name is %q, want a name for a directory below the jobs directory", c.JobName))
	}
	if c.NAttempts < 1 {
		errs = append(errs, fmt.Errorf("n_attempts is %d, want at least 1", c.NAttempts))
	}
	errs = append(errs, c.CheckNoPython(), TrialConfig{
		TimeoutMultiplier: c.TimeoutMultiplier, AgentTimeoutMultiplier: c.AgentTimeoutMultiplier,
		VerifierTimeoutMultiplier: c.VerifierTimeoutMultiplier, AgentSetupTimeoutMultiplier: c.AgentSetupTimeoutMultiplier,
		EnvironmentBuildTimeoutMultiplier: c.EnvironmentBuildTimeoutMultiplier,
	}.CheckRunnable())
	if c.NConcurrentTrials < 1 {
		errs = append(errs, fmt.Errorf("n_concurrent_trials is %d, want at least 1", c.NConcurrentTrials))
	}
	if c.Retry.MaxRetries < 0 {
		errs = append(errs, fmt.Errorf("retry.max_retries is %d, want at least 0", c.Retry.MaxRetries))
	}
	return errors.Join(errs...)
}

// CheckNoPython reports the Python code of verifiers and plugins that the
// configuration names: without it the results would be of another verifier.
func (c Config) CheckNoPython() error {
	errs := []error{c.Verifier.CheckNoPython()}
	if len(c.Plugins) > 0 {
		errs = append(errs, fmt.Errorf("plugins names Python code, which proctor cannot run: %q", c.Plugins[0].ImportPath))
	}
	return errors.Join(errs...)
}
