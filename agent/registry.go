package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/suggest"
)

// Entry is an agent that can be chosen by name. An agent is added to a program
// with one entry, in the list that is given to the runner of its jobs:
//
//	runner := job.Runner{Trials: trial.Runner{Agents: append(agents.All(), agent.Entry{
//		Name:      "mine",
//		Summary:   "what it does, in one line",
//		Sandboxed: func(c agent.Config) (agent.Agent, error) { return &mine{model: c.Model}, nil },
//	})}}
type Entry struct {
	Name string
	// Summary is one line for help and documentation.
	Summary string
	// Settings are the names that configurations may set; any other is refused,
	// unless AnySetting is set, for agents that hand them on.
	Settings   []Setting
	AnySetting bool
	// Output is the file of the log directory that has what the agent printed; empty
	// where there is none.
	Output string
	// Solves asks for the task's solution.
	Solves bool
	// CallsModel says that the agent calls a model itself, on this machine: it needs one,
	// and its settings include [ModelSettings].
	CallsModel bool
	// Gateway says that the agent's commands in the sandbox may call a model: they can
	// reach that of the configuration through this program, without its key. The settings
	// include [GatewaySettings].
	Gateway bool
	// OwnKeys are variables of the agent's commands with which they find a model by
	// themselves: where the configuration has none of them, NeedsModel says that a model
	// must be named whose key is known, and whose server can be reached through Gateway.
	OwnKeys    []string
	NeedsModel bool
	// Install, when set, tells how the agent's program is installed.
	Install func(Config) (*Installation, error)
	// UsesTools says that the agent uses the MCP servers that it is told of ([Env]), so that
	// it can play tasks that are stepped: their actions are then the tools of such a server,
	// and the agent works in a sandbox of its own.
	UsesTools bool
	// Outside says that the program of an agent that UsesTools runs on this machine, beside
	// its sandbox: it reaches the server of a stepped task's tools there.
	Outside bool
	// Trusted agents leave running in the sandbox only what the task's author
	// wants to be left; what other agents leave is noted in the results.
	Trusted bool
	// Digest, when set, identifies the agent's code of a configuration, where that is
	// files of this machine: "sha256:…" of what a trial would be run with now. It is
	// recorded with the results, beside the name and the version.
	Digest func(Config) (string, error)
	// Check, when set, finds mistakes in a configuration before anything runs.
	// What an entry tells of its settings has been checked by then.
	Check func(Config) error

	// Logs reads what the agent left in its log directory as a trajectory; nil
	// where it leaves none. An entry with nothing else is of an agent that cannot
	// be run here.
	Logs logs.Reader
	// FailuresOnly says that Logs tells of failures, and of no trajectory.
	FailuresOnly bool

	// Open, when set, makes the entry of a name that no other entry has, for example of a
	// file; ok is false where the name is none of these. All other fields are empty then:
	// such an entry is in no list.
	Open func(name string) (e Entry, ok bool)

	// At least one of the two must be set to run the agent. Sandboxed makes an agent that works in
	// a sandbox, as Harbor's agents do; Stepped one that plays tasks that are
	// stepped, those of cubes. Where only Stepped is set, the agent works on
	// Harbor's tasks through CUBE's layer. A stepped agent that is also a
	// [Reporter] reports on its own work, and one that is a [Finisher] is told of the
	// episode's end.
	Sandboxed func(Config) (Agent, error)
	Stepped   func(Config) (cube.Agent, error)
}

// Reporter is what a stepped agent may also be.
type Reporter interface {
	Info() Info
	// Report is asked for once, when the episode has ended.
	Report() Result
}

// Finisher is what a stepped agent may also be.
type Finisher interface {
	// Finish is called once, when the episode has ended and before the task is evaluated,
	// within the agent's time limit. failed is the error of the action that ended it; nil
	// for none. An error counts as one of the agent's work.
	Finish(ctx context.Context, failed *cube.StepError) error
}

// PlaysCubes reports whether the agent can play tasks that are stepped.
func (e Entry) PlaysCubes() bool { return e.Stepped != nil || e.Sandboxed != nil && e.UsesTools }

// runs reports whether the agent can be run.
func (e Entry) runs() bool { return e.Sandboxed != nil || e.Stepped != nil }

// Registry lists the agents that are known; of entries with the same name the last
// one counts. Those that come with proctor are agents.All of package agent/agents.
type Registry []Entry

// Find returns the entry of a name, if the agent can be run.
func (r Registry) Find(name string) (Entry, bool) {
	e, ok := r.find(name)
	return e, ok && e.runs()
}

func (r Registry) find(name string) (Entry, bool) {
	for _, e := range slices.Backward(r) {
		if e.Name == name && e.Open == nil {
			return e, true
		}
	}
	for _, e := range slices.Backward(r) {
		if e.Open == nil || name == "" {
			continue
		}
		if opened, ok := e.Open(name); ok {
			return opened, true
		}
	}
	return Entry{}, false
}

