package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/suggest"
)

// Entry is an agent that can be chosen by name. An agent is added to a program
// with one entry, in the list that is given to the runner of its jobs:
//
//	runner := job.Runner{Trials: trial.Runner{Agents: append(agent.Builtin(), agent.Entry{
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
	// Solves asks for the task's solution.
	Solves bool
	// Trusted agents leave running in the sandbox only what the task's author
	// wants to be left; what other agents leave is noted in the results.
	Trusted bool
	// Check, when set, finds mistakes in a configuration before anything runs.
	// What an entry tells of its settings has been checked by then.
	Check func(Config) error

	// At least one of the two must be set. Sandboxed makes an agent that works in
	// a sandbox, as Harbor's agents do; Stepped one that plays tasks that are
	// stepped, those of cubes. Where only Stepped is set, the agent works on
	// Harbor's tasks through CUBE's layer. A stepped agent that is also a
	// [Reporter] reports on its own work.
	Sandboxed func(Config) (Agent, error)
	Stepped   func(Config) (cube.Agent, error)
}

// Reporter is what a stepped agent may also be.
type Reporter interface {
	Info() Info
	// Report is asked for once, when the episode has ended.
	Report() Result
}

// Registry lists the agents that can be chosen; of entries with the same name
// the last one counts. nil is [Builtin].
type Registry []Entry

func (r Registry) entries() Registry {
	if r == nil {
		return Builtin()
	}
	return r
}

// Find returns the entry of a name.
func (r Registry) Find(name string) (Entry, bool) {
	for _, e := range slices.Backward(r.entries()) {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Entries returns what can be chosen, each name once, in order.
func (r Registry) Entries() []Entry {
	var out []Entry
	for _, e := range r.entries() {
		same := func(o Entry) bool { return o.Name == e.Name }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i] = e
			continue
		}
		out = append(out, e)
	}
	return out
}

// Names returns the names that can be chosen, in order.
func (r Registry) Names() []string {
	var names []string
	for _, e := range r.Entries() {
		names = append(names, e.Name)
	}
	return names
}

// Check reports whether an agent of this configuration can work: it is known, has
// all settings that are given and lacks none. stepped tells that the tasks are
// those of a cube. The error is meant for the person who wrote the configuration.
func (r Registry) Check(c Config, stepped bool) error {
	e, ok := r.Find(c.Name)
	if !ok {
		return r.unknown(c.Name)
	}
	if stepped && e.Stepped == nil {
		return invalidf("agent %s works in a sandbox and cannot play the tasks of a cube; agents that can: %s", c.Name, strings.Join(r.stepped(), ", "))
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
	if stepped && e.Stepped == nil {
		return e, invalidf("Agent name %s is not valid for a cube. Valid agent names: %s", c.Name, strings.Join(r.stepped(), ", "))
	}
	return e, e.check(c, stepped)
}

func (r Registry) stepped() []string {
	var names []string
	for _, e := range r.Entries() {
		if e.Stepped != nil {
			names = append(names, e.Name)
		}
	}
	return names
}

func (r Registry) unknown(name string) error {
	known := "choose from " + strings.Join(r.Names(), ", ")
	if slices.Contains(HarborNames(), name) {
		return invalidf("%s is an agent of Harbor that proctor does not have; %s (command runs any command-line agent, see docs/agents.md)", name, known)
	}
	return invalidf("%q is not an agent%s; %s", name, didYouMean(name, r.Names()), known)
}

func didYouMean(typed string, words []string) string {
	if near := suggest.Nearest(typed, words); len(near) > 0 {
		return fmt.Sprintf(": did you mean %s?", strings.Join(near, " or "))
	}
	return ""
}

func (e Entry) knownSettings(typed string) string {
	var names []string
	for _, s := range e.Settings {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "; it has none"
	}
	return didYouMean(typed, names) + "; its settings are " + strings.Join(names, ", ")
}

// Texts returns the names of the settings that are text whatever they look like.
func (e Entry) Texts() []string {
	var names []string
	for _, s := range e.Settings {
		if s.Text {
			names = append(names, s.Name)
		}
	}
	return names
}

// HarborNames are the names of Harbor's agents (Harbor agent format, section
// 1.3), which files may hold although they do not run here; those that come with
// proctor too are not among them.
func HarborNames() []string { return slices.Clone(harborNames) }

var harborNames = []string{
	"claude-code", "cline-cli", "terminus", "terminus-1", "terminus-2", "aider", "codex", "cursor-cli",
	"gemini-cli", "antigravity-cli", "rovodev-cli", "goose", "hermes", "mini-swe-agent", "nemo-agent", "swe-agent",
	"opencode", "openclaw", "openhands", "openhands-sdk", "kimi-cli", "langgraph", "pi", "qwen-coder", "copilot-cli",
	"devin", "trae-agent",
}
