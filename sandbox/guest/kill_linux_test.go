package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// carrying lists the processes of this machine whose arguments have the tag.
func carrying(t testing.TB, tag string) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(tag)) {
			pids = append(pids, filepath.Base(filepath.Dir(f)))
		}
	}
	return pids
}

func own(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
}

// readySink closes ready at its first write.
type readySink struct{ ready chan struct{} }

func (r *readySink) Write(p []byte) (int, error) {
	select {
	case <-r.ready:
	default:
		close(r.ready)
	}
	return len(p), nil
}

// TestFleeing ends processes that fork, leave their session and exit, faster
// than any list of processes is read.
func TestFleeing(t *testing.T) {
	need.Root(t)
	need.Program(t, "perl")
	sb := serve(t, bare{init: true})
	tag := fmt.Sprintf("fleeing-%d", os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	sink := &readySink{ready: make(chan struct{})}
	go func() {
		<-sink.ready
		cancel()
	}()
	const script = `use POSIX; $SIG{TERM}="IGNORE"; $0=$ARGV[0];
		for (1..4) { if (!fork) { while (1) { setsid(); exit if fork } } }
		syswrite(STDOUT, "ready\n"); sleep 86400`
	_, err := sb.Exec(ctx, sandbox.Command{
		Argv: []string{"perl", "-e", script, tag}, Stdout: sink, Grace: 50 * time.Millisecond,
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want the context's", err)
	}
	if left := carrying(t, tag); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestOwnerDies closes the pipes as the kernel does when the owner is killed.
func TestOwnerDies(t *testing.T) {
	need.Program(t, "bash")
	for _, b := range []bare{{}, {init: true}} {
		t.Run(fmt.Sprintf("process 1 %t", b.init), func(t *testing.T) {
			if b.init {
				need.Root(t)
			}
			sb := serve(t, b)
			tag := fmt.Sprintf("owner-dies-%d-%t", os.Getpid(), b.init)
			st, err := sb.Exec(t.Context(), sandbox.Command{User: own(t), Argv: []string{"bash", "-c",
				`for i in 1 2 3; do (setsid bash -c 'trap "" TERM HUP; while :; do sleep 1; done' "$0" >/dev/null 2>&1 &); done; :`, tag}})
			if err != nil || st.Code != 0 {
				t.Fatal(st, err)
			}
			sb.closePipes()
			if err := sb.cmd.Wait(); err != nil {
				t.Errorf("the supervisor's end: %v", err)
			}
			sb.once.Do(func() {}) // it has been waited for
			if left := carrying(t, tag); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
		})
	}
}

// TestSignalsFromInside sends the supervisor what a command can send.
func TestSignalsFromInside(t *testing.T) {
	need.Root(t)
	need.Program(t, "bash")
	sb := serve(t, bare{init: true})
	for _, sig := range []string{"TERM", "INT", "HUP", "QUIT", "USR1", "ABRT", "SEGV", "PIPE", "CHLD", "KILL", "STOP", "TSTP"} {
		st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "kill -" + sig + " 1; true"})
		if err != nil || st.Code != 0 {
			t.Fatalf("SIG%s ended the supervisor: %+v, %v", sig, st, err)
		}
	}
}

// TestSupervisorMemory lets a command write far more than may be under way at a
// time, and looks at the supervisor's memory.
func TestSupervisorMemory(t *testing.T) {
	need.Program(t, "bash")
	sb := serve(t, bare{})
	peak := func() string {
		text, err := os.ReadFile("/proc/" + sb.ID() + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmHWM:")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.TrimSpace(line)
	}
	var n int64
	st, err := sb.Exec(t.Context(), sandbox.Command{User: own(t), Shell: "yes | head -c 268435456", Stdout: writerFunc(func(p []byte) (int, error) {
		n += int64(len(p))
		return len(p), nil
	})})
	if err != nil || st.Code != 0 || n != 256<<20 {
		t.Fatalf("got %+v, %v, %d bytes", st, err, n)
	}
	var kb int
	if _, err := fmt.Sscanf(peak(), "%d kB", &kb); err != nil || kb > 64<<10 {
		t.Errorf("the supervisor's memory reached %s, want at most 64 MiB (%v)", peak(), err)
	}
}
