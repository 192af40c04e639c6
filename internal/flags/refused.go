package flags

import (
	"github.com/spf13/pflag"
)

// RefusedError says why a flag of Harbor means nothing here.
type RefusedError struct{ Why string }

func (e RefusedError) Error() string { return e.Why }

// refusal is a flag that is never accepted.
type refusal struct{ err RefusedError }

func (r refusal) Set(string) error { return r.err }
func (refusal) String() string     { return "" }
func (refusal) Type() string       { return "value" }

// Refuse defines a hidden flag that is refused with a reason, with a value
// or, when it is a switch, without.
func Refuse(fs *pflag.FlagSet, why string, isSwitch bool, names ...string) {
	for _, name := range names {
		flag := fs.VarPF(refusal{RefusedError{why}}, name, "", "not supported: "+why)
		flag.Hidden = true
		if isSwitch {
			flag.NoOptDefVal = "true"
		}
	}
}

// RefuseShort is Refuse for a flag with a short name.
func RefuseShort(fs *pflag.FlagSet, why, name, short string) {
	fs.VarPF(refusal{RefusedError{why}}, name, short, "not supported: "+why).Hidden = true
}

// Hide leaves flags out of help.
func Hide(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Lookup(name).Hidden = true
	}
}
