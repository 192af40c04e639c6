// Command proctor hands tasks to AI agents in isolated sandboxes, verifies
// what they did and scores it.
package main

import (
	"context"
	"os"
	"time"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
)

func main() {
	sandboxes.Reexec()
	farewell := &jobcli.Farewell{}
	os.Exit(Run(context.Background(), Env{
		Args:    os.Args,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ(),
		Now:     time.Now,
		Signals: interrupt.Signals(func() {
			farewell.Say()
			os.Exit(exitInterrupted)
		}),
		farewell: farewell,
	}))
}
