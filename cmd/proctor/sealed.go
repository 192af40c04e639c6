package main

import (
	"fmt"

	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir/journal"
)

// keepSealing reports whether the verifiers of a resumed job are sealed: when
// it is asked for, or was when the job was started.
func keepSealing(env *Env, asked bool, p *job.Prepared) bool {
	if before, _, err := journal.Before(p.Config.Dir()); err == nil && before.SealedVerifier && !asked {
		_, _ = fmt.Fprintln(env.Stderr, "proctor: the job is resumed with --sealed-verifier, as it was started")
		return true
	}
	warnSealing(env, asked, p)
	return asked
}

// keepHardening reports whether the sandboxes of a job that is resumed are hardened:
// when it is asked for, or was when the job was started.
func keepHardening(env *Env, asked bool, dir string) bool {
	if before, _, err := journal.Before(dir); err == nil && before.Hardened && !asked {
		_, _ = fmt.Fprintln(env.Stderr, "proctor: the job is resumed with --hardened, as it was started")
		return true
	}
	return asked
}

// keepConcurrency has as many trials of a job that is resumed run, build and verify at once
// as when it was started.
func keepConcurrency(env *Env, f *jobcli.Flags, dir string) {
	before, _, err := journal.Before(dir)
	if err != nil {
		return
	}
	f.Auto = before.Shared
	kept := ""
	if f.Auto {
		kept += " --n-concurrent auto"
	}
	if n := before.Builds; n > 0 {
		f.Builds = &n
		kept += fmt.Sprintf(" --n-builds %d", n)
	}
	if n := before.Verifiers; n > 0 {
		f.Verifiers = &n
		kept += fmt.Sprintf(" --n-verifiers %d", n)
	}
	if kept != "" {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: the job is resumed with%s, as it was started\n", kept)
	}
}

// warnHardening says when a job's trials will not all have run alike.
func warnHardening(env *Env, hardened bool, p *job.Prepared) {
	start, known, err := journal.Before(p.Config.Dir())
	if len(p.Existing) == 0 || err != nil || !known || start.Hardened == hardened {
		return
	}
	began := "without"
	if start.Hardened {
		began = "with"
	}
	_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s of this job ended %s --hardened; proctor.json of each trial says which\n",
		count(len(p.Existing), "trial"), began)
}

// warnSealing says when a job's trials will not all have been verified alike.
func warnSealing(env *Env, sealed bool, p *job.Prepared) {
	if len(p.Existing) == 0 {
		return
	}
	start, known, err := journal.Before(p.Config.Dir())
	if err != nil || !known || start.SealedVerifier == sealed {
		return
	}
	began := "without"
	if start.SealedVerifier {
		began = "with"
	}
	_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s of this job ended %s --sealed-verifier; proctor.json of each trial says which\n",
		count(len(p.Existing), "trial"), began)
}
