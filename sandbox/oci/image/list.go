package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/blob"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Stored is an image that a store has.
type Stored struct {
	ID     string `json:"id"`     // see Image.ID
	Digest string `json:"digest"` // see Image.Digest
	// Refs are the full names under which the image was pulled or built;
	// images of layouts and archives have none.
	Refs   []string `json:"refs"`
	Layers int      `json:"layers"`
	// Bytes of the files in all its layers, and in those that no other image has.
	Bytes    int64 `json:"bytes"`
	OwnBytes int64 `json:"own_bytes"`
	// Used is when the image was last asked for, to a minute.
	Used time.Time `json:"used"`
	// InUse: some process has the image open, and it cannot be removed.
	InUse bool `json:"in_use"`

	keys []string
	file string
	refs []string // files
}

// List returns what the store has, the image that was asked for last first.
// An image of which a layer is missing is not there.
func (s *Store) List(ctx context.Context) ([]Stored, error) {
	all, _, err := s.upkeep.survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
	}
	return all, nil
}

// upkeep lists what a store has, and removes what is not needed. It works on the
// files of the store alone: what some process uses it finds locked.
type upkeep struct {
	disk   *disk
	caches *caches
	// held reports whether the store of this process has handed out an image.
	held func(id string) bool
}

// survey reads everything that the store notes: images, and the size of each
// layer by its key.
func (u *upkeep) survey(ctx context.Context) ([]Stored, map[string]int64, error) {
	sizes, err := u.layerSizes(ctx)
	if err != nil {
		return nil, nil, err
	}
	names, err := u.refsByID()
	if err != nil {
		return nil, nil, err
	}
	entries, err := os.ReadDir(filepath.Join(u.disk.dir, "images"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the image store: %w", err)
	}
	var all []Stored
	users := map[string]int{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "."+string(u.disk.format)+".json") {
			continue
		}
		one, ok, err := u.describe(filepath.Join(u.disk.dir, "images", e.Name()), names)
		if err != nil {
			return nil, nil, err
		}
		if !ok || slices.ContainsFunc(one.keys, func(key string) bool { _, there := sizes[key]; return !there }) {
			continue
		}
		for _, key := range one.keys {
			users[key]++
		}
		all = append(all, one)
	}
	for i := range all {
		for _, key := range all[i].keys {
			all[i].Bytes += sizes[key]
			if users[key] == 1 {
				all[i].OwnBytes += sizes[key]
			}
		}
	}
	slices.SortFunc(all, func(a, b Stored) int { return cmp.Or(b.Used.Compare(a.Used), strings.Compare(a.ID, b.ID)) })
	return all, sizes, nil
}

// describe reads one image. One that is damaged or was removed meanwhile is
// not there.
func (u *upkeep) describe(file string, names map[string][]namedRef) (Stored, bool, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Stored{}, false, nil
	}
	if err != nil {
		return Stored{}, false, fmt.Errorf("reading the image store: %w", err)
	}
	var rec record
	if ok, err := readJSON(file, &rec); !ok || err != nil {
		return Stored{}, false, err
	}
	one := Stored{ID: blob.DigestOf(rec.Config), Digest: rec.Digest, Refs: []string{}, Used: info.ModTime(), file: file}
	if u.disk.imageFile(one.ID) != file {
		return Stored{}, false, nil
	}
	one.keys = slices.Compact(slices.Sorted(slices.Values(rec.Layers)))
	one.Layers = len(rec.Layers)
	for _, n := range names[one.ID] {
		one.Refs = append(one.Refs, n.ref)
		one.refs = append(one.refs, n.file)
		one.Digest = cmp.Or(one.Digest, n.digest)
		if n.used.After(one.Used) {
			one.Used = n.used
		}
	}
	slices.Sort(one.Refs)
	one.InUse, err = u.inUse(one)
	return one, true, err
}

// inUse reports whether some process, this one too, has all layers of an image
// claimed, as it has who was given the image.
func (u *upkeep) inUse(one Stored) (bool, error) {
	for _, key := range one.keys {
		lock := u.disk.layerLock(key)
		free, err := lock.TryLock()
		if err = errors.Join(err, lock.Close()); err != nil {
			return false, fmt.Errorf("locking a layer: %w", err)
		}
		if free {
			return false, nil
		}
	}
	return len(one.keys) > 0, nil
}

type namedRef struct {
	ref, digest, file string
	used              time.Time
}

// refsByID reads the references, by the ID of their image.
func (u *upkeep) refsByID() (map[string][]namedRef, error) {
	dir := filepath.Join(u.disk.dir, "refs")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the image store: %w", err)
	}
	names := map[string][]namedRef{}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		var rec refRecord
		ok, err := readJSON(file, &rec)
		if err != nil {
			return nil, err
		}
		info, err := e.Info()
		if !ok || err != nil {
			continue // removed meanwhile, or damaged
		}
		names[rec.ID] = append(names[rec.ID], namedRef{ref: rec.Ref, digest: rec.Digest, file: file, used: info.ModTime()})
	}
	return names, nil
}

