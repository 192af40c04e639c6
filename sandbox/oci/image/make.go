package image

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox/oci/image/internal/source"
)

// Make returns the image that ref names in the store. When the store has not
// got it, or when fresh is set, produce makes it, and the store notes it under
// ref. Whatever number of callers and processes ask at once, one of them works
// and the others get its result; like the work of Pull it continues while one of
// the callers waits, and ends with the store.
//
// Progress, when not nil, receives what produce says, never from two goroutines
// at a time.
func (s *Store) Make(ctx context.Context, ref string, fresh bool, progress func(message string),
	produce func(ctx context.Context, say func(string)) (Image, error),
) (Image, error) {
	r, err := source.ParseReference(ref)
	if err != nil {
		return Image{}, err
	}
	if r.Local() {
		return Image{}, fmt.Errorf("making %q: a new image cannot have the name of a file", ref)
	}
	img, err := s.pulls.do(ctx, r.Full(), progress, func(ctx context.Context, say func(string)) (Image, error) {
		return s.make(ctx, r, fresh, say, produce)
	})
	if err != nil {
		return Image{}, err
	}
	img.Ref = ref
	return img, nil
}

// make works when it alone holds the lock of the reference.
func (s *Store) make(ctx context.Context, r source.Reference, fresh bool, say func(string),
	produce func(ctx context.Context, say func(string)) (Image, error),
) (_ Image, err error) {
	if !fresh {
		if img, ok, err := s.stored(r); ok || err != nil {
			return img, err
		}
	}
	lock := s.disk.lock("ref-" + filepath.Base(s.disk.refFile(r)))
	defer func() { err = errors.Join(err, release(lock)) }()
	for {
		ok, err := lock.TryLock()
		if err != nil {
			return Image{}, fmt.Errorf("locking %q: %w", r.Raw, err)
		}
		if ok {
			break
		}
		if err := clock.Sleep(ctx, lockPoll); err != nil {
			return Image{}, err
		}
	}
	if !fresh {
		if img, ok, err := s.stored(r); ok || err != nil {
			return img, err
		}
	}
	img, err := produce(ctx, say)
	if err != nil {
		return Image{}, err
	}
	defer s.keepLimit(ctx)
	return img, s.disk.writeRef(r, img.ID, "")
}
