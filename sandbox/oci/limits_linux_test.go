package oci

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/native"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// TestMemoryLimit: what takes more memory than the limit is killed, and the
// sandbox continues.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 64, CPUs: 1}})
		var out bytes.Buffer
		st, err := s.Exec(t.Context(), sandbox.Command{Shell: "head -c 200M /dev/zero | tail | wc -c", Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(out.String()) == "209715200" {
			t.Errorf("200 MB were held in 64 MB: %v, %s", st, out.String())
		}
		say(t, s, "true")
	})
}

// TestProcessorLimit: what wants more of a processor than it may have is held up.
func TestProcessorLimit(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{CPUs: 0.2}})
		say(t, s, `for i in 1 2 3 4; do timeout 60 sh -c "while :; do :; done" >/dev/null 2>&1 & done`)
		// On a busy machine nobody gets more than that for a while.
		for deadline := time.Now().Add(time.Minute); throttled(t, b, s.ID()) < 3; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("four loops were not held up in a minute")
			}
		}
	})
}

// throttled is how often the kernel has let a sandbox wait because it had used up its
// time (sched-bwc: cpu.stat, in both versions of control groups).
func throttled(t *testing.T, b *Backend, id string) int {
	t.Helper()
	for _, dir := range b.groups.Dirs(id) {
		data, _ := os.ReadFile(filepath.Join(dir, "cpu.stat")) // of other groups there is none
		for line := range strings.Lines(string(data)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "nr_throttled "); ok {
				times, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				return times
			}
		}
	}
	t.Fatalf("no group of %s has counted periods", id)
	return 0
}

// eachLimiting runs a test for each runtime that enforces limits, with its backend.
func eachLimiting(t *testing.T, test func(t *testing.T, name string, b *Backend)) {
	t.Helper()
	for _, name := range limitingRuntimes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			b := newBackend(t, testOptions(t, name))
			if os.Getenv(testGiven) == "" {
				need.Root(t)
			}
			can := b.Capabilities()
			need.That(t, "cgroups", can.CPULimit && can.MemoryLimit && can.PIDsLimit, "needs a cgroup file system that can be written")
			test(t, name, b)
		})
	}
}

// TestCommandsCannotMount: root's commands have the capabilities that they have in
// containers of engines, and no others, though a guest has had more.
func TestCommandsCannotMount(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{})
		got := say(t, s, "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status; grep ^CapBnd /proc/1/status")
		const none, engines = "0000000000000000", "00000000a80425fb"
		want := "CapInh:\t" + none + "\nCapPrm:\t" + engines + "\nCapEff:\t" + engines + "\nCapBnd:\t" + engines + "\nCapAmb:\t" + none + "\nCapBnd:\t" + engines + "\n"
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

// limitingRuntimes enforce the limits of sandbox.Resources.
func limitingRuntimes() []string {
	return []string{RuntimeNative, RuntimeRunc, RuntimeCrun, RuntimeGVisor}
}

// TestPIDsLimit: who starts more processes than there may be cannot, and the
// sandbox continues.
func TestPIDsLimit(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{PIDs: 64}})
		var out bytes.Buffer
		mark, err := s.Mark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Exec(t.Context(), start200(&out)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "Cannot fork") {
			t.Errorf("200 processes were started where 64 may be:\n%s", out.String())
		}
		if err := s.KillTree(t.Context(), mark, 0); err != nil {
			t.Fatal(err)
		}
		say(t, s, "true")
		unlimited := create(t, b, sandbox.Spec{Resources: sandbox.Resources{PIDs: -1}})
		out.Reset()
		if _, err := unlimited.Exec(t.Context(), start200(&out)); err != nil {
			t.Fatal(err)
		}
		if out.String() != "all\n" {
			t.Errorf("no limit: %q, want that all are started", out.String())
		}
	})
}

// start200 starts 200 processes, by a shell that does not wait and try again when
// it cannot, as bash does for 15 seconds.
func start200(out io.Writer) sandbox.Command {
	return sandbox.Command{Argv: []string{"dash", "-c", "for i in $(seq 200); do sleep 600 & done; echo all"}, Stdout: out, Stderr: out}
}

func TestMemoryShortage(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, name string, b *Backend) {
		if name != RuntimeNative { // they begin their first process as Docker does
			need.Patience(t)
		}
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 96, PIDs: 2000}})
		sandboxtest.MemoryShortage(t, s)
		if name != RuntimeGVisor { // its kernel does not kill for memory, the supervisor does
			sandboxtest.Spared(t, s)
		}
	})
}

