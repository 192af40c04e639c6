package sandboxes

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox"
)

// gvisorProgram is gVisor as a program of its own.
var gvisorProgram = helper{
	name: runscName, pkg: modulePath + "/cmd/" + runscName, flags: "-s -w", ownModules: true,
	notice: "building gVisor once, for sandboxes with a kernel of their own; this takes a minute or two",
}

// gvisorOf returns the program that is gVisor: the one that is packaged with this one, or
// one of the same sources in the cache, which the first that wants it builds.
func gvisorOf(ctx context.Context, o Options, self, cache string) (string, error) {
	found, err := packaged(o, self, cache, runscName)
	if err != nil {
		return "", &sandbox.UnavailableError{Err: err, Fix: "set PROCTOR_CACHE_DIR to a directory with room that you can write to, or put " + runscName + " beside the program"}
	}
	if found != "" {
		return found, nil
	}
	key, err := buildKey(self)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, buildsDir, key, gvisorProgram.name)
	if inUse(path, clock.Or(o.Now)()) {
		return path, nil
	}
	if err := gvisorProgram.buildOnce(ctx, o, path); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", &sandbox.UnavailableError{
			Err: fmt.Errorf("gVisor is a program of its own, %s, which is not beside %q, and cannot be built: %w", runscName, self, err),
			Fix: "put it there, or choose another runtime (--runtime native), or use -e docker",
		}
	}
	return path, nil
}

// staticGuest is the supervisor in images, which need not have the libraries of this
// program.
func staticGuest(self string) (string, error) {
	dynamic, err := isDynamic(self)
	if err != nil || !dynamic {
		return self, err
	}
	return "", &sandbox.UnavailableError{
		Err: fmt.Errorf("%q needs shared libraries, which images do not have, and its supervisor for sandboxes is not beside it and cannot be built", self),
		Fix: "put proctor-guest beside it, or build it without (CGO_ENABLED=0 go build, or CGO_ENABLED=0 go test)",
	}
}
