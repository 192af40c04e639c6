package oci

import (
	"context"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/storage"
)

// noteLogs has what commands write to a trial's directories watched too.
func (s *Sandbox) noteLogs(mounts []sandbox.Mount) {
	for _, m := range mounts {
		if m.Guarded && !m.ReadOnly {
			s.written = append(s.written, m.Source)
		}
	}
}

// begin is all that comes before the first command.
func (s *Sandbox) begin(ctx context.Context, base *base) error {
	if err := s.enter(ctx, base); err != nil {
		return err
	}
	return s.boundStorage(ctx)
}

// boundStorage ends commands whenever more is written than may be. The entrypoint stays.
func (s *Sandbox) boundStorage(ctx context.Context) error {
	if s.storage <= 0 || len(s.written) == 0 {
		return nil
	}
	mark, err := s.client.Mark(ctx)
	if err != nil {
		return err
	}
	var kept int64 // what snapshots keep of it
	for _, l := range s.stack {
		kept += l.size
	}
	s.watch = &storage.Watch{Dirs: s.written, Kept: kept, Limit: s.storage, Exceeded: func(ctx context.Context, bytes int64) {
		err := s.client.KillTree(ctx, mark, 0)
		s.backend.opts.Log.Warn("a sandbox's commands were ended: it has written more than it may", "sandbox", s.id, "bytes", bytes, "limit", s.storage, "error", err)
	}}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.watched = cancel
	go s.watch.Run(watching) // until the sandbox ends
	return nil
}
