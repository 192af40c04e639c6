package agent

import "github.com/proctor-run/proctor/cube"

// builtinVersion is that of the agents that Harbor has too (sections 2.1 and
// 2.2).
const builtinVersion = "1.0.0"

// Builtin returns the agents that come with proctor. The list is the caller's.
func Builtin() Registry {
	return Registry{oracleEntry(), nopEntry(), commandEntry(), scriptedEntry()}
}

func nopEntry() Entry {
	return Entry{
		Name:      "nop",
		Summary:   "does nothing: what a task gives without any work",
		Trusted:   true,
		Sandboxed: func(Config) (Agent, error) { return nop{}, nil },
		Stepped:   func(Config) (cube.Agent, error) { return fixed{cube.Script(), "nop"}, nil },
	}
}

// fixed is a stepped agent with the version of the built-in ones.
type fixed struct {
	cube.Agent
	name string
}

var _ Reporter = fixed{}

func (f fixed) Info() Info     { return Info{Name: f.name, Version: builtinVersion} }
func (f fixed) Report() Result { return Result{} }
