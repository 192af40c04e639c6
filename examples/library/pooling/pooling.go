// Package pooling measures what it is worth to keep sandboxes ready, for those
// who reset environments very often.
package pooling

import (
	"context"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/bench"
	"github.com/proctor-run/proctor/sandbox/pool"
)

// Compare measures how long a backend takes to create a sandbox like spec, by
// itself and behind a pool that keeps so many of them ready.
func Compare(ctx context.Context, b sandbox.Backend, spec sandbox.Spec, ready, runs int) (_ *bench.Report, err error) {
	p := pool.New(b, pool.Options{Size: ready})
	defer func() {
		if closing := p.Close(context.WithoutCancel(ctx)); err == nil && closing != nil {
			err = fmt.Errorf("removing what was ready: %w", closing)
		}
	}()
	if err := p.Fill(ctx, spec); err != nil {
		return nil, fmt.Errorf("making sandboxes ready: %w", err)
	}
	report, err := bench.Run(ctx, bench.Options{
		Subjects: []bench.Subject{
			{Name: "made when asked for", Environment: b.Name(), Backend: b, Spec: spec},
			{Name: "kept ready", Environment: b.Name(), Backend: p, Spec: spec},
		},
		Runs: runs, Only: []string{"create"}, Now: time.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("measuring: %w", err)
	}
	return report, nil
}
