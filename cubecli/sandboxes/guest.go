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
func guestBeside(self string) string { return programBeside(self, oci.GuestArg0) }

// programBeside is a program of that name beside this one, or nothing.
func programBeside(self, name string) string {
	path := filepath.Join(filepath.Dir(self), name)
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
// containers on a processor that Go calls arch: a Linux program for it beside
// this one, with the system and the processor in its name where they are not
// this machine's, or on Linux the one that can be had here. Nil means that there
// is none.
func dockerGuest(o Options) func(ctx context.Context, arch string) (string, error) {
	self, selfErr := os.Executable()
	foreign := func(arch string) string { return programBeside(self, oci.GuestArg0+"-linux-"+arch) }
	if runtime.GOOS != "linux" && guestBeside(self) == "" && foreign("amd64") == "" && foreign("arm64") == "" {
		return nil
	}
	return func(ctx context.Context, arch string) (string, error) {
		if selfErr != nil {
			return "", fmt.Errorf("finding the program: %w", selfErr)
		}
		if program := foreign(arch); program != "" {
			return program, nil
		}
		if beside := guestBeside(self); beside != "" {
			return beside, nil
		}
		if runtime.GOOS != "linux" || arch != runtime.GOARCH {
			return "", fmt.Errorf("no %s-linux-%s lies beside the program", oci.GuestArg0, arch)
		}
		dirs, err := FindDirectories(o.getenv)
		if err != nil {
			return "", err
		}
		if small := builtGuest(ctx, o, dirs.Cache); small != "" {
			return small, nil
		}
		return staticGuest(self)
	}
}
