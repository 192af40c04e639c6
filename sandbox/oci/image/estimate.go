package image

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/proctor-run/proctor/internal/machine"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Estimate is what pulling images would take.
type Estimate struct {
	// Missing are the references that are not in the store, and Unknown those
	// of them that could not be looked up, with the reason.
	Missing []string
	Unknown map[string]error
	// Download are the bytes to fetch. Disk is what is on disk in the end, as
	// far as it can be told before: content compresses to a third.
	Download, Disk int64
}

// lookups of images at a time.
const lookups = 8

// Estimate looks what pulling references would take, without fetching a layer.
// A layer that several images have counts once. A reference that cannot be
// looked up is no error.
func (s *Store) Estimate(ctx context.Context, refs []string) (Estimate, error) {
	e := Estimate{Unknown: map[string]error{}}
	var mu sync.Mutex
	asked, counted := map[string]bool{}, map[string]bool{} // counted is guarded by mu
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for _, ref := range refs {
		if asked[ref] {
			continue
		}
		asked[ref] = true
		group.Go(func() error {
			there, layers, err := s.lookUp(gctx, ref)
			mu.Lock()
			defer mu.Unlock()
			if there {
				return nil
			}
			e.Missing = append(e.Missing, ref)
			if err != nil {
				e.Unknown[ref] = err
			}
			for key, l := range layers {
				if counted[key] {
					continue
				}
				counted[key] = true
				e.Download += l.download
				e.Disk += l.disk
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return e, fmt.Errorf("estimating images: %w", err)
	}
	if ctx.Err() != nil {
		return e, context.Cause(ctx)
	}
	return e, nil
}

type layerEstimate struct{ download, disk int64 }

// lookUp returns the layers that the store lacks of an image, by key.
func (s *Store) lookUp(ctx context.Context, ref string) (there bool, layers map[string]layerEstimate, err error) {
	r, err := source.ParseReference(ref)
	if err != nil {
		return false, nil, err
	}
	if !r.Local() && !s.opts.Refresh {
		if _, ok, err := s.stored(r); ok && err == nil {
			return true, nil, nil
		}
	}
	c, err := s.find(ctx, r)
	if err != nil {
		return false, nil, err
	}
	defer c.Close()
	layers = map[string]layerEstimate{}
	for i, from := range c.Layers {
		key := fileKey(c.File.RootFS.DiffIDs[i].String())
		if _, ok, err := s.disk.readLayer(key); ok && err == nil {
			continue
		}
		var l layerEstimate
		l.download, l.disk = from.Estimate()
		layers[key] = l
	}
	return len(layers) == 0, layers, nil
}

// find looks an image up where Pull does, but for the store itself.
func (s *Store) find(ctx context.Context, r source.Reference) (*source.Candidate, error) {
	if r.Local() {
		c, err := s.sources.Local(ctx, r)
		return c, notFound(err)
	}
	c, looked, err := s.sources.Mirrors(ctx, r)
	if err != nil || c != nil {
		return c, err
	}
	if s.opts.Offline {
		return nil, &NotFoundError{Ref: r.Raw, Looked: append(looked, "no registry asked (offline)")}
	}
	c, err = s.sources.Registry(ctx, r)
	return c, notFound(err)
}

// SpaceError says that images would not fit on the disk of the store.
type SpaceError struct {
	Dir        string
	Need, Free int64 // bytes
	Images     int
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("the images that are not there yet (%d) need about %.1f GB in %q, where %.1f GB are free", e.Images, float64(e.Need)/1e9, e.Dir, float64(e.Free)/1e9)
}

// Hint says what to do about it.
func (e *SpaceError) Hint() string {
	return "make room with 'proctor image prune', or put PROCTOR_CACHE_DIR on a larger disk"
}

// CheckSpace returns a *SpaceError when what an estimate needs does not fit on
// the store's disk. A downloaded layer lies beside its files until they are
// made.
func (s *Store) CheckSpace(e Estimate) error {
	free, ok := machine.FreeBytes(s.disk.dir)
	if need := e.Disk + e.Download; ok && need > free {
		return &SpaceError{Dir: s.disk.dir, Need: need, Free: free, Images: len(e.Missing) - len(e.Unknown)}
	}
	return nil
}
