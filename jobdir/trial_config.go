package jobdir

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

// Config is one trial's configuration (Harbor job format, section 1.7).
// [NewConfig] gives the defaults.
//
// Paths are kept as text, normalised like Python's pathlib does on POSIX.
type TrialConfig struct {
	Task      TaskConfig
	TrialName string // "" asks the runner to generate one
	TrialsDir string

	TimeoutMultiplier float64
	// A nil specific multiplier means TimeoutMultiplier.
	AgentTimeoutMultiplier            *float64
	VerifierTimeoutMultiplier         *float64
	AgentSetupTimeoutMultiplier       *float64
	EnvironmentBuildTimeoutMultiplier *float64

	Agent       AgentConfig
	Environment EnvironmentConfig
	Verifier    VerifierConfig

	Artifacts             []Artifact
	ExtraInstructionPaths []string
	JobID                 *uuid.UUID
}

// NewConfig returns the configuration that an empty document with this task
// would give.
func NewTrialConfig(task TaskConfig) TrialConfig {
	return TrialConfig{
		Task:              task,
		TrialsDir:         "trials",
		TimeoutMultiplier: 1,
		Agent:             NewAgentConfig(),
		Environment:       newEnvironmentConfig(),
	}
}

// CheckRunnable reports what a trial cannot run with although its configuration
// is valid as a document.
func (c TrialConfig) CheckRunnable() error {
	errs := []error{c.Verifier.CheckNoPython()}
	for _, m := range []struct {
		key    string
		factor *float64
	}{
		{"timeout_multiplier", &c.TimeoutMultiplier},
		{"agent_timeout_multiplier", c.AgentTimeoutMultiplier},
		{"verifier_timeout_multiplier", c.VerifierTimeoutMultiplier},
		{"agent_setup_timeout_multiplier", c.AgentSetupTimeoutMultiplier},
		{"environment_build_timeout_multiplier", c.EnvironmentBuildTimeoutMultiplier},
	} {
		if m.factor != nil && (*m.factor < 0 || math.IsNaN(*m.factor)) {
			errs = append(errs, fmt.Errorf("%s is %s, want at least 0", m.key, value.FloatRepr(*m.factor)))
		}
	}
	return errors.Join(errs...)
}

// TaskConfig says which task to run and where it comes from.
type TaskConfig struct {
	Path        *string
	GitURL      *string
	GitCommitID *string
	Name        *string // "org/name" of a package
	Ref         *string
	Overwrite   bool
	DownloadDir *string
	Source      *string // name of the dataset the task belongs to
}

// TaskKind says where a task comes from.
type TaskKind string

// Kinds of tasks, as lock files spell them.
const (
	LocalTask   TaskKind = "local"
	GitTask     TaskKind = "git"
	PackageTask TaskKind = "package"
)

// Kind derives the kind: a name makes a package, a URL a git task.
func (t TaskConfig) Kind() TaskKind {
	switch {
	case t.Name != nil:
		return PackageTask
	case t.GitURL != nil:
		return GitTask
	default:
		return LocalTask
	}
}

// Models that tasks and configurations share.
type (
	// Artifact is something to collect from the sandbox after the agent.
	Artifact = harbor.Artifact
	// MCPServer is a tool server that an agent is told about.
	MCPServer = harbor.MCPServer
	// TPU asks for accelerator chips.
	TPU = harbor.TPU
)

// AgentConfig chooses and configures an agent (Harbor job format, section
// 1.3). [NewAgentConfig] gives the defaults.
type AgentConfig struct {
	Name       *string // nil only when ImportPath is set
	ImportPath *string // "module:Class"
	ModelName  *string // "provider/model" or bare
	Skills     []string

	OverrideTimeoutSec      *float64
	OverrideSetupTimeoutSec *float64
	MaxTimeoutSec           *float64

	ExtraAllowedHosts []string // normalised
	Kwargs            *value.Object
	Env               Env
	MCPServers        []MCPServer
}

// DefaultAgent is the agent that runs when none is named.
const DefaultAgent = "oracle"

// NewAgentConfig returns the configuration of the default agent.
func NewAgentConfig() AgentConfig {
	return AgentConfig{Name: new(DefaultAgent)}
}

// EnvironmentConfig says how the sandbox of a trial is made (Harbor job
// format, section 1.4). newEnvironmentConfig gives the defaults.
type EnvironmentConfig struct {
	Type       *string // nil only when ImportPath is set
	ImportPath *string
	ForceBuild bool
	Delete     bool

	CPUEnforcementPolicy    string
	MemoryEnforcementPolicy string
	OverrideCPUs            *int
	OverrideMemoryMB        *int
	OverrideStorageMB       *int
	OverrideGPUs            *int
	OverrideTPU             *TPU

	Mounts             []*value.Object // compose service volumes; nil is null
	ExtraDockerCompose []string
	Env                Env
	Kwargs             *value.Object
	ExtraAllowedHosts  []string // normalised
}

// defaultEnvironment is the environment type that runs when none is named.
const defaultEnvironment = "docker"

// policyAuto is the default resource enforcement policy.
const policyAuto = "auto"

// newEnvironmentConfig returns the configuration of the default environment.
func newEnvironmentConfig() EnvironmentConfig {
	return EnvironmentConfig{
		Type:                    new(defaultEnvironment),
		Delete:                  true,
		CPUEnforcementPolicy:    policyAuto,
		MemoryEnforcementPolicy: policyAuto,
	}
}

// VerifierConfig is the run side of verification (Harbor job format, section
// 1.5). The zero value is the default.
type VerifierConfig struct {
	OverrideTimeoutSec *float64
	MaxTimeoutSec      *float64
	Env                Env
	ImportPath         *string
	Kwargs             *value.Object
	Disable            bool
}

// CheckNoPython reports a verifier in Python, or settings of one. Nothing of it
// matters where verification is disabled.
func (v VerifierConfig) CheckNoPython() error {
	switch {
	case v.Disable:
		return nil
	case v.ImportPath != nil:
		return fmt.Errorf("verifier.import_path names Python code, which proctor cannot run: %q", *v.ImportPath)
	case v.Kwargs.Len() > 0:
		return errors.New("verifier.kwargs are settings of a verifier in Python, which proctor cannot run")
	}
	return nil
}

// BaseName is what the task is called before anything of it is read: the last
// part of its path, else the package's name.
func (t TaskConfig) BaseName() string {
	switch {
	case t.Path != nil:
		return filepath.Base(*t.Path)
	case t.Name != nil:
		return *t.Name
	}
	return ""
}
