package main

import (
	"errors"
	"os"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
)

// hostName is the name of this machine, empty if it has none.
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// guardJob keeps others from writing to a job directory until release. One
// that is not there yet is guarded when it is made.
func guardJob(env *Env, dir string) (g *jobdir.Guard, err error) {
	if !isDirectory(dir) {
		return nil, nil
	}
	owner, err := procid.Self()
	if err != nil {
		return nil, err
	}
	g, err = jobdir.Acquire(dir, jobdir.Holder{Owner: owner, Host: hostName(), Since: env.Now().UTC()})
	return g, inUse(err)
}

// inUse makes a directory that somebody else writes to an error of usage.
func inUse(err error) error {
	if errors.Is(err, job.ErrOvertaken) {
		return usageErrorf("%w", err)
	}
	if _, ok := errors.AsType[*jobdir.InUseError](err); !ok {
		return err
	}
	return withHint(usageErrorf("%w", err), "wait for it to end, or end it; locks of dead processes are ignored")
}