// layerSizes reads how large the files of each layer are.
func (u *upkeep) layerSizes(ctx context.Context) (map[string]int64, error) {
	entries, err := os.ReadDir(u.disk.layersDir())
	if err != nil {
		return nil, fmt.Errorf("reading the image store: %w", err)
	}
	sizes := map[string]int64{}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info, ok, err := u.disk.readLayer(e.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			sizes[e.Name()] = info.Notes.Bytes
		}
	}
	return sizes, nil
}

// ErrInUse says that an image cannot be removed because some process uses it.
var ErrInUse = errors.New("the image is in use")

// Remove removes one image by a reference, or by its ID or the beginning of
// that, at least twelve digits. An image that has other names loses only this
// one. Layers that no other image has go with it. Errors: *NotFoundError, and
// ErrInUse when the image would go and some process uses it.
func (s *Store) Remove(ctx context.Context, ref string) (Pruned, error) {
	return s.upkeep.remove(ctx, ref)
}

func (u *upkeep) remove(ctx context.Context, ref string) (Pruned, error) {
	all, _, err := u.survey(ctx)
	if err != nil {
		return Pruned{}, fmt.Errorf("removing %q: %w", ref, err)
	}
	if one, ok := byID(all, ref); ok {
		return u.discard(ctx, one)
	}
	r, err := source.ParseReference(ref)
	if err != nil {
		return Pruned{}, err
	}
	for _, one := range all {
		if !slices.Contains(one.Refs, r.Full()) {
			continue
		}
		if len(one.Refs) == 1 {
			return u.discard(ctx, one)
		}
		if err := os.Remove(u.disk.refFile(r)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Pruned{}, fmt.Errorf("removing %q: %w", ref, err)
		}
		return Pruned{}, nil
	}
	return Pruned{}, &NotFoundError{Ref: ref, Looked: []string{fmt.Sprintf("not in the store %q", u.disk.dir)}}
}

// minID digits of an ID stand for it.
const minID = 12

func byID(all []Stored, id string) (Stored, bool) {
	hex := strings.TrimPrefix(id, "sha256:")
	if len(hex) < minID || strings.Trim(hex, "0123456789abcdef") != "" {
		return Stored{}, false
	}
	var found []Stored
	for _, one := range all {
		if strings.HasPrefix(one.ID, "sha256:"+hex) {
			found = append(found, one)
		}
	}
	if len(found) != 1 {
		return Stored{}, false
	}
	return found[0], true
}

// discard removes an image with its names, and the layers that it alone has.
func (u *upkeep) discard(ctx context.Context, one Stored) (Pruned, error) {
	if one.InUse {
		return Pruned{}, fmt.Errorf("removing %s: %w", one.ID, ErrInUse)
	}
	for _, file := range append(slices.Clone(one.refs), one.file) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Pruned{}, fmt.Errorf("removing %s: %w", one.ID, err)
		}
	}
	// Read again: another process may have given its layers to a new image.
	rest, sizes, err := u.survey(ctx)
	if err != nil {
		return Pruned{}, fmt.Errorf("removing %s: %w", one.ID, err)
	}
	needed := map[string]bool{}
	for _, other := range rest {
		for _, key := range other.keys {
			needed[key] = true
		}
	}
	done := Pruned{Images: 1}
	for _, key := range one.keys {
		if _, there := sizes[key]; !there || needed[key] {
			continue
		}
		if err := u.pruneLayer(key, false, &done); err != nil {
			return done, fmt.Errorf("removing layer %s: %w", key, err)
		}
	}
	return done, nil
}

// Find returns an image of the store by reference, ID or the beginning of one,
// claimed. Errors: sandbox.ErrImageNotFound.
func (s *Store) Find(ctx context.Context, ref string) (Image, error) {
	img, err := s.Resolve(ctx, ref)
	if err == nil || !errors.Is(err, sandbox.ErrImageNotFound) && !isID(ref) {
		return img, err
	}
	all, _, serr := s.upkeep.survey(ctx)
	if serr != nil {
		return Image{}, fmt.Errorf("looking for %q: %w", ref, serr)
	}
	one, ok := byID(all, ref)
	if !ok {
		return Image{}, err
	}
	img, ok, lerr := s.load(one.ID)
	if lerr != nil || !ok {
		return Image{}, errors.Join(err, lerr)
	}
	img.Ref = ref
	return img, nil
}

// isID reports whether a name has the form of an ID, which is no reference.
func isID(ref string) bool { return strings.HasPrefix(ref, "sha256:") }
