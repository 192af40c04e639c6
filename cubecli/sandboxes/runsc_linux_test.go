package sandboxes

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// TestGVisorProgram: gVisor is built where there are a toolchain and the sources, once, as
// a program that needs no libraries.
func TestGVisorProgram(t *testing.T) {
	t.Parallel()
	need.Program(t, "go")
	o := Options{Notice: func(string) {}}.orProcess()
	if !canBuild(o) {
		t.Skip("the Go toolchain has no cache here")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	path, err := gvisorOf(t.Context(), o, self, cache)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 60<<20 {
		t.Errorf("gVisor has %v bytes (%v)", info.Size(), err)
	}
	if dynamic, err := isDynamic(path); err != nil || dynamic {
		t.Errorf("needs libraries: %v, %v", dynamic, err)
	}
	var status *exec.ExitError
	out, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
	if !errors.As(err, &status) || status.ExitCode() != 2 || !strings.Contains(string(out), "it has no commands") {
		t.Errorf("started by a person: %v, %s", err, out)
	}
	o.Environ = []string{} // nothing can be built any more
	if again, err := gvisorOf(t.Context(), o, self, cache); again != path || err != nil {
		t.Errorf("a second time: %q, %v", again, err)
	}
}

// TestGVisorBeside: what lies beside the program is used.
func TestGVisorBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := filepath.Join(dir, runscName)
	if err := os.WriteFile(want, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := gvisorOf(t.Context(), Options{Environ: []string{}}, filepath.Join(dir, "proctor"), t.TempDir())
	if got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestNoGVisor: where there is none, the error says what to do.
func TestNoGVisor(t *testing.T) {
	t.Setenv("PATH", "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	_, err = gvisorOf(t.Context(), Options{Notice: func(string) {}}.orProcess(), self, t.TempDir())
	if why, fix := sandbox.Why(err); !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(why, runscName) || !strings.Contains(fix, "--runtime native") {
		t.Errorf("got %v", err)
	}
}

// TestCarriedWithoutACache: a cache that cannot be written is an error that says so.
func TestCarriedWithoutACache(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Environ: []string{}, Helpers: carrying(t, map[string]string{runscName: "a kernel"})}
	_, err := gvisorOf(t.Context(), o, filepath.Join(t.TempDir(), "proctor"), file)
	why, fix := sandbox.Why(err)
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(why, runscName) || !strings.Contains(fix, "PROCTOR_CACHE_DIR") {
		t.Errorf("got %v", err)
	}
}
