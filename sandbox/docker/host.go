package docker

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/sandbox"
)

var _ sandbox.HostTeller = (*Backend)(nil)

// Host is what the engine says of its machine. How much it may still write is not known.
func (b *Backend) Host(ctx context.Context) (sandbox.Host, error) {
	info, err := b.api.Info(ctx, client.InfoOptions{})
	if err != nil {
		return sandbox.Host{}, fmt.Errorf("asking the engine what its machine has: %w", err)
	}
	return sandbox.Host{CPUs: max(info.Info.NCPU, 0), MemoryMiB: max(info.Info.MemTotal, 0) >> 20}, nil
}
