package evaluation

import (
	"context"
	"errors"

	"github.com/proctor-run/proctor/ownrunner"
)

// CheckPinned compares tasks with what a manifest pins, before anything of theirs is used.
// The error names every task that differs or is not pinned. (Outcome mapping, section 12.)
func CheckPinned(ctx context.Context, pins ownrunner.Manifest, tasks []Task) error {
	var errs []error
	for _, t := range tasks {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		digest, err := ownrunner.TaskDigest(t.Dir)
		if err == nil {
			err = pins.Check(t.Name, digest)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
