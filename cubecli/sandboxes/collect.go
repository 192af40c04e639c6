package sandboxes

import (
	"context"
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

// CollectAll removes what dead owners left in every environment of the options'
// registry that works here, and lists it; with dry it lists alone. An environment
// that does not work has left nothing that could be reached. What was removed is
// returned beside the errors.
func CollectAll(ctx context.Context, o Options, dry bool) (removed []string, err error) {
	look := Collect
	if dry {
		look = survey
	}
	var errs []error
	for _, e := range o.Backends.Entries() {
		if e.With != "" {
			continue
		}
		b, closeBackend, err := New(ctx, e.Name, o)
		if errors.Is(err, sandbox.ErrUnavailable) && !errors.Is(err, docker.ErrUntrusted) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found, err := look(ctx, b)
		removed = append(removed, found...)
		if !errors.Is(err, sandbox.ErrUnavailable) {
			errs = append(errs, err)
		}
		errs = append(errs, closeBackend())
	}
	return removed, errors.Join(errs...)
}

// Collect removes what dead owners left in a backend, and lists it.
func Collect(ctx context.Context, b sandbox.Backend) ([]string, error) {
	collector, ok := b.(sandbox.Collector)
	if !ok {
		return nil, nil
	}
	removed, err := collector.Collect(ctx, procid.ID.Alive)
	if err != nil {
		return removed, fmt.Errorf("cleaning up behind killed runs (%s): %w", b.Name(), err)
	}
	return removed, nil
}

// survey lists what [Collect] would remove.
func survey(ctx context.Context, b sandbox.Backend) ([]string, error) {
	s, ok := b.(sandbox.Surveyor)
	if !ok {
		return nil, nil
	}
	return s.Survey(ctx, procid.ID.Alive)
}
