package jobcli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir/journal"
)

// Again says which finished trials of a job run again when it is resumed.
type Again struct {
	types             []string
	errored, unscored bool
	// DryRun asks what would be run, and runs nothing.
	DryRun bool
}

// Define defines the flags.
func (a *Again) Define(fs *pflag.FlagSet) {
	flags.List(fs, &a.types, "filter-error-type", "f", "run trials with this exception `type` again; repeatable, replaces CancelledError")
	fs.BoolVar(&a.errored, "retry-errored", false, "run every trial with an exception again")
	fs.BoolVar(&a.unscored, "retry-unscored", false, "run every trial without a reward again")
	fs.BoolVar(&a.DryRun, "dry-run", false, "say what would be run, and run nothing")
}

// KeepSecrets adds to the names that are given what earlier runs of the job in a
// directory were told to redact.
func KeepSecrets(f *Flags, dir string) error {
	names, err := journal.SecretNames(dir)
	if damaged := (*journal.Error)(nil); err != nil && !errors.As(err, &damaged) {
		return err
	}
	for _, name := range names {
		if !slices.Contains(f.Secrets, name) {
			f.Secrets = append(f.Secrets, name)
		}
	}
	return nil
}

// Options are what the flags ask for.
func (a *Again) Options() job.ResumeOptions {
	return job.ResumeOptions{Types: a.types, Errored: a.errored, Unscored: a.unscored}
}

// PrintResume says what will be run, before it is; without a run to come, also what the
// run would warn of.
func (p *Program) PrintResume(a *Again, r *job.Resumed) {
	w := p.Stderr
	if r.Moved() {
		_, _ = fmt.Fprintf(w, "%s: the configuration names %s; the job is resumed in %s\n", p.Name, console.Clean(r.ConfiguredDir), console.Clean(r.Config.Dir()))
	}
	_, _ = fmt.Fprintf(w, "%s: resuming %s: %s of %d kept, %d to run\n",
		p.Name, console.Clean(r.Config.Dir()), console.Count(len(r.Existing), "trial"), len(r.Trials), len(r.Remaining))
	for _, text := range r.Repaired {
		_, _ = fmt.Fprintf(w, "  %s\n", console.Clean(text))
	}
	for _, a := range r.Reruns {
		_, _ = fmt.Fprintf(w, "  %s: again, %s\n", console.Clean(a.TrialName), reasonText(a.Reason))
	}
	if n := len(r.Remaining) - len(r.Reruns); n > 0 {
		_, _ = fmt.Fprintf(w, "  %s that never began\n", console.Count(n, "trial"))
	}
	if len(r.Orphans) > 0 {
		_, _ = fmt.Fprintf(w, "  set aside in %s, for no trial of the job fits: %s\n", console.Clean(r.OrphansDir), console.Clean(strings.Join(r.Orphans, ", ")))
	}
	if a.DryRun {
		for _, text := range r.Warnings {
			_, _ = fmt.Fprintf(w, "%s: warning: %s\n", p.Name, console.Clean(text))
		}
	}
}

func reasonText(reason string) string {
	if strings.Contains(reason, " ") {
		return console.Clean(reason)
	}
	return "after " + console.Clean(reason)
}
