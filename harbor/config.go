package harbor

import (
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// SchemaVersion is what a task.toml without one has.
const SchemaVersion = "1.3"

// DefaultTimeoutSec is the time limit, in seconds, of a verifier and of an
// environment's start when the task names none.
const DefaultTimeoutSec = 600

// Config is the content of a task.toml (section 3). Times are in seconds;
// pointers are nil where a key is absent.
type Config struct {
	SchemaVersion string
	Task          *PackageInfo
	Metadata      *value.Object // free; dates and times as ISO strings
	Verifier      Verifier
	Agent         Agent
	Environment   Environment
	Solution      Solution
	Source        *string
	// MultiStepRewardStrategy is empty when absent, which acts as mean.
	MultiStepRewardStrategy RewardStrategy
	// Steps is nil when absent. An empty list makes no multi-step task either.
	Steps     []Step
	Artifacts []Artifact
}

// DefaultConfig is what an empty task.toml says.
func DefaultConfig() Config {
	cfg, _, err := ParseConfig(nil)
	if err != nil {
		panic("harbor: an empty task.toml is not valid: " + err.Error())
	}
	return cfg
}

// HasSteps reports whether the task is a multi-step one.
func (c *Config) HasSteps() bool { return len(c.Steps) > 0 }

// PackageInfo is the [task] table (section 3.3).
type PackageInfo struct {
	Name        string // "org/name"
	Description string
	Authors     []Author
	Keywords    []string
}

// Author is one author of a task.
type Author struct {
	Name  string
	Email *string
}

// Agent is the [agent] table of a task or a step (section 3.4).
type Agent struct {
	Network    NetworkOverride
	TimeoutSec *float64 // nil is no limit
	User       *User    // nil is the image's user
}

// Verifier is the [verifier] table of a task or a step (section 3.5).
type Verifier struct {
	Network         NetworkOverride
	TimeoutSec      float64
	Env             Env // templates
	User            *User
	EnvironmentMode VerifierMode // empty when absent; see [Config.VerifierMode]
	Environment     *Environment
}

// Environment is an [environment] table (section 3.6).
type Environment struct {
	Network         Network
	NetworkStated   bool    // Network is the table's own, not the default
	BuildTimeoutSec float64 // covers the whole start
	DockerImage     *string // an empty one counts as none
	OS              OS
	CPUs            *value.Int
	MemoryMB        *value.Int
	StorageMB       *value.Int
	GPUs            *value.Int
	GPUTypes        []string // nil when absent
	TPU             *TPU
	MCPServers      []MCPServer
	Env             Env // templates
	SkillsDir       *string
	Healthcheck     *Healthcheck
	Workdir         *string
}

// Solution is the [solution] table.
type Solution struct {
	Env Env // templates
}

// Step is one of the [[steps]] (section 3.8).
type Step struct {
	Name        string // used as a path component as it is
	Agent       Agent
	Verifier    Verifier
	MinReward   *MinReward
	Healthcheck *Healthcheck
	Artifacts   []Artifact
}

// MinReward is the reward that a step needs for the next one to run: a number
// for the key "reward", or one per key.
type MinReward struct {
	Number float64
	ByKey  *schema.Map[float64] // nil for a number
}

// Healthcheck tells when an environment is ready (sections 3.6 and 4.5).
type Healthcheck struct {
	Command          string
	IntervalSec      float64
	TimeoutSec       float64
	StartPeriodSec   float64
	StartIntervalSec float64
	Retries          int
}

// MCPServer is a tool server that an agent is told about.
type MCPServer struct {
	Name      string
	Transport string  // TransportSSE, TransportStreamableHTTP or TransportStdio
	URL       *string // required unless the transport is stdio
	Command   *string // required for stdio
	Args      []string
}

// Transports of tool servers.
const (
	TransportSSE            = "sse"
	TransportStreamableHTTP = "streamable-http"
	TransportStdio          = "stdio"
)

// TPU asks for accelerator chips.
type TPU struct {
	Type     string
	Topology string // "2x4" or "2x2x1"
}

// Artifact is something to collect from the sandbox after the agent (section
// 3.9). In files it is either a bare path or a table; Bare keeps which.
type Artifact struct {
	Bare        bool // written as the string Source alone
	Source      string
	Destination *string
	Exclude     []string
}

// User names who runs a command: a user name, or a numeric id.
type User struct {
	Name string
	ID   *value.Int // nil for a name
}

// String returns the name, or the id in digits.
func (u User) String() string {
	if u.ID != nil {
		return u.ID.String()
	}
	return u.Name
}

// Env is an ordered set of environment variables whose values may be
// templates (section 3.10).
type Env = schema.Map[string]

// OS is the operating system of an environment.
type OS string

// Operating systems.
const (
	Linux   OS = "linux"
	Windows OS = "windows"
)

// VerifierMode says where a verifier runs.
type VerifierMode string

// Verifiers run in the agent's environment, or in one of their own.
const (
	Shared   VerifierMode = "shared"
	Separate VerifierMode = "separate"
)

// RewardStrategy says how the rewards of steps become the reward of a trial.
type RewardStrategy string

// The mean over the steps, or the last step's reward.
const (
	meanReward  RewardStrategy = "mean"
	finalReward RewardStrategy = "final"
)

// VerifierMode returns the effective mode of the task's verifier, or of a
// step's when step is not nil (section 3.5).
func (c *Config) VerifierMode(step *Step) VerifierMode {
	if step != nil {
		if mode := step.Verifier.mode(); mode != "" {
			return mode
		}
	}
	if mode := c.Verifier.mode(); mode != "" {
		return mode
	}
	return Shared
}

func (v *Verifier) mode() VerifierMode {
	if v.EnvironmentMode == "" && v.Environment != nil {
		return Separate
	}
	return v.EnvironmentMode
}

// VerifierEnvironment returns the environment of a separate verifier: the
// step's own table, else the task's, else a copy of [environment] (section
// 3.5). step may be nil.
func (c *Config) VerifierEnvironment(step *Step) Environment {
	switch {
	case step != nil && step.Verifier.Environment != nil:
		return *step.Verifier.Environment
	case c.Verifier.Environment != nil:
		return *c.Verifier.Environment
	}
	return c.Environment
}
