package oci

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/rootplan"
)

// ownerArg0 makes the test program create a sandbox and wait to be killed.
const ownerArg0 = "oci-test-owner"

// runOwner gets a state directory and a runtime.
func runOwner(args []string) int {
	exe, err := os.Executable()
	if err != nil {
		return 1
	}
	b, err := New(Options{OwnRoot: true, StateDir: args[0], Runtime: args[1], Executable: exe, Build: testBuild})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := b.Create(context.Background(), sandbox.Spec{Name: "killed"})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	st, err := s.Exec(context.Background(), sandbox.Command{Shell: "setsid sleep 86400 >/dev/null 2>&1 & trap '' TERM HUP; (trap '' TERM; exec sleep 86400) >/dev/null 2>&1 &"})
	fmt.Println("ready", st.Code, err)
	select {}
}

// TestKilledOwner kills the owner of a sandbox in several phases of its life,
// and holds that Collect leaves nothing of it.
func TestKilledOwner(t *testing.T) {
	t.Parallel()
	// Files of runtimes.
	const fileConfig, dirRuntime, filePID = "config.json", "run", "pid"
	phases := []struct {
		name string
		// file of the sandbox's directory whose appearance ends the phase;
		// empty means that commands are running.
		file    string
		stopped bool // the sandbox's processes do not react
	}{
		{"recorded", fileOwner, false},
		{"laid out", fileConfig, false},
		{"runtime started", dirRuntime, false},
		{"runtime ready", filePID, false},
		{"running", "", false},
		{"not answering", "", true},
	}
	for _, name := range runtimeNames() {
		for _, phase := range phases {
			switch {
			case name != RuntimeNative:
			case phase.file == fileConfig:
				phase.file = rootplan.DirWork // it has no bundle
			case phase.file == dirRuntime || phase.file == filePID:
				continue // and no runtime
			}
			t.Run(name+"/"+phase.name, func(t *testing.T) {
				t.Parallel()
				needRuntime(t, name)
				opts := testOptions(t, name)
				kill := startOwner(t, opts)
				id := awaitPhase(t, opts.StateDir, phase.file, kill.ready)
				if phase.stopped {
					stopAll(t, id)
				}
				kill.now()
				collectAll(t, newBackend(t, opts), id)
			})
		}
	}
}

// victim is an owner that is going to be killed.
type victim struct {
	ready chan string // gets the owner's line
	now   func()
}

func startOwner(t *testing.T, opts Options) victim {
	t.Helper()
	cmd := exec.Command(opts.Executable)
	cmd.Args = []string{ownerArg0, opts.StateDir, opts.Runtime}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := victim{ready: make(chan string, 1)}
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		v.ready <- line
	}()
	v.now = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(v.now)
	return v
}

// awaitPhase waits until the owner is in the phase, and returns the sandbox's id.
func awaitPhase(t *testing.T, stateDir, file string, ready chan string) string {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for running := false; ; {
		select {
		case line := <-ready:
			if running = strings.HasPrefix(line, "ready 0 <nil>"); !running {
				t.Fatalf("the owner says %q", line)
			}
		case <-tick.C:
		}
		if file == "" && !running {
			continue
		}
		list, err := os.ReadDir(filepath.Join(stateDir, sandboxesDir))
		if err != nil || len(list) == 0 {
			continue
		}
		if _, err := os.Lstat(filepath.Join(stateDir, sandboxesDir, list[0].Name(), file)); err == nil {
			return list[0].Name()
		}
	}
}

func stopAll(t *testing.T, id string) {
	t.Helper()
	found, err := processesOf(id)
	if err != nil || len(found) == 0 {
		t.Fatalf("processes %v, %v", found, err)
	}
	for _, pid := range found {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil && !errors.Is(err, unix.EPERM) {
			t.Error(err)
		}
	}
}

// collectAll collects until the killed owner's record is complete enough to
// be collected, and asserts that nothing is left.
func collectAll(t *testing.T, b *Backend, id string) {
	t.Helper()
	old := time.Now().Add(-2 * recordLimit)
	dir := filepath.Join(b.opts.StateDir, sandboxesDir, id)
	if _, err := readRecord(dir); err != nil {
		// It was killed while it wrote the record.
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := b.Collect(cleanupContext(t), procid.ID.Alive)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, id) }) {
		t.Errorf("%q does not tell of sandbox %s", lines, id)
	}
	if found, err := processesOf(id); err != nil || len(found) > 0 {
		t.Errorf("processes %v are left, %v", found, err)
	}
	if left := b.groups.Dirs(id); len(left) > 0 {
		t.Errorf("groups are left: %v", left)
	}
	assertNothingLeft(t, b.opts.StateDir)
}

func TestCollectSparesOthers(t *testing.T) {
	t.Parallel()
	opts := testOptions(t, RuntimeRunc)
	needRuntime(t, RuntimeRunc)
	b := newBackend(t, opts)
	s := create(t, b, sandbox.Spec{})
	fresh := filepath.Join(opts.StateDir, sandboxesDir, "pbeingmade")
	if err := os.Mkdir(fresh, 0o700); err != nil {
		t.Fatal(err)
	}
	lines, err := b.Collect(t.Context(), procid.ID.Alive)
	if err != nil || len(lines) > 0 {
		t.Errorf("collected %q, %v", lines, err)
	}
	say(t, s, "true")
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(fresh, fileOwner), []byte(`{"id":"other","owner":{"boot_id":"x","pid":1}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Collect(t.Context(), procid.ID.Alive); err == nil {
		t.Error("a record of another sandbox was believed")
	}
}

func TestCollectWithoutState(t *testing.T) {
	t.Parallel()
	b := newBackend(t, testOptions(t, ""))
	if lines, err := b.Collect(t.Context(), procid.ID.Alive); err != nil || len(lines) > 0 {
		t.Errorf("got %q, %v", lines, err)
	}
	if _, err := os.Stat(filepath.Join(b.opts.StateDir, sandboxesDir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Collect made a directory: %v", err)
	}
}
