// Package agent holds the contract between a trial and what tries to solve a
// task, and the [Registry] from which an agent is chosen by its name. The agents
// that come with proctor are in the packages below it, and agent/agents lists them.
//
// There are two ways for an agent to work. An [Agent] works in a sandbox, by
// itself, on an instruction. A [cube.Agent] plays a task that is stepped: it sees
// observations and answers with actions. An [Entry] of the registry offers one of
// them, or both.
//
// The life of an [Agent]: it is made once per trial, Setup is called once after
// the sandbox is up, Run once per instruction. One that is a [Provisioner] may be asked
// for the slow part of Setup before. The caller bounds both by their contexts, and
// after a passed deadline kills what the agent left running; an agent need not
// care. Where an agent's rules follow Harbor's, section numbers refer to the
// Harbor agent format.
package agent

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// Info identifies an agent in results.
type Info struct {
	Name string
	// Version is empty when it is not known.
	Version string
}

// Agent tries to solve a task in a sandbox.
type Agent interface {
	// Info may change once, in Setup, when the version is detected there.
	Info() Info
	// Setup prepares the sandbox, for example installs the agent's program.
	Setup(ctx context.Context, env Env) error
	// Run works on one instruction. A result may come together with an error:
	// what was used was used.
	Run(ctx context.Context, env Env, task Task) (Result, error)
}

// Provisioner is the ability of an [Agent] to do that part of its Setup apart which leaves
// files in the sandbox and nothing else, the same in every trial of one configuration and
// one task: it installs something. Other such trials may then begin with these files
// instead, each in a sandbox of its own, and their Setup is told so by [Env.Provisioned].
//
// Processes that Provision leaves running, and what it keeps in [Env.LogDir] besides plain
// files, are noticed, and then nothing is shared. What it learns must not stay in the agent
// alone.
type Provisioner interface {
	// Provision installs what the agent needs. It is called before Setup and within its
	// limit, or by Setup.
	Provision(ctx context.Context, env Env) error
}

// Env is where an agent works.
type Env struct {
	Sandbox sandbox.Sandbox
	// Provisioned: what the agent's Provision leaves is in the sandbox, see [Provisioner].
	Provisioned bool
	// User runs the agent's commands unless they need root; empty means the
	// image's user.
	User string
	// LogDir is the host directory that keeps the agent's files.
	LogDir string
	// OutputLimit bounds each output file that the agent writes there, in
	// bytes.
	OutputLimit int64
	// Redact returns a writer to w that leaves out the values of secrets, and writes
	// the rest of what it keeps back when it is closed; w stays open. Files that hold
	// output are written through it. Nil changes nothing.
	Redact func(w io.Writer) io.WriteCloser
	// Vars makes of the agent's own variables, KEY=VALUE, those of its commands: where they
	// reach a model through this program, keys are replaced and its address is added. Nil
	// changes nothing. See [Env.Variables].
	Vars func(own []string) []string
	// Model is how the agent's commands reach the model of its configuration; nil where they
	// find one by themselves.
	Model *ModelAccess
	// Installed is what was installed of the agent before; nil for nothing.
	Installed *Installed
	// Downloads is a directory of this machine in which what an installation fetches is
	// kept; empty for none.
	Downloads string
	// Lookup finds variables of this machine; nil means an empty environment.
	Lookup func(name string) (string, bool)
	// Warn is called with what went wrong and is no error; it may be nil.
	Warn func(format string, args ...any)
	// MCPServers are the tool servers that the agent is to use, each name once.
	MCPServers []MCPServer
	// SkillsDir is the directory in the sandbox that holds the agent's skills,
	// one directory each; empty when there are none.
	SkillsDir string
}

// Variables are those of the agent's commands, of which own are its own.
func (e Env) Variables(own []string) []string {
	if e.Vars == nil {
		return slices.Clone(own)
	}
	return e.Vars(own)
}

// Task is what the agent is asked to do.
type Task struct {
	Instruction string
	// Step is the name of the step that the instruction is of; empty for a task
	// without steps.
	Step string
	// Deadline is when Run is ended; zero means never.
	Deadline time.Time
}

// Result is what an agent reports of its own work; nil means not known
// (Harbor agent format, section 1.6).
type Result struct {
	InputTokens, CacheTokens, OutputTokens *int64
	CostUSD                                *float64
	Metadata                               *value.Object
	// Rollouts are token ids and log probabilities, one object per conversation
	// (section 7.1); nil for none, which an empty list is not.
	Rollouts value.List
}
