package flags

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/suggest"
)

// Error makes what is wrong with a command's flags an error of usage, with advice.
func Error(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if r, ok := errors.AsType[RefusedError](err); ok {
			return exitcode.Usagef("--%s is not supported: %s", invalid.GetFlag().Name, r.Why)
		}
	}
	hint := ""
	if choice, ok := errors.AsType[*ChoiceError](err); ok {
		hint = suggest.DidYouMean("", choice.Near)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		hint = suggest.DidYouMean("", suggest.Nearest("--"+unknown.GetSpecifiedName(), names))
	}
	if hint != "" {
		return exitcode.WithHint(exitcode.Usagef("%w", err), "%s", hint)
	}
	return exitcode.WithHint(exitcode.Usagef("%w", err), "'%s --help' lists the flags", cmd.CommandPath())
}
