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

// TestNotProcess1: where the supervisor sees its processes in the list of all of
// a machine it ends them, and does not say that this is proven.
func TestNotProcess1(t *testing.T) {
	need.Program(t, "bash")
	sb := serve(t, bare{})
	tag := fmt.Sprintf("not-process-1-%d", os.Getpid())
	mark, err := sb.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st, err := sb.Exec(t.Context(), sandbox.Command{User: own(t), Argv: []string{"bash", "-c", "(sleep 86400 & sleep 86400) >/dev/null 2>&1 & exit 3", tag}})
	if err != nil || st.Code != 3 {
		t.Errorf("a command that ends: %+v, %v", st, err)
	}
	const want = "not the first process of a process namespace"
	if err := sb.KillTree(t.Context(), mark, time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("ending what is left: got %v, want %q", err, want)
	}
	_, err = sb.Exec(t.Context(), sandbox.Command{
		User: own(t), Argv: []string{"bash", "-c", "while :; do sleep 1; done", tag}, Timeout: 50 * time.Millisecond, Grace: time.Millisecond,
	})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a timeout: got %v, want %q", err, want)
	}
	if left := carrying(t, tag); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestBusyOthers: processes from before the mark that fork all the time do not
// keep it from being proven that the others are gone, and go on.
func TestBusyOthers(t *testing.T) {
	need.Root(t)
	need.Program(t, "perl")
	sb := serve(t, bare{init: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	service := &readySink{ready: make(chan struct{})}
	ended := make(chan error, 1)
	go func() {
		const forks = `syswrite(STDOUT, "ready\n"); while (1) { if (!fork) { exit 0 } wait }`
		_, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"perl", "-e", forks}, Stdout: service, Grace: time.Millisecond})
		ended <- err
	}()
	<-service.ready
	for range 3 {
		mark, err := sb.Mark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tag := fmt.Sprintf("busy-others-%d", os.Getpid())
		if st, err := sb.Exec(t.Context(), sandbox.Command{Argv: []string{"perl", "-e", `$0=$ARGV[0]; open STDOUT, ">/dev/null"; fork or sleep 86400`, tag}}); err != nil || st.Code != 0 {
			t.Fatal(st, err)
		}
		if err := sb.KillTree(t.Context(), mark, time.Millisecond); err != nil {
			t.Error(err)
		}
		if left := carrying(t, tag); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
	}
	select {
	case err := <-ended:
		t.Errorf("the service has ended: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the service: %v", err)
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
	for sig := 1; sig < 32; sig++ {
		st, err := sb.Exec(t.Context(), sandbox.Command{Shell: fmt.Sprintf("kill -%d 1; true", sig)})
		if err != nil || st.Code != 0 {
			t.Fatalf("signal %d ended the supervisor: %+v, %v", sig, st, err)
		}
	}
}

// TestCommandsIgnoreNothing: what the supervisor does about signals its commands do not
// inherit, whether it is process 1 or was itself started with signals ignored.
func TestCommandsIgnoreNothing(t *testing.T) {
	need.Program(t, "grep")
	sb := serve(t, bare{})
	var out bytes.Buffer
	st, err := sb.Exec(t.Context(), sandbox.Command{User: own(t), Argv: []string{"grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"}, Stdout: &out})
	if err != nil || st.Code != 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	for line := range strings.Lines(out.String()) {
		name, mask, _ := strings.Cut(line, ":")
		if strings.Trim(mask, "0 \t\n") != "" {
			t.Errorf("%s of a command is %s", name, strings.TrimSpace(mask))
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
