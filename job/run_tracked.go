package job

import (
	"context"

	"github.com/proctor-run/proctor/sandbox"
)

var _ sandbox.NetworkSwitcher = (*trackedSandbox)(nil)

// SetNetwork passes the optional ability of a tracked sandbox on.
func (s *trackedSandbox) SetNetwork(ctx context.Context, mode sandbox.NetworkMode, hosts []string) error {
	sw, ok := s.Sandbox.(sandbox.NetworkSwitcher)
	if !ok {
		return sandbox.ErrUnsupported
	}
	return sw.SetNetwork(ctx, mode, hosts)
}