// Entries returns what is known, each name once, in order.
func (r Registry) Entries() []Entry {
	var out []Entry
	for _, e := range r {
		if e.Open != nil {
			continue
		}
		same := func(o Entry) bool { return o.Name == e.Name }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i] = e
			continue
		}
		out = append(out, e)
	}
	return out
}

// Names returns the names of the agents that can be run, in order.
func (r Registry) Names() []string { return r.names(Entry.runs) }

func (r Registry) names(which func(Entry) bool) []string {
	var names []string
	for _, e := range r.Entries() {
		if which(e) {
			names = append(names, e.Name)
		}
	}
	return names
}

// LogNames returns the names of the agents whose logs can be read, sorted.
func (r Registry) LogNames() []string {
	names := r.names(hasTrajectories)
	slices.Sort(names)
	return names
}

func hasTrajectories(e Entry) bool { return e.Logs != nil && !e.FailuresOnly }

// UnknownLogsError is the error of an agent whose logs cannot be read.
type UnknownLogsError struct {
	Agent string
	// Known are the agents whose logs can be.
	Known []string
}

func (e *UnknownLogsError) Error() string {
	return fmt.Sprintf("the logs of agent %q cannot be read, only those of %s", e.Agent, strings.Join(e.Known, ", "))
}

// ReadLogs reads the log directory of an agent, see [logs.Read]. For one whose logs
// cannot be read the error is an [*UnknownLogsError].
func (r Registry) ReadLogs(name string, in logs.Input) (*logs.Converted, error) {
	e, _ := r.find(name)
	if !hasTrajectories(e) {
		return nil, &UnknownLogsError{Agent: name, Known: r.LogNames()}
	}
	return logs.Read(name, e.Logs, in)
}

// Check reports whether an agent of this configuration can work: it is known, has
// all settings that are given and lacks none. stepped tells that the tasks are
// those of a cube. The error is meant for the person who wrote the configuration.
func (r Registry) Check(c Config, stepped bool) error {
	e, ok := r.Find(c.Name)
	if !ok {
		return r.unknown(c.Name)
	}
	if stepped && !e.PlaysCubes() {
		return invalidf("agent %s uses no tools of others (MCP) and cannot play the tasks of a cube; agents that can: %s", c.Name, strings.Join(r.stepped(), ", "))
	}
	if err := e.checkNames(c, stepped); err != nil {
		return err
	}
	return e.check(c, stepped)
}

// Resolve returns the entry that a configuration names, as a trial does it: the
// errors are Harbor's where it has them, and settings that the agent does not
// have are let pass, as Harbor does (Harbor agent format, sections 1.1 and 1.4).
func (r Registry) Resolve(c Config, stepped bool) (Entry, error) {
	e, ok := r.Find(c.Name)
	if !ok {
		return e, invalidf("Agent name %s is not valid. Valid agent names: %s", c.Name, strings.Join(r.Names(), ", "))
	}
	if stepped && !e.PlaysCubes() {
		return e, invalidf("Agent name %s is not valid for a cube. Valid agent names: %s", c.Name, strings.Join(r.stepped(), ", "))
	}
	return e, e.check(c, stepped)
}

func (r Registry) stepped() []string { return r.names(Entry.PlaysCubes) }

func (r Registry) unknown(name string) error {
	known := "choose from " + strings.Join(r.Names(), ", ")
	if slices.Contains(r.HarborOnly(), name) {
		return invalidf("%s is an agent of Harbor that proctor does not have; %s (command runs any command-line agent, see docs/agents.md)", name, known)
	}
	return invalidf("%q is not an agent%s; %s", name, suggest.DidYouMean(": ", suggest.Nearest(name, r.Names())), known)
}

func (e Entry) knownSettings(typed string) string {
	var names []string
	for _, s := range e.Settings {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "; it has none"
	}
	return suggest.DidYouMean(": ", suggest.Nearest(typed, names)) + "; its settings are " + strings.Join(names, ", ")
}

// Texts returns the names of the settings that are text whatever they look like.
func (e Entry) Texts() []string {
	var names []string
	for _, s := range e.Settings {
		if s.Text || s.Typed {
			names = append(names, s.Name)
		}
	}
	return names
}

// HarborOnly returns the names of Harbor's agents (Harbor agent format, section 1.3)
// that cannot be run here; files may hold them all the same.
func (r Registry) HarborOnly() []string {
	ours := r.Names()
	return slices.DeleteFunc(slices.Clone(harborNames), func(name string) bool { return slices.Contains(ours, name) })
}

var harborNames = []string{
	"oracle", "nop",
	"claude-code", "cline-cli", "terminus", "terminus-1", "terminus-2", "aider", "codex", "cursor-cli",
	"gemini-cli", "antigravity-cli", "rovodev-cli", "goose", "hermes", "mini-swe-agent", "nemo-agent", "swe-agent",
	"opencode", "openclaw", "openhands", "openhands-sdk", "kimi-cli", "langgraph", "pi", "qwen-coder", "copilot-cli",
	"devin", "trae-agent",
}
