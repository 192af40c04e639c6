package oci

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// runtimeProgram is a runtime that this machine has.
type runtimeProgram struct {
	name string // RuntimeGVisor, RuntimeNative, RuntimeRunc or RuntimeCrun; one of the last two if it has its command line
	path string // empty for what is built in
}

// findRuntime looks a runtime up by its name or path.
func findRuntime(name string) (runtimeProgram, error) {
	switch {
	case name == "" || name == RuntimeGVisor:
		return runtimeProgram{name: RuntimeGVisor}, nil
	case name == RuntimeNative:
		return runtimeProgram{name: RuntimeNative}, nil
	case name == RuntimeRunc || name == RuntimeCrun:
		// Debian has them where the PATH of ordinary users does not look.
		for _, try := range []string{name, "/usr/local/sbin/" + name, "/usr/sbin/" + name, "/sbin/" + name} {
			if p, err := exec.LookPath(try); err == nil {
				abs, err := filepath.Abs(p)
				if err != nil {
					return runtimeProgram{}, fmt.Errorf("locating %s: %w", p, err)
				}
				return runtimeProgram{name: name, path: abs}, nil
			}
		}
		return runtimeProgram{name: name}, fmt.Errorf("%w: runtime %q is not installed; install it, or use the built-in %q", sandbox.ErrUnavailable, name, RuntimeGVisor)
	case filepath.IsAbs(name):
		if _, err := exec.LookPath(name); err != nil {
			return runtimeProgram{}, fmt.Errorf("%w: runtime: %w", sandbox.ErrUnavailable, err)
		}
		r := runtimeProgram{name: RuntimeRunc, path: name}
		if strings.Contains(filepath.Base(name), RuntimeCrun) {
			r.name = RuntimeCrun
		}
		return r, nil
	}
	return runtimeProgram{}, fmt.Errorf("%w: unknown runtime %q: want %q, %q, %q, %q or an absolute path",
		sandbox.ErrUnavailable, name, RuntimeGVisor, RuntimeNative, RuntimeRunc, RuntimeCrun)
}

// builtin reports whether the program itself is the runtime.
func (r runtimeProgram) builtin() bool { return r.name == RuntimeGVisor }

// native reports whether the guest makes the sandbox itself.
func (r runtimeProgram) native() bool { return r.name == RuntimeNative }

// argv is the command line that runs the bundle in dir and stays as the
// sandbox's parent, so that it cleans up behind it.
func (r runtimeProgram) argv(dir string, b *bundle) []string {
	at := func(name string) string { return filepath.Join(dir, name) }
	var argv []string
	switch r.name {
	case RuntimeGVisor:
		network := "host"
		if b.network == noNetwork {
			network = "none"
		}
		argv = []string{
			runscArg0, "--root=" + at(dirRuntime), "--network=" + network, "--host-settings=ignore",
			// Setuid programs work as they do with the other runtimes.
			"--allow-suid=true",
		}
		if b.network == ownNetwork {
			argv = append(argv, "--net-raw=true") // for ping
		}
		if b.layer {
			// Everything is written to the host's overlay, and at once.
			argv = append(argv, "--overlay2=none", "--file-access=shared")
		} else {
			// The sentry's own overlay on top of the host's, which then only
			// holds mount points, is many times faster: it asks the host for
			// nothing that it has written.
			argv = append(argv, "--overlay2=root:dir="+dir)
		}
		if b.cgroupsPath == "" {
			argv = append(argv, "--ignore-cgroups")
		}
	case RuntimeCrun:
		manager := "cgroupfs"
		if b.cgroupsPath == "" {
			manager = "disabled"
		}
		argv = []string{r.path, "--root=" + at(dirRuntime), "--cgroup-manager=" + manager}
	default:
		argv = []string{r.path, "--root=" + at(dirRuntime)}
		if b.cgroupsPath == "" {
			argv = append(argv, "--rootless=true") // cgroups as far as it may
		}
	}
	return append(argv, "run", "--pid-file="+at(filePID), "--bundle="+dir, b.id)
}

// unifiedDir is where the second cgroup hierarchy of hybrid systems is mounted.
const unifiedDir = "/sys/fs/cgroup/unified"

// hideUnified reports whether crun would refuse to work on this system: it knows
// either kind of cgroups, but not both.
func (r runtimeProgram) hideUnified() bool {
	if r.name != RuntimeCrun {
		return false
	}
	info, err := os.Stat(unifiedDir)
	return err == nil && info.IsDir()
}
