package job

import (
	"context"
	"math/rand/v2"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
)

// Run prepares a job and runs it in the sandboxes of a backend: [Prepare] and
// [Runner.Run] with what they do when nothing is set. The tasks of the
// configuration lie in local directories, the agents are
// those of the registry, and templates in tasks find no variables of this machine. The
// configuration that is recorded names the backend.
//
// The configuration is jobdir.NewConfig with tasks or datasets. A directory
// that holds the same job already is resumed.
func Run(ctx context.Context, cfg jobdir.Config, agents agent.Registry, backend sandbox.Backend) (*Summary, error) {
	if err := cfg.CheckRunnable(); err != nil {
		return nil, err
	}
	if _, none := backend.(NoSandboxes); !none {
		cfg.Environment.SetBackend(backend.Name())
	}
	p, err := Prepare(cfg, PrepareOptions{})
	if err != nil {
		return nil, err
	}
	r := Runner{Trials: trial.Runner{Backend: backend, Agents: agents}}
	return r.Run(ctx, p)
}

// withDefaults sets what was left out.
func (o PrepareOptions) withDefaults() PrepareOptions {
	if o.Now.IsZero() {
		o.Now = clock.Or(nil)()
	}
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	if o.Random == nil {
		o.Random = rand.IntN
	}
	return o
}
