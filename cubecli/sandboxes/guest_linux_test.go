package sandboxes

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/guest"
)

// builtForTest returns a built supervisor in a new cache.
func builtForTest(t *testing.T) (path, cache string) {
	t.Helper()
	need.Program(t, "go")
	cache = t.TempDir()
	o := Options{Notice: func(string) {}}.orProcess()
	if !canBuild(o) {
		t.Skip("the Go toolchain has no cache here")
	}
	paths := make([]string, 4)
	var all sync.WaitGroup
	for i := range paths {
		all.Go(func() { paths[i] = builtGuest(t.Context(), o, cache) })
	}
	all.Wait()
	for _, p := range paths {
		if p == "" || p != paths[0] {
			failed, _ := filepath.Glob(filepath.Join(cache, buildsDir, "*", "*.failed"))
			for _, f := range failed {
				text, _ := os.ReadFile(f)
				t.Logf("%s: %s", f, text)
			}
			t.Fatalf("built %q", paths)
		}
	}
	return paths[0], cache
}

// TestBuiltGuest: the supervisor that is built is small, needs no libraries, and
// is taken for the same build by this program's client.
func TestBuiltGuest(t *testing.T) {
	t.Parallel()
	path, _ := builtForTest(t)
	info, err := os.Stat(path)
	if err != nil || info.Size() > 8<<20 {
		t.Errorf("a supervisor of %v bytes (%v)", info.Size(), err)
	}
	if dynamic, err := isDynamic(path); err != nil || dynamic {
		t.Errorf("needs libraries: %v, %v", dynamic, err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := guest.Dial(t.Context(), out, in, guest.Options{Build: version.Current().ID()})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := c.Exec(t.Context(), sandbox.Command{Argv: []string{"sh", "-c", "exit 7"}}); err != nil || st.Code != 7 {
		t.Errorf("a command: %+v, %v", st, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // its end is the test's, not its status
}

// TestBuiltGuestNot: where nothing can be built nothing is, quickly, and a build
// that failed is not repeated soon.
func TestBuiltGuestNot(t *testing.T) {
	need.Program(t, "go")
	cache := t.TempDir()
	quiet := func(string) {}
	for name, environ := range map[string][]string{
		"no home":                  {"PATH=" + os.Getenv("PATH")},
		"a home that is not there": {"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(cache, "nowhere")},
	} {
		if got := builtGuest(t.Context(), Options{Environ: environ, Notice: quiet}, cache); got != "" {
			t.Errorf("%s: built %q", name, got)
		}
	}
	failing := Options{Environ: append(os.Environ(), "GOFLAGS=-nonsense"), Notice: quiet}
	if got := builtGuest(t.Context(), failing, cache); got != "" {
		t.Fatalf("built %q with flags that no tool has", got)
	}
	failed, err := filepath.Glob(filepath.Join(cache, buildsDir, "*", "*.failed"))
	if err != nil || len(failed) != 1 {
		t.Fatalf("noted %q, %v", failed, err)
	}
	good := Options{Notice: quiet}.orProcess()
	if got := builtGuest(t.Context(), good, cache); got != "" {
		t.Errorf("tried again at once: %q", got)
	}
	good.Now = func() time.Time { return time.Now().Add(2 * guestBuildPause) }
	if canBuild(good) && builtGuest(t.Context(), good, cache) == "" {
		t.Error("not tried again later")
	}
	t.Setenv("PATH", "")
	if got := builtGuest(t.Context(), Options{Notice: quiet}.orProcess(), t.TempDir()); got != "" {
		t.Errorf("without a tool: %q", got)
	}
}

// TestOldBuilds: a build that nobody used for long goes with the next.
func TestOldBuilds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"old/" + smallGuest.name: 2 * buildLife, "used/" + smallGuest.name: buildLife / 2,
		"gvisor/" + smallGuest.name: 2 * buildLife, "gvisor/" + runscName: buildLife / 8,
		"idle/" + runscName: 2 * buildLife,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	used := filepath.Join(dir, "used", smallGuest.name)
	if !inUse(used, now) {
		t.Fatal("the one in use is not found")
	}
	removeOldBuilds(dir, now.Add(buildLife*3/4))
	for name, stays := range map[string]bool{"old": false, "idle": false, "used": true, "gvisor": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: %v, stays: %v", name, err, stays)
		}
	}
}
