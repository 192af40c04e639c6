// Package engine is what the packages that speak the Engine API share.
package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/proctor-run/proctor/internal/clock"
)

// Labels on everything that is made for a sandbox. The owner is
// procid.ID.String.
const (
	LabelOwner = "proctor.owner"
	LabelJob   = "proctor.job"
	LabelTrial = "proctor.trial"
	// LabelKeep is on what is left for people when its owner has ended.
	LabelKeep = "proctor.keep"
)

// callGrace is how long a call to the engine that has begun to change
// something may still take when its context ends, so that its result is known.
const callGrace = 5 * time.Second

// makeGrace is the same for a call that makes something. It is long, for a busy engine
// makes it even if the call is cut off, and then nobody looks any more for what to remove.
const makeGrace = time.Minute

// Detached returns a context for a call that has begun to change something: it outlives
// ctx by a grace.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return outlive(ctx, callGrace)
}

// Making is Detached for a call that makes something that is to be removed.
func Making(ctx context.Context) (context.Context, context.CancelFunc) {
	return outlive(ctx, makeGrace)
}

func outlive(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(context.Cause(ctx))
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel(context.Canceled) }
}

// Remove kills and removes a container, and returns when it is not there. It
// may be called for what is being removed, or has been.
func Remove(ctx context.Context, api *client.Client, id string) error {
	for {
		_, err := api.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		switch {
		case err == nil, cerrdefs.IsNotFound(err):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !cerrdefs.IsConflict(err):
			return fmt.Errorf("the engine refuses: %w", err)
		}
		// Another call is removing it.
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// Says reports whether the text of an error has one of the words, which are in
// lower case. Engines pass on much in text alone.
func Says(err error, words ...string) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// Secret is a word that cannot be guessed.
func Secret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Platform reads OS/ARCHITECTURE[/VARIANT]; nil for none.
func Platform(text string) (*ocispec.Platform, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%q: want OS/ARCHITECTURE", text)
	}
	out := &ocispec.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		out.Variant = parts[2]
	}
	return out, nil
}

// KeepLabel is the value of LabelKeep. It is set in any case, so that the labels
// of an image or of a compose file do not count.
func KeepLabel(keep bool) string {
	if keep {
		return "true"
	}
	return ""
}

// Kept reports whether labels are those of something that is left for people.
func Kept(labels map[string]string) bool { return labels[LabelKeep] != "" }
