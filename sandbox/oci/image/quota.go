package image

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Shrink removes images and caches that were not asked for the longest until
// layers and caches hold at most limit bytes of files, those first that are
// oldest. What a process has open stays, and with them possibly more than limit. Where another
// process is doing the same, nothing is done. Dry removes nothing and says what
// would be.
func (s *Store) Shrink(ctx context.Context, limit int64, dry bool) (Pruned, error) {
	return s.upkeep.shrinkTo(ctx, limit, dry)
}

func (u *upkeep) shrinkTo(ctx context.Context, limit int64, dry bool) (done Pruned, err error) {
	lock := u.disk.lock("shrink")
	defer func() { err = errors.Join(err, lock.Close()) }()
	ok, err := lock.TryLock()
	if err != nil {
		return Pruned{}, fmt.Errorf("making room in the image store: %w", err)
	}
	if !ok {
		return Pruned{}, nil
	}
	if err := u.shrink(ctx, limit, dry, &done); err != nil {
		return done, fmt.Errorf("making room in the image store: %w", err)
	}
	return done, nil
}

// shrink goes through images and caches in the order of their last use.
func (u *upkeep) shrink(ctx context.Context, limit int64, dry bool, done *Pruned) error {
	all, sizes, err := u.survey(ctx)
	if err != nil {
		return err
	}
	old, err := u.caches.list()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, size := range sizes {
		total += size
	}
	for _, c := range old {
		total += c.bytes
	}
	for i := len(all) - 1; i >= 0 && total > limit; i-- {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if total, old, err = u.caches.shrink(ctx, old, all[i].Used, total, limit, dry, done); err != nil {
			return err
		}
		if all[i].InUse || total <= limit {
			continue
		}
		freed, err := u.drop(ctx, all[i], dry, done)
		if err != nil {
			return err
		}
		total -= freed
	}
	_, _, err = u.caches.shrink(ctx, old, latest, total, limit, dry, done)
	return err
}

// drop removes an image unless it came into use, and returns what that freed.
// In a dry run what it shares with others that go too counts with none.
func (u *upkeep) drop(ctx context.Context, one Stored, dry bool, done *Pruned) (int64, error) {
	if dry {
		done.Images++
		done.Bytes += one.OwnBytes
		return one.OwnBytes, nil
	}
	gone, err := u.discard(ctx, one)
	if errors.Is(err, ErrInUse) {
		return 0, nil
	}
	done.Images += gone.Images
	done.Layers += gone.Layers
	done.Bytes += gone.Bytes
	return gone.Bytes, err
}

// latest is after every use.
var latest = time.Unix(1<<40, 0)

// keepLimit holds the store to the limit of its options after something was
// added. That it cannot is no reason not to use what was added.
func (s *Store) keepLimit(ctx context.Context) {
	if s.opts.Limit <= 0 {
		return
	}
	done, err := s.Shrink(ctx, s.opts.Limit, false)
	if err != nil {
		s.log.Warn("image store over its limit", "err", err)
	}
	if done.Images > 0 {
		s.log.Info("removed images that were not used the longest", "images", done.Images, "bytes", done.Bytes)
	}
}

// RemoveUnused removes the images and caches that nobody asked for since a time, but for
// those that a process has open. Dry removes nothing and says what would be.
func (s *Store) RemoveUnused(ctx context.Context, since time.Time, dry bool) (Pruned, error) {
	return s.upkeep.removeUnused(ctx, since, dry)
}

func (u *upkeep) removeUnused(ctx context.Context, since time.Time, dry bool) (done Pruned, err error) {
	all, _, err := u.survey(ctx)
	if err != nil {
		return Pruned{}, fmt.Errorf("removing unused images: %w", err)
	}
	for i := len(all) - 1; i >= 0 && all[i].Used.Before(since); i-- {
		if ctx.Err() != nil {
			return done, context.Cause(ctx)
		}
		one := all[i]
		if one.InUse {
			continue
		}
		if _, err := u.drop(ctx, one, dry, &done); err != nil {
			return done, fmt.Errorf("removing unused images: %w", err)
		}
	}
	old, err := u.caches.list()
	if err == nil {
		_, _, err = u.caches.shrink(ctx, old, since, math.MaxInt64, 0, dry, &done)
	}
	if err != nil {
		return done, fmt.Errorf("removing unused caches: %w", err)
	}
	return done, nil
}
