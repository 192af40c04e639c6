package main

import (
	"fmt"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// keepSealing goes on with the sealed verifier that a job began with.
func keepSealing(env *Env, f *runFlags, p *job.Prepared) {
	if sealed, _, err := jobdir.SealedBefore(p.Config.Dir()); err == nil && sealed && !f.sealed {
		f.sealed = true
		fmt.Fprintln(env.Stderr, "proctor: the job is resumed with --sealed-verifier, as it was started")
		return
	}
	warnSealing(env, f, p)
}

// warnSealing says when a job's trials will not all have been verified alike.
func warnSealing(env *Env, f *runFlags, p *job.Prepared) {
	if len(p.Existing) == 0 {
		return
	}
	before, known, err := jobdir.SealedBefore(p.Config.Dir())
	if err != nil || !known || before == f.sealed {
		return
	}
	began := "without"
	if before {
		began = "with"
	}
	fmt.Fprintf(env.Stderr, "proctor: warning: %s of this job ended %s --sealed-verifier; proctor.json of each trial says which\n",
		count(len(p.Existing), "trial"), began)
}
