//go:build !linux

package bench

import (
	"context"
	"errors"
	"fmt"
)

// server is what only Linux has.
type server struct{}

func serve(context.Context) (*server, error) { return nil, errors.New("it is measured on Linux only") }

func (*server) close() {}

func (t *turn) network(context.Context) error { return fmt.Errorf("%w: %s", errUnable, t.noNet) }

func (t *turn) idle(context.Context) error {
	return fmt.Errorf("%w: it is measured on Linux only", errUnable)
}

func (r *run) hostNetwork(context.Context) float64 { return 0 }
