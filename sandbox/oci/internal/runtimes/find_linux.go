package runtimes

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/sandbox"
)

// Find looks a runtime up by its name or path. Errors: sandbox.ErrUnavailable.
func Find(name string) (Runtime, error) {
	switch {
	case name == "" || name == GVisor:
		return gvisor{}, nil
	case name == Native:
		return nativeRuntime{}, nil
	case name == Runc || name == Crun:
		path, err := installed(name)
		if err != nil {
			return nil, err
		}
		return programOf(name, path), nil
	case filepath.IsAbs(name):
		if _, err := exec.LookPath(name); err != nil {
			return nil, fmt.Errorf("%w: runtime: %w", sandbox.ErrUnavailable, err)
		}
		return programOf(filepath.Base(name), name), nil
	}
	return nil, fmt.Errorf("%w: unknown runtime %q: want %q, %q, %q, %q or an absolute path",
		sandbox.ErrUnavailable, name, GVisor, Native, Runc, Crun)
}

// installed is the path of a program. Debian has these where the PATH of ordinary
// users does not look.
func installed(name string) (string, error) {
	for _, try := range []string{name, "/usr/local/sbin/" + name, "/usr/sbin/" + name, "/sbin/" + name} {
		if p, err := exec.LookPath(try); err == nil {
			abs, err := filepath.Abs(p)
			if err != nil {
				return "", fmt.Errorf("locating %s: %w", p, err)
			}
			return abs, nil
		}
	}
	return "", &sandbox.UnavailableError{
		Err: fmt.Errorf("runtime %q is not installed", name),
		Fix: fmt.Sprintf("install the package %q, or use the runtime %q", name, GVisor),
	}
}

// programOf knows crun by its name; everything else has runc's command line.
func programOf(name, path string) Runtime {
	if strings.Contains(name, Crun) {
		return crun{program{path}}
	}
	return runc{program{path}}
}
