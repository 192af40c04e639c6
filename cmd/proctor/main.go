// Command proctor hands tasks to AI agents in isolated sandboxes, verifies
// what they did and scores it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
)

func main() {
	sandboxes.Reexec()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(Run(context.Background(), Env{
		Args:    os.Args,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Environ: os.Environ(),
		Now:     time.Now,
		Signals: signals,
	}))
}
