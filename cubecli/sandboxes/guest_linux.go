package sandboxes

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// smallGuest is the supervisor as a program of its own. Without symbols it is a
// fiftieth of proctor.
var smallGuest = helper{name: oci.GuestArg0, pkg: modulePath + "/cmd/" + oci.GuestArg0, flags: "-s -w"}

const (
	// guestBuildLimit bounds a build: whoever waits for it can do without.
	guestBuildLimit = 2 * time.Minute
	// guestBuildPause is how long after a build that failed none is tried.
	guestBuildPause = time.Hour
	// guestBuildNotice is when users learn what they wait for.
	guestBuildNotice = 3 * time.Second
)

// builtGuest returns the small supervisor of the sources and the version of this
// program, built once and kept below cache, or nothing where that does not
// work. A failure is no error, and not repeated soon.
func builtGuest(ctx context.Context, o Options, cache string) string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	key, err := buildKey(self)
	if err != nil {
		return ""
	}
	path := filepath.Join(cache, buildsDir, key, smallGuest.name)
	now := clock.Or(o.Now)()
	if inUse(path, now) {
		return path
	}
	failed := path + ".failed"
	if info, err := os.Stat(failed); !canBuild(o) || err == nil && now.Sub(info.ModTime()).Abs() < guestBuildPause {
		return ""
	}
	if err := buildGuest(ctx, o, path); err != nil {
		if ctx.Err() == nil {
			_ = os.WriteFile(failed, []byte(err.Error()+"\n"), 0o644) // without it the next run tries again
		}
		return ""
	}
	removeOldBuilds(filepath.Join(cache, buildsDir), now)
	return path
}

// canBuild reports whether there is a Go toolchain with a place for what it has
// compiled: without one it would compile everything, and without a home
// directory that exists it would make one.
func canBuild(o Options) bool {
	if _, err := exec.LookPath("go"); err != nil {
		return false
	}
	for _, name := range []string{"GOCACHE", "XDG_CACHE_HOME", "HOME"} {
		if dir := o.getenv(name); dir != "" {
			info, err := os.Stat(dir)
			return err == nil && info.IsDir() || name == "GOCACHE"
		}
	}
	return false
}

// buildGuest builds the supervisor without a network, and says so when it takes
// long.
func buildGuest(ctx context.Context, o Options, path string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, guestBuildLimit, errors.New("the build takes too long"))
	defer cancel()
	quiet := o
	quiet.Environ = append(o.Environ[:len(o.Environ):len(o.Environ)], "GOPROXY=off", "GOOS=", "GOARCH=")
	done := make(chan error, 1)
	go func() { done <- smallGuest.buildOnce(ctx, quiet, path) }()
	select {
	case err := <-done:
		return err
	case <-time.After(guestBuildNotice):
	}
	o.Notice("building the supervisor for sandboxes once; this takes a few seconds more")
	return <-done
}