// TestMemoryOfTheKernel: when gVisor itself has no memory left, its sandbox ends and says
// so.
func TestMemoryOfTheKernel(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, name string, b *Backend) {
		if name != RuntimeGVisor {
			t.Skip("it has no kernel of its own")
		}
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 512}})
		shrunk := false
		for _, dir := range b.groups.Dirs(s.ID()) {
			for _, limit := range []string{"memory.max", "memory.limit_in_bytes"} {
				shrunk = os.WriteFile(filepath.Join(dir, limit), []byte("128M"), 0) == nil || shrunk
			}
		}
		if !shrunk {
			t.Fatal("no group of the sandbox has a limit of memory")
		}
		_, err := s.Exec(t.Context(), sandbox.Command{Shell: "head -c 300M /dev/zero | tail | wc -c"})
		lost, ok := errors.AsType[*sandbox.LostError](err)
		if !ok || !strings.Contains(lost.Reason, "ran out of memory") {
			t.Errorf("got error %v, want one that says what there was too little of", err)
		}
	})
}

func TestAbuse(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, name string, b *Backend) {
		if name == RuntimeRunc || name == RuntimeCrun { // they enforce what native does
			need.Patience(t)
		}
		sandboxtest.Abuse(t, sandboxtest.AbuseConfig{Backend: b, OwnKernel: name == RuntimeGVisor, Now: time.Now, Long: need.Required("patience")})
	})
}

// TestStorageLimit: what writes more than it may does not fill the disk, and the sandbox
// continues.
func TestStorageLimit(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, name string, b *Backend) {
		logs := t.TempDir()
		s := create(t, b, sandbox.Spec{
			Resources: sandbox.Resources{StorageMB: 32},
			Mounts:    []sandbox.Mount{{Source: logs, Target: "/logs", Guarded: true}},
		})
		fill := func(file, size string, full bool) {
			t.Helper()
			script := "head -c " + size + " /dev/zero > " + file + " || exit 28; sleep 300"
			st, err := s.Exec(t.Context(), sandbox.Command{Shell: script, Timeout: 4 * time.Minute})
			want := 128 + int(unix.SIGTERM)
			if full { // its file system says so
				want = 28
			}
			if err != nil || st.Code != want || st.TimedOut {
				t.Errorf("writing %s: got %+v, %v, want exit code %d", file, st, err, want)
			}
		}
		fill("/root/much", "96M", name == RuntimeGVisor)
		say(t, s, "rm -f /root/much; echo little > /root/little")
		fill("/logs/much", "192M", false)
		say(t, s, "rm -f /logs/much; cat /root/little")
	})
}

// TestStorageLimitOfFork: what a snapshot keeps counts for the sandboxes that begin with it,
// as it did for the one that it was taken of.
func TestStorageLimitOfFork(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, name string, b *Backend) {
		if name == RuntimeGVisor {
			t.Skip("gVisor has no snapshots")
		}
		spec := sandbox.Spec{Resources: sandbox.Resources{StorageMB: 64}}
		s := create(t, b, spec)
		say(t, s, "head -c 40M /dev/zero > /root/first")
		shot, err := s.(sandbox.Snapshotter).Snapshot(t.Context(), "first")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := shot.Release(cleanupContext(t)); err != nil {
				t.Error(err)
			}
		}()
		if got := shot.Size(); got < 40<<20 || got > 48<<20 {
			t.Errorf("the snapshot has %d bytes, want some more than %d", got, 40<<20)
		}
		fork, err := shot.Fork(t.Context(), sandbox.Spec{Name: "fork of " + name, Resources: spec.Resources})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := fork.Destroy(cleanupContext(t)); err != nil {
				t.Error(err)
			}
		}()
		for what, sb := range map[string]sandbox.Sandbox{"the fork": fork, "the sandbox itself": s} {
			if got := sb.(*renewable).life.watch.Kept; got != shot.Size() {
				t.Errorf("%s has %d bytes of the snapshot's %d", what, got, shot.Size())
			}
		}
	})
}

// TestHardenedStorageLimit: the directories that a hardened sandbox can write to are bounded
// with every runtime.
func TestHardenedStorageLimit(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Hardened: true, Network: sandbox.Network{Mode: sandbox.NetworkNone}, Resources: sandbox.Resources{StorageMB: 32}})
		st, err := s.Exec(t.Context(), sandbox.Command{Shell: "head -c 96M /dev/zero > /root/much || exit 28; sleep 300", Timeout: 4 * time.Minute})
		if err != nil || st.TimedOut || st.Code != 28 && st.Code != 128+int(unix.SIGTERM) {
			t.Errorf("writing much: got %+v, %v", st, err)
		}
		say(t, s, "rm /root/much")
	})
}

// TestOpenFilesLimit: there may be as many as in containers of engines, whatever the
// caller's own limit is.
func TestOpenFilesLimit(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{})
		most, err := native.MostOpenFiles(true)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := say(t, s, "ulimit -n; ulimit -Hn"), fmt.Sprintf("%d\n%[1]d\n", most); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
