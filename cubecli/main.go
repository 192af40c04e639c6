package cubecli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
)

// Main is the program of a cube's author: it runs one command on the cubes and
// exits with the codes of docs/exit-codes.md. It opens no sandboxes; for cubes
// whose tasks run in containers, sandboxes.Main of package cubecli/sandboxes
// takes its place.
func Main(cubes ...Cube) {
	os.Exit(NewProgram(cubes...).Run(context.Background()))
}

// NewProgram returns the command line of this process for the cubes: with its
// arguments, outputs, environment and signals, of which the first ends it while nothing
// runs, and the third whatever it does. Sandboxes is left to be set.
func NewProgram(cubes ...Cube) *Program {
	farewell := &jobcli.Farewell{}
	return &Program{
		Name: filepath.Base(os.Args[0]), Cubes: cubes,
		Args: os.Args, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Environ: os.Environ(), Now: time.Now,
		Signals: interrupt.Signals(func() {
			farewell.Say()
			os.Exit(exitcode.Interrupted)
		}),
		farewell: farewell,
	}
}
