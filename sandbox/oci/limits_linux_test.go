package oci

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// TestMemoryLimit: what takes more memory than the limit is killed, and the
// sandbox continues.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, name := range limitingRuntimes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			b := newBackend(t, testOptions(t, name))
			need.Root(t)
			need.That(t, "cgroups", b.Capabilities().MemoryLimit, "needs a cgroup file system that can be written")
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
}

// limitingRuntimes enforce the limits of sandbox.Resources.
func limitingRuntimes() []string { return []string{RuntimeNative, RuntimeRunc, RuntimeCrun} }

// TestPIDsLimit: who starts more processes than there may be cannot, and the
// sandbox continues.
func TestPIDsLimit(t *testing.T) {
	t.Parallel()
	need.Root(t)
	for _, name := range limitingRuntimes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			b := newBackend(t, testOptions(t, name))
			need.That(t, "cgroups", b.Capabilities().PIDsLimit, "needs a cgroup file system that can be written")
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
}

// start200 starts 200 processes, by a shell that does not wait and try again when
// it cannot, as bash does for 15 seconds.
func start200(out io.Writer) sandbox.Command {
	return sandbox.Command{Argv: []string{"dash", "-c", "for i in $(seq 200); do sleep 600 & done; echo all"}, Stdout: out, Stderr: out}
}

// TestMemoryShortage: hundreds of small processes that take all memory together
// are killed, and not the supervisor, which is larger than any of them.
func TestMemoryShortage(t *testing.T) {
	t.Parallel()
	need.Root(t)
	b := newBackend(t, testOptions(t, RuntimeNative))
	need.That(t, "cgroups", b.Capabilities().MemoryLimit, "needs a cgroup file system that can be written")
	s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 96, PIDs: 2000}})
	// Short of memory, everything in the sandbox is slow.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	mark, err := s.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// What it says does not matter: it is killed, or cannot start more.
	// Memory of their own each: what is only read from files is read again and
	// again for a minute before anything is killed.
	const script = `x=$(head -c 300000 /dev/zero | tr '\0' x); for i in $(seq 500); do (y=$x$x; sleep 600; :) & done 2>/dev/null; wait -n`
	_, err = s.Exec(ctx, sandbox.Command{Shell: script, Stdout: &out})
	if err != nil {
		t.Fatalf("the supervisor is gone: %v", err)
	}
	if err := s.KillTree(ctx, mark, 0); err != nil {
		t.Fatal(err)
	}
	// While it starts a command the supervisor has the command's score.
	const lower = `until [ "$(cat /proc/1/oom_score_adj)" -lt "$(cat /proc/self/oom_score_adj)" ]; do sleep 0.02; done`
	if st, err := s.Exec(ctx, sandbox.Command{Shell: lower, Timeout: time.Minute}); err != nil || st.Code != 0 {
		t.Errorf("the supervisor's score does not get below a command's: %+v, %v", st, err)
	}
}
