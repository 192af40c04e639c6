package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// errNoTraces is the answer to Harbor's flags that export trajectories as a
// data set.
var errNoTraces = errors.New("proctor exports no trajectories; they are in the trials' directories")

// refused is a flag of Harbor that means nothing here: it says why.
type refused struct{ why error }

func (r refused) Set(string) error { return r.why }
func (refused) String() string     { return "" }
func (refused) Type() string       { return "value" }

// defineTraceFlags refuses the flags of Harbor's trace export.
func defineTraceFlags(fs *pflag.FlagSet) {
	for _, name := range []string{"traces", "sharegpt", "push", "instruction-metadata", "verifier-metadata"} {
		fs.Var(refused{errNoTraces}, "export-"+name, "not available: "+errNoTraces.Error())
		fs.Lookup("export-" + name).NoOptDefVal = "true"
		hide(fs, "export-"+name)
	}
	for _, name := range []string{"episodes", "repo"} {
		fs.Var(refused{errNoTraces}, "export-"+name, "not available: "+errNoTraces.Error())
		hide(fs, "export-"+name)
	}
}
