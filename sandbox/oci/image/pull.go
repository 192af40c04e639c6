package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proctor-run/proctor/sandbox"
)

// Pull returns an image, fetching what the store lacks. Concurrent calls for
// the same image share the work; it continues while one of them still waits.
// Progress, when not nil, receives what happens, a few times per second at most
// and never from two goroutines at a time. Errors: *NotFoundError and
// *PlatformError (both are sandbox.ErrImageNotFound), *UnauthorizedError,
// *UnreachableError, *DigestError, *LayerError.
func (s *Store) Pull(ctx context.Context, ref string, progress func(message string)) (Image, error) {
	r, err := parseReference(ref)
	if err != nil {
		return Image{}, err
	}
	img, err := s.pulls.do(ctx, r.full(), progress, func(ctx context.Context, say func(string)) (Image, error) {
		return s.pull(ctx, r, say)
	})
	if err != nil {
		return Image{}, err
	}
	img.Ref = ref
	return img, nil
}

func (s *Store) pull(ctx context.Context, r reference, say func(string)) (Image, error) {
	if r.kind != kindRegistry {
		c, err := s.openLocal(ctx, r)
		if err != nil {
			return Image{}, err
		}
		return s.fetch(ctx, r, c, say)
	}
	c, looked, err := s.fromMirrors(ctx, r)
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
		return Image{}, &NotFoundError{Ref: r.raw, Looked: append(looked, "no registry asked (offline)")}
	}
	say("pulling " + r.raw)
	c, err = s.fromRegistry(ctx, r)
	if nf, ok := errors.AsType[*NotFoundError](err); ok {
		nf.Looked = append(looked, nf.Looked...)
	}
	if err != nil {
		return Image{}, err
	}
	img, err := s.fetch(ctx, r, c, say)
	if err != nil {
		return Image{}, registryError(ctx, r, err)
	}
	return img, nil
}

// openLocal finds the image in its layout or archive.
func (s *Store) openLocal(ctx context.Context, r reference) (*candidate, error) {
	if r.kind == kindLayout {
		return s.fromLayout(ctx, r)
	}
	return s.fromArchive(ctx, r)
}

// fromMirrors looks through the mirror layouts, and says where it looked.
func (s *Store) fromMirrors(ctx context.Context, r reference) (*candidate, []string, error) {
	var looked []string
	for _, dir := range s.opts.Mirrors {
		c, err := s.fromMirror(ctx, r, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			looked = append(looked, fmt.Sprintf("no OCI layout at %q", dir))
		case errors.Is(err, sandbox.ErrImageNotFound):
			looked = append(looked, err.Error())
		case err != nil:
			return nil, nil, err
		case c != nil:
			return c, nil, nil
		default:
			looked = append(looked, fmt.Sprintf("not in mirror %q", dir))
		}
	}
	return nil, looked, nil
}

// fetch unpacks what the store lacks of a candidate, and closes it.
func (s *Store) fetch(ctx context.Context, r reference, c *candidate, say func(string)) (Image, error) {
	defer c.close()
	img, ok, err := s.load(c.id())
	if err != nil {
		return Image{}, err
	}
	if !ok {
		if img, err = s.unpackAll(ctx, r, c, say); err != nil {
			return Image{}, err
		}
		defer s.keepLimit(ctx)
	}
	img.Ref, img.Digest = r.raw, c.digest
	if r.kind == kindRegistry {
		return img, s.writeRef(r, img.ID, img.Digest)
	}
	return img, nil
}

func (s *Store) unpackAll(ctx context.Context, r reference, c *candidate, say func(string)) (Image, error) {
	total := int64(0)
	for _, l := range c.layers {
		total += l.size()
	}
	p := &pullProgress{ref: r.raw, say: say, total: total, layers: len(c.layers), now: s.opts.Now}
	layers := make([]Layer, len(c.layers))
	group, gctx := errgroup.WithContext(ctx)
	for i, source := range c.layers {
		diffID := c.file.RootFS.DiffIDs[i]
		group.Go(func() error {
			part := &layerProgress{all: p, size: source.size()}
			layer, err := s.unpackLayer(gctx, diffID, source, part.add)
			if err != nil {
				return fmt.Errorf("layer %d of %q: %w", i+1, r.raw, err)
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
	return s.record(ctx, c.config, c.digest, layers)
}

// record composes the layers and writes the image.
func (s *Store) record(ctx context.Context, config []byte, digest string, layers []Layer) (Image, error) {
	keys, err := s.compose(ctx, layers)
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
