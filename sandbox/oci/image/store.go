package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/layerfs"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Options of a store. The zero value is usable.
type Options struct {
	// Mirrors are OCI layout directories that are asked for ordinary references
	// before any registry. An image's name in them is the annotation
	// org.opencontainers.image.ref.name ("debian:12").
	Mirrors []string
	// Offline: no registry is asked.
	Offline bool
	// Refresh asks the registry even when the store has the reference.
	Refresh bool
	// Keychain has the credentials; nil means those of the user's docker login.
	Keychain authn.Keychain
	// Transport reaches registries; nil means one that honours the proxy
	// variables of the environment.
	Transport http.RoundTripper
	// Architecture in Go's words ("arm64"); empty means this machine's.
	Architecture string
	// Parallel layers being downloaded or unpacked; 0 means one for each
	// processor, at least four.
	Parallel int
	// Limit of the bytes of files in all layers together; 0 means none. When
	// something is added beyond it, images that were not asked for the longest
	// are removed, but for those that a process has open.
	Limit int64
	// Limits of what a layer may be.
	Limits Limits
	// Retries replaces DefaultRetries when not nil.
	Retries []Retry
	// Log receives retries and removed leftovers; nil discards.
	Log *slog.Logger
	// Now is the clock for the pace of progress messages and for Retry-After
	// dates; nil means time.Now. No file depends on it.
	Now func() time.Time
}

// minParallel layers at a time at least, where Options do not say: registries
// limit connections, and an unpacking layer keeps a processor busy, or two.
const minParallel = 4

// Store keeps unpacked layers and the images made of them. Its methods may be
// called concurrently, and several processes may use one directory.
//
// The directory holds
//
//	layers/FORMAT/KEY/diff/       an unpacked layer; FORMAT is trusted or user
//	layers/FORMAT/KEY/layer.json  what unpacking found, and whether it is sealed
//	images/HEX.json               an image, by the digest of its config
//	refs/HEX.json                 a reference, by the digest of its full name
//	caches/KEY/data/              a cache of builds
//	locks/                        one file per layer that was ever there
//	tmp/                          work of running processes
type Store struct {
	disk    *disk
	opts    Options
	log     *slog.Logger
	sources *source.Finder
	layers  *layerSet
	upkeep  *upkeep
	pulls   *flight[Image]
	// sleep waits before a registry is asked again, or returns the context's cause.
	sleep func(ctx context.Context, d time.Duration) error

	mu   sync.Mutex
	held map[string]bool // IDs of the images handed out; guarded by mu
}

// Open opens the store in dir, which is created when missing, and removes what
// killed processes left in it.
func Open(dir string, opts Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening image store: %w", err)
	}
	opts.Now = clock.Or(opts.Now)
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d, err := openDisk(dir, opts.Architecture, log)
	if err != nil {
		return nil, err
	}
	limits := opts.Limits.withDefaults()
	s := &Store{
		disk:   d,
		opts:   opts,
		log:    log,
		layers: newLayerSet(d, limits, cmp.Or(opts.Parallel, max(minParallel, runtime.GOMAXPROCS(0)))),
		pulls:  newFlight[Image](),
		sleep:  clock.Sleep,
		held:   map[string]bool{},
	}
	s.upkeep = &upkeep{disk: d, caches: &caches{d}, held: s.holds}
	s.sources = source.New(source.Options{
		Mirrors:   opts.Mirrors,
		Keychain:  opts.Keychain,
		Transport: opts.Transport,
		Retries:   retryTable(opts.Retries),
		Platform:  d.platform,
		MaxBytes:  limits.Bytes,
		Scratch:   d.session.file,
		Log:       log,
		Now:       opts.Now,
		Sleep:     func(ctx context.Context, d time.Duration) error { return s.sleep(ctx, d) },
	})
	return s, nil
}

// holds reports whether the store has handed an image out.
func (s *Store) holds(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[id]
}

// Close ends what is under way, waits until the layers that were handed out are
// on disk, and gives up the claim on them. A second call does nothing.
func (s *Store) Close() error {
	if !s.layers.shut() {
		return nil
	}
	s.pulls.close()
	err := s.layers.close()
	s.sources.Close()
	return errors.Join(err, s.disk.session.end())
}

// Resolve returns an image if all of it is in the store. It asks no registry
// and unpacks nothing. Errors: sandbox.ErrImageNotFound when the store has not
// got it.
func (s *Store) Resolve(ctx context.Context, ref string) (Image, error) {
	r, err := source.ParseReference(ref)
	if err != nil {
		return Image{}, err
	}
	img, ok, err := s.resolve(ctx, r)
	if err != nil {
		return Image{}, err
	}
	if !ok {
		return Image{}, &NotFoundError{Ref: ref, Looked: []string{fmt.Sprintf("not in the store %q", s.disk.dir)}}
	}
	return img, nil
}

func (s *Store) resolve(ctx context.Context, r source.Reference) (Image, bool, error) {
	if !r.Local() {
		return s.stored(r)
	}
	c, err := s.sources.Local(ctx, r)
	if err != nil {
		return Image{}, false, notFound(err)
	}
	defer c.Close()
	img, ok, err := s.load(c.ID())
	img.Ref, img.Digest = r.Raw, c.Digest
	return img, ok, err
}

// stored looks an ordinary reference up in the store alone.
func (s *Store) stored(r source.Reference) (Image, bool, error) {
	var rec refRecord
	if ok, err := readJSON(s.disk.refFile(r), &rec); !ok || err != nil {
		return Image{}, false, err
	}
	img, ok, err := s.load(rec.ID)
	img.Ref, img.Digest = r.Raw, rec.Digest
	if ok && err == nil {
		s.touch(s.disk.refFile(r))
	}
	return img, ok, err
}

// usedEvery is how exactly the store knows when a reference was asked for last.
const usedEvery = time.Minute

// touch notes that a reference is in use, for PruneUnused.
func (s *Store) touch(path string) {
	info, err := os.Stat(path)
	if now := s.opts.Now(); err == nil && now.Sub(info.ModTime()) > usedEvery {
		// Who may not change the file did not make it, and does not prune it.
		_ = os.Chtimes(path, now, now)
	}
}

// load returns an image by its ID when all its layers are there, and claims them.
func (s *Store) load(id string) (Image, bool, error) {
	if !blob.IsDigest(id) {
		return Image{}, false, nil
	}
	var rec record
	if ok, err := readJSON(s.disk.imageFile(id), &rec); !ok || err != nil {
		return Image{}, false, err
	}
	if blob.DigestOf(rec.Config) != id {
		return Image{}, false, nil // damaged; the next pull writes it anew
	}
	return s.assemble(id, rec)
}

// assemble claims the layers of an image.
func (s *Store) assemble(id string, rec record) (Image, bool, error) {
	file, err := source.ParseConfig(rec.Config)
	if err != nil {
		return Image{}, false, err
	}
	if !s.sources.Fits(file) {
		return Image{}, false, nil
	}
	img := Image{ID: id, Digest: rec.Digest, Config: configOf(file), UserXattr: s.disk.format == layerfs.User}
	for _, key := range rec.Layers {
		layer, ok, err := s.layers.claim(key)
		if !ok || err != nil {
			return Image{}, false, err
		}
		img.Layers = append(img.Layers, layer)
	}
	s.mu.Lock()
	s.held[id] = true
	s.mu.Unlock()
	return img, true, nil
}
