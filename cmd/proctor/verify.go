package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/audit"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// verifyFlags are the flags of verify.
type verifyFlags struct {
	audit, against string
	scripts, json  bool
}

func newVerify(env *Env) *cobra.Command {
	f := &verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify JOBDIR...",
		Short: "Check that nobody changed a job's results since they were written",
		Long: `verify holds the files of a job against each other: its result against those of
its trials, all results against the digests that the journal noted when they were
written, rewards against the reward files, trials against the plan in the lock,
tasks that lie here against their digests there; the journal's lines against each
other; times; and it names what the run itself found suspicious. It names each
place where they disagree, and exits with 4 if there is one. Nothing is changed.

Files alone do not say who wrote them: who rewrites all of them, journal included,
is not found by this. --audit writes a manifest, with the digest of every file of
the job; sign it, or publish it with the score. Whoever has the manifest and the
directory checks with --against, on a machine without a network, that they belong
together.`,
		Example: `  proctor verify jobs/2026-06-09__10-00-00
  proctor verify jobs/2026-06-09__10-00-00 --audit audit.json && ssh-keygen -Y sign -n proctor -f ~/.ssh/id_ed25519 audit.json
  proctor verify jobs/2026-06-09__10-00-00 --against audit.json`,
		Args: someJobs,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			return f.verifyAll(ctx, env, dirs)
		},
		ValidArgsFunction: completeDirs,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.audit, "audit", "", "write a manifest of the job to this `file`, ready to be signed")
	fs.StringVar(&f.against, "against", "", "hold the job against the manifest in this `file`, too")
	fs.BoolVar(&f.scripts, "run-scripts", false, "run the metric scripts that the job names, on this machine")
	fs.BoolVar(&f.json, "json", false, "print one JSON object per job, nothing else")
	return cmd
}

// maxManifest bounds a manifest that is read, in bytes: that of a million files is smaller.
const maxManifest = 1 << 30

func (f *verifyFlags) options(ctx context.Context, env *Env, dirs []string) (audit.Options, error) {
	o := audit.Options{Manifest: f.audit != ""}
	if len(dirs) > 1 && (f.audit != "" || f.against != "") {
		return o, usageErrorf("--audit and --against are for one job, got %d", len(dirs))
	}
	var err error
	if o.Score, err = rescoreOptions(ctx, env, &scoreFlags{scripts: f.scripts}); err != nil || f.against == "" {
		return o, err
	}
	data, err := bounded.ReadFileContext(ctx, f.against, maxManifest)
	if err != nil {
		return o, usageErrorf("--against: %w", err)
	}
	if o.Against, err = audit.ParseManifest(data); err != nil {
		return o, usageErrorf("--against %s: %w", f.against, err)
	}
	return o, nil
}

func (f *verifyFlags) verifyAll(ctx context.Context, env *Env, dirs []string) error {
	o, err := f.options(ctx, env, dirs)
	if err != nil {
		return err
	}
	agree := true
	var failures []error
	for _, dir := range dirs {
		r, err := checkJob(ctx, dir, o)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = f.tell(env, r)
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		agree = agree && len(r.Findings) == 0
	}
	switch {
	case len(failures) > 0:
		return joinFailures(failures)
	case !agree:
		return errQuiet(exitThreshold)
	}
	return nil
}

// checkJob looks at one job, and says why if a directory is not a job's.
func checkJob(ctx context.Context, dir string, o audit.Options) (*audit.Report, error) {
	r, err := score.Rescore(ctx, dir, o.Score)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isDirectory(dir):
		return nil, notJob(dir, err)
	case err == nil && isEmptyJob(r):
		return nil, usageErrorf("%q is not a job directory: it holds neither a result nor trials", dir)
	case err == nil:
		o.Rescored = r
	}
	return audit.Check(ctx, dir, o)
}

// tell writes the manifest, if one was asked for, and prints what was found.
func (f *verifyFlags) tell(env *Env, r *audit.Report) error {
	if f.audit != "" {
		data, err := r.Manifest.AppendJSON(nil)
		if err == nil {
			err = atomicfile.Write(f.audit, data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("writing the manifest: %w", err)
		}
		if !f.json {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: %s: manifest written\n", clean(filepath.ToSlash(f.audit)))
		}
	}
	if f.json {
		return encodeJSON(env.Stdout, report.NewVerification(r))
	}
	_, _ = lipgloss.Fprintln(env.Stdout, console.Bold(clean(r.Dir)))
	printFindings(env.Stdout, r.Findings)
	for _, text := range r.Unchecked {
		_, _ = fmt.Fprintf(env.Stdout, "not checked: %s\n", clean(text))
	}
	if len(r.Findings) == 0 {
		_, _ = fmt.Fprintf(env.Stdout, "%s: nothing found\n", console.Count(r.Trials, "trial"))
		return nil
	}
	_, _ = fmt.Fprintf(env.Stdout, "%s in %s\n", console.Count(len(r.Findings), "finding"), console.Count(r.Trials, "trial"))
	return nil
}

// maxFindings is up to how many findings are printed for people.
const maxFindings = 50

func printFindings(w io.Writer, found []audit.Finding) {
	for _, finding := range found[:min(len(found), maxFindings)] {
		_, _ = fmt.Fprintln(w, clean(finding.String()))
	}
	if more := len(found) - maxFindings; more > 0 {
		_, _ = fmt.Fprintf(w, "… and %d more; --json has all\n", more)
	}
}
