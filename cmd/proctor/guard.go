package main

import (
	"os"

	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
)

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
	host, _ := os.Hostname() // a machine may have no name
	g, err = jobdir.Acquire(dir, jobdir.Holder{Owner: owner, Host: host, Since: env.Now().UTC()})
	return g, jobcli.InUse(err)
}
