package sandboxes

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/proctor-run/proctor/sandbox/oci"
)

// The supervisor inside sandboxes can be this program itself. Its own small
// program does the same and starts about 20 ms faster, so that it is taken
// where it can be had.

// runscName is gVisor's program.
const runscName = "proctor-runsc"

// foreignGuest is the small supervisor for Linux on a processor that Go calls arch.
func foreignGuest(arch string) string { return oci.GuestArg0 + "-linux-" + arch }

// guestOf returns the small supervisor of the program: the one that is packaged with it, or
// one of the same sources in the cache, which the first that wants it builds.
// Empty means that it cannot be had here, and that the program itself is the
// supervisor.
func guestOf(ctx context.Context, o Options, self, cache string) string {
	small, err := packaged(o, self, cache, oci.GuestArg0)
	if err != nil {
		o.Notice("warning: " + err.Error() + "; each sandbox starts some milliseconds later")
	}
	if small != "" {
		return small
	}
	return builtGuest(ctx, o, cache)
}

// dockerGuest returns how the docker backend finds the supervisor for
// containers on a processor that Go calls arch: a Linux program for it that is packaged
// with this one, with the system and the processor in its name where they are not
// this machine's, or on Linux the one that can be had here. Nil means that there
// is none.
func dockerGuest(o Options) func(ctx context.Context, arch string) (string, error) {
	self, selfErr := os.Executable()
	all := []string{oci.GuestArg0, foreignGuest("amd64"), foreignGuest("arm64")}
	if runtime.GOOS != "linux" && !slices.ContainsFunc(all, func(name string) bool { return isPackaged(o, self, name) }) {
		return nil
	}
	return func(ctx context.Context, arch string) (string, error) {
		if selfErr != nil {
			return "", fmt.Errorf("finding the program: %w", selfErr)
		}
		names := []string{foreignGuest(arch)}
		if runtime.GOOS != "linux" || arch == runtime.GOARCH {
			names = append(names, oci.GuestArg0)
		}
		if program, err := packagedGuest(o, self, names); program != "" || err != nil {
			return program, err
		}
		if runtime.GOOS != "linux" || arch != runtime.GOARCH {
			return "", fmt.Errorf("no %s lies beside the program", foreignGuest(arch))
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

// packagedGuest returns the first of these that is packaged with the program: beside it,
// for which no cache is needed, or in it.
func packagedGuest(o Options, self string, names []string) (string, error) {
	for _, name := range names {
		if beside := programBeside(self, name); beside != "" {
			return beside, nil
		}
	}
	if !slices.ContainsFunc(names, o.carries) {
		return "", nil
	}
	dirs, err := FindDirectories(o.getenv)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if program, err := packaged(o, self, dirs.Cache, name); program != "" || err != nil {
			return program, err
		}
	}
	return "", nil
}
