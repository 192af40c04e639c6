package main

import (
	"fmt"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir/journal"
)

// keepSealing reports whether the verifiers of a resumed job are sealed: when
// it is asked for, or was when the job was started.
func keepSealing(env *Env, asked bool, p *job.Prepared) bool {
	if sealed, _, err := journal.SealedBefore(p.Config.Dir()); err == nil && sealed && !asked {
		_, _ = fmt.Fprintln(env.Stderr, "proctor: the job is resumed with --sealed-verifier, as it was started")
		return true
	}
	warnSealing(env, asked, p)
	return asked
}

// warnSealing says when a job's trials will not all have been verified alike.
func warnSealing(env *Env, sealed bool, p *job.Prepared) {
	if len(p.Existing) == 0 {
		return
	}
	before, known, err := journal.SealedBefore(p.Config.Dir())
	if err != nil || !known || before == sealed {
		return
	}
	began := "without"
	if before {
		began = "with"
	}
	_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s of this job ended %s --sealed-verifier; proctor.json of each trial says which\n",
		count(len(p.Existing), "trial"), began)
}
