// Package clock waits.
package clock

import (
	"context"
	"time"
)

// Sleep waits for d. When ctx ends before, its cause is returned.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
