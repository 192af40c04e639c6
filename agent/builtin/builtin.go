// Package builtin has the agents that need nothing but a task: its own solution, no
// work at all, a shell command, a Python class, and a script of actions. Section numbers
// refer to the Harbor agent format.
package builtin

import (
	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
)

// builtinVersion is that of the agents that Harbor has too (sections 2.1 and
// 2.2).
const builtinVersion = "1.0.0"

// Agents returns the registry of them. The list is the caller's.
func Agents() agent.Registry {
	return agent.Registry{oracleEntry(), nopEntry(), commandEntry(), pythonEntry(), scriptedEntry()}
}

func nopEntry() agent.Entry {
	return agent.Entry{
		Name:      "nop",
		Summary:   "does nothing: what a task gives without any work",
		Trusted:   true,
		Sandboxed: func(agent.Config) (agent.Agent, error) { return nop{}, nil },
		Stepped:   func(agent.Config) (cube.Agent, error) { return fixed{cube.Script(), "nop"}, nil },
	}
}

// fixed is a stepped agent with the version of the built-in ones.
type fixed struct {
	cube.Agent
	name string
}

var _ agent.Reporter = fixed{}

func (f fixed) Info() agent.Info     { return agent.Info{Name: f.name, Version: builtinVersion} }
func (f fixed) Report() agent.Result { return agent.Result{} }
