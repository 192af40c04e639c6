package image

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Pull returns an image, fetching what the store lacks. Concurrent calls for
// the same image share the work; it continues while one of them still waits.
// Progress, when not nil, receives what happens, a few times per second at most
// and never from two goroutines at a time. Errors: sandbox.ErrImageNotFound, which
// *NotFoundError is and the error for an image of other platforms; ErrLimit and
// ErrMalformed of a layer; those of the registry and of damaged content.
func (s *Store) Pull(ctx context.Context, ref string, progress func(message string)) (Image, error) {
	r, err := source.ParseReference(ref)
	if err != nil {
		return Image{}, err
	}
	img, err := s.pulls.do(ctx, r.Full(), progress, func(ctx context.Context, say func(string)) (Image, error) {
		return s.pull(ctx, r, say)
	})
	if err != nil {
		return Image{}, err
	}
	img.Ref = ref
	return img, nil
}

func (s *Store) pull(ctx context.Context, r source.Reference, say func(string)) (Image, error) {
	if r.Local() {
		c, err := s.sources.Local(ctx, r)
		if err != nil {
			return Image{}, notFound(err)
		}
		return s.fetch(ctx, r, c, say)
	}
	c, looked, err := s.sources.Mirrors(ctx, r)
	if err != nil {
		return Image{}, err
	}
	if c != nil {
		return s.fetch(ctx, r, c, say)
	}
	if !s.opts.Refresh || s.opts.Offline {
		if img, ok, err := s.stored(r); ok || err != nil {
			return img, err
		}
	}
	looked = append(looked, "not in the store")
	if s.opts.Offline {
		return Image{}, &NotFoundError{Ref: r.Raw, Looked: append(looked, "no registry asked (offline)")}
	}
	say("pulling " + r.Raw)
	if c, err = s.sources.Registry(ctx, r); err != nil {
		return Image{}, notFound(err, looked...)
	}
	img, err := s.fetch(ctx, r, c, say)
	if err != nil {
		return Image{}, notFound(source.RegistryError(ctx, r, err))
	}
	return img, nil
}

// fetch unpacks what the store lacks of a candidate, and closes it.
func (s *Store) fetch(ctx context.Context, r source.Reference, c *source.Candidate, say func(string)) (Image, error) {
	defer c.Close()
	img, ok, err := s.load(c.ID())
	if err != nil {
		return Image{}, err
	}
	if !ok {
		if img, err = s.unpackAll(ctx, r, c, say); err != nil {
			return Image{}, err
		}
		defer s.keepLimit(ctx)
	}
	img.Ref, img.Digest = r.Raw, c.Digest
	if !r.Local() {
		return img, s.disk.writeRef(r, img.ID, img.Digest)
	}
	return img, nil
}

func (s *Store) unpackAll(ctx context.Context, r source.Reference, c *source.Candidate, say func(string)) (Image, error) {
	total := int64(0)
	for _, l := range c.Layers {
		total += l.Size()
	}
	p := &pullProgress{ref: r.Raw, say: say, total: total, layers: len(c.Layers), now: s.opts.Now}
	layers := make([]Layer, len(c.Layers))
	group, gctx := errgroup.WithContext(ctx)
	for i, from := range c.Layers {
		diffID := c.File.RootFS.DiffIDs[i]
		group.Go(func() error {
			part := &layerProgress{all: p, size: from.Size()}
			layer, err := s.layers.unpack(gctx, diffID, from, part.add)
			if err != nil {
				return fmt.Errorf("layer %d of %q: %w", i+1, r.Raw, err)
			}
			layers[i] = layer
			part.finish()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		if ctx.Err() != nil {
			return Image{}, context.Cause(ctx)
		}
		return Image{}, err
	}
	return s.record(ctx, c.Config, c.Digest, layers)
}

// record composes the layers and writes the image.
func (s *Store) record(ctx context.Context, config []byte, digest string, layers []Layer) (Image, error) {
	keys, err := s.layers.compose(ctx, layers)
	if err != nil {
		return Image{}, err
	}
	return s.write(record{Digest: digest, Layers: keys, Config: config})
}

// reportEvery is how often progress is reported.
const reportEvery = 300 * time.Millisecond

// pullProgress turns bytes and layers into messages.
type pullProgress struct {
	ref    string
	say    func(string)
	total  int64
	layers int
	now    func() time.Time

	mu    sync.Mutex // guards what follows
	bytes int64
	done  int
	last  time.Time
}

// layerProgress is one layer's part of a pull.
type layerProgress struct {
	all  *pullProgress
	size int64
	seen int64 // guarded by all.mu
}

// add counts bytes as they come. What comes twice, after a restart, counts once.
func (l *layerProgress) add(n int) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	fresh := min(int64(n), l.size-l.seen)
	l.seen += fresh
	l.all.bytes += fresh
	l.all.report()
}

// finish counts the layer, with bytes that needed no fetching because the store
// had it or another pull fetched it.
func (l *layerProgress) finish() {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.all.bytes += l.size - l.seen
	l.seen = l.size
	l.all.done++
	if l.all.done == l.all.layers {
		l.all.last = time.Time{}
	}
	l.all.report()
}

func (p *pullProgress) report() {
	now := p.now()
	if now.Sub(p.last) < reportEvery {
		return
	}
	p.last = now
	const mb = 1e6
	p.say(fmt.Sprintf("pulling %s: %.1f of %.1f MB, %d of %d layers", p.ref, float64(p.bytes)/mb, float64(p.total)/mb, p.done, p.layers))
}
