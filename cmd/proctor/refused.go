package main

import (
	"github.com/spf13/pflag"
)

// refusedError says why a flag of Harbor means nothing here.
type refusedError struct{ why string }

func (e refusedError) Error() string { return e.why }

// refused is a flag that is never accepted.
type refused struct{ err refusedError }

func (r refused) Set(string) error { return r.err }
func (refused) String() string     { return "" }
func (refused) Type() string       { return "value" }

// refuseVar defines a hidden flag that is refused with a reason, with a value
// or, when it is a switch, without.
func refuseVar(fs *pflag.FlagSet, why string, isSwitch bool, names ...string) {
	for _, name := range names {
		flag := fs.VarPF(refused{refusedError{why}}, name, "", "not supported: "+why)
		flag.Hidden = true
		if isSwitch {
			flag.NoOptDefVal = "true"
		}
	}
}

// defineTraceFlags refuses the flags of Harbor's trace export.
func defineTraceFlags(fs *pflag.FlagSet) {
	const why = "a run exports no trajectories; 'proctor traj export' does"
	refuseVar(fs, why, true, "export-traces", "export-sharegpt", "export-push", "export-instruction-metadata", "export-verifier-metadata")
	refuseVar(fs, why, false, "export-episodes", "export-repo")
}

// refusePlugins refuses the plugins of a job where there is none.
func refusePlugins(fs *pflag.FlagSet) {
	refuseVar(fs, "it names Python code, which proctor cannot run", false, "plugin")
	refuseVar(fs, "it is a setting of a plugin in Python, which proctor cannot run", false, "pk", "plugin-kwarg")
}
