package image

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/internal/clock"
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
	dir      string
	session  *session
	format   format
	platform v1.Platform
	opts     Options
	limits   Limits
	registry *registry
	log      *slog.Logger
	slots    chan struct{} // bounds layers in work

	boot   string
	sealer sealer

	pulls  *flight[Image]
	layers *flight[Layer]

	mu     sync.Mutex
	claims map[string]claim // by key; guarded by mu
	held   map[string]bool  // IDs of the images handed out; guarded by mu
	closed bool             // guarded by mu
}

// Open opens the store in dir, which is created when missing, and removes what
// killed processes left in it.
func Open(dir string, opts Options) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening image store: %w", err)
	}
	for _, sub := range []string{"", "layers", "images", "refs", "caches", "locks", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("opening image store: %w", err)
		}
	}
	opts.Now = clock.Or(opts.Now)
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := removeLeftovers(filepath.Join(dir, "tmp"), log); err != nil {
		return nil, fmt.Errorf("cleaning image store %q: %w", dir, err)
	}
	session, err := newSession(filepath.Join(dir, "tmp"))
	if err != nil {
		return nil, fmt.Errorf("opening image store %q: %w", dir, err)
	}
	format := probeFormat(session.dir)
	if err := os.MkdirAll(filepath.Join(dir, "layers", string(format)), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("opening image store: %w", err), session.end())
	}
	s := &Store{
		dir:      dir,
		session:  session,
		format:   format,
		platform: v1.Platform{OS: "linux", Architecture: cmp.Or(opts.Architecture, runtime.GOARCH)},
		opts:     opts,
		limits:   opts.Limits.withDefaults(),
		registry: newRegistry(opts, log),
		log:      log,
		slots:    make(chan struct{}, cmp.Or(opts.Parallel, max(minParallel, runtime.GOMAXPROCS(0)))),
		pulls:    newFlight[Image](),
		layers:   newFlight[Layer](),
		claims:   map[string]claim{},
		held:     map[string]bool{},
		boot:     bootID(),
	}
	s.sealer = sealer{dir: dir, seal: s.sealLayer}
	return s, nil
}

// Close ends what is under way, waits until the layers that were handed out are
// on disk, and gives up the claim on them. A second call does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	s.pulls.close()
	s.layers.close()
	s.registry.close()
	errs := []error{s.sealer.end()}

	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.claims {
		errs = append(errs, release(c.lock))
	}
	s.claims = nil
	return errors.Join(append(errs, s.session.end())...)
}

// Resolve returns an image if all of it is in the store. It asks no registry
// and unpacks nothing. Errors: sandbox.ErrImageNotFound when the store has not
// got it.
func (s *Store) Resolve(ctx context.Context, ref string) (Image, error) {
	r, err := parseReference(ref)
	if err != nil {
		return Image{}, err
	}
	img, ok, err := s.resolve(ctx, r)
	if err != nil {
		return Image{}, err
	}
	if !ok {
		return Image{}, &NotFoundError{Ref: ref, Looked: []string{fmt.Sprintf("not in the store %q", s.dir)}}
	}
	return img, nil
}

func (s *Store) resolve(ctx context.Context, r reference) (Image, bool, error) {
	if r.kind == kindRegistry {
		return s.stored(r)
	}
	c, err := s.openLocal(ctx, r)
	if err != nil {
		return Image{}, false, err
	}
	defer c.close()
	img, ok, err := s.load(c.id())
	img.Ref, img.Digest = r.raw, c.digest
	return img, ok, err
}

// refRecord is how the store keeps what a reference meant.
type refRecord struct {
	Ref    string `json:"ref"`
	ID     string `json:"id"`
	Digest string `json:"digest,omitempty"`
}

// stored looks an ordinary reference up in the store alone.
func (s *Store) stored(r reference) (Image, bool, error) {
	var rec refRecord
	if ok, err := readJSON(s.refFile(r), &rec); !ok || err != nil {
		return Image{}, false, err
	}
	img, ok, err := s.load(rec.ID)
	img.Ref, img.Digest = r.raw, rec.Digest
	if ok && err == nil {
		s.touch(s.refFile(r))
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
	if !isDigest(id) {
		return Image{}, false, nil
	}
	var rec record
	if ok, err := readJSON(s.imageFile(id), &rec); !ok || err != nil {
		return Image{}, false, err
	}
	if digestOf(rec.Config) != id {
		return Image{}, false, nil // damaged; the next pull writes it anew
	}
	return s.assemble(id, rec)
}

// assemble claims the layers of an image.
func (s *Store) assemble(id string, rec record) (Image, bool, error) {
	file, err := parseConfig(rec.Config)
	if err != nil {
		return Image{}, false, err
	}
	if !s.matches(file) {
		return Image{}, false, nil
	}
	img := Image{ID: id, Digest: rec.Digest, Config: configOf(file), UserXattr: s.format == formatUser}
	for _, key := range rec.Layers {
		layer, ok, err := s.claim(key)
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

func (s *Store) imageFile(id string) string { return s.imageFileIn(id, s.format) }

func (s *Store) imageFileIn(id string, f format) string {
	return filepath.Join(s.dir, "images", fileKey(id)+"."+string(f)+".json")
}

func (s *Store) refFile(r reference) string {
	return filepath.Join(s.dir, "refs", fileKey(digestOf([]byte(r.full())))+"."+s.platform.Architecture+".json")
}

func (s *Store) writeRef(r reference, id, digest string) error {
	return s.writeJSON(s.refFile(r), refRecord{Ref: r.full(), ID: id, Digest: digest})
}

// readJSON reads a file of the store. One that is missing or damaged counts as
// not there.
func readJSON(path string, into any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the image store: %w", err)
	}
	return json.Unmarshal(data, into) == nil, nil
}

// writeJSON writes a file of the store, whole or not at all. It need not be on
// disk at once: what a machine that stops leaves of it counts as not there.
func (s *Store) writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing to the image store: %w", err)
	}
	tmp, err := s.session.file("json-*")
	if err != nil {
		return fmt.Errorf("writing to the image store: %w", err)
	}
	_, err = tmp.Write(append(data, '\n'))
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing to the image store: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}
