package sandboxes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/proctor-run/proctor/sandbox/oci"
)

// The supervisor inside sandboxes can be this program itself. Its own small
// program does the same and starts about 20 ms faster, so that it is taken
// where it can be had.

// guestBeside finds the small supervisor that a release has beside the program;
// empty means that there is none.
func guestBeside(self string) string {
	path := filepath.Join(filepath.Dir(self), oci.GuestArg0)
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return ""
	}
	return path
}

// guestOf returns the small supervisor of the program: the one beside it, or
// one of the same sources in the cache, which the first that wants it builds.
// Empty means that it cannot be had here, and that the program itself is the
// supervisor.
func guestOf(ctx context.Context, o Options, self, cache string) string {
	if beside := guestBeside(self); beside != "" {
		return beside
	}
	return builtGuest(ctx, o, cache)
}

// dockerGuest returns how the docker backend finds the supervisor for
// containers. Nil means that there is none: the program itself is none for
// containers but on Linux.
func dockerGuest(o Options) func(context.Context) (string, error) {
	self, err := os.Executable()
	if err == nil {
		if beside := guestBeside(self); beside != "" {
			return func(context.Context) (string, error) { return beside, nil }
		}
	}
	if runtime.GOOS != "linux" {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		if err != nil {
			return "", fmt.Errorf("finding the program: %w", err)
		}
		dirs, err := FindDirectories(o.getenv)
		if err != nil {
			return "", err
		}
		if small := builtGuest(ctx, o, dirs.Cache); small != "" {
			return small, nil
		}
		return staticProgram(ctx, o, self, dirs.Cache)
	}
}
