package oci

import (
	"bytes"
	"context"
	"fmt"
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
			_, err = s.Exec(t.Context(), sandbox.Command{Shell: "for i in $(seq 200); do sleep 60 & done; ls -d /proc/[0-9]* | wc -l", Stdout: &out, Stderr: &out})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "Resource temporarily unavailable") {
				t.Errorf("200 processes were started where 64 may be:\n%s", out.String())
			}
			if err := s.KillTree(t.Context(), mark, 0); err != nil {
				t.Fatal(err)
			}
			say(t, s, "true")
			unlimited := create(t, b, sandbox.Spec{Resources: sandbox.Resources{PIDs: -1}})
			out.Reset()
			if _, err := unlimited.Exec(t.Context(), sandbox.Command{Shell: "for i in $(seq 200); do sleep 60 & done; ls -d /proc/[0-9]* | wc -l", Stdout: &out, Stderr: &out}); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "unavailable") {
				t.Errorf("no limit: %s", out.String())
			}
		})
	}
}

// TestMemoryShortage: thousands of small processes that take all memory together
// are killed, and not the supervisor, which is larger than any of them.
func TestMemoryShortage(t *testing.T) {
	t.Parallel()
	need.Root(t)
	b := newBackend(t, testOptions(t, RuntimeNative))
	need.That(t, "cgroups", b.Capabilities().MemoryLimit, "needs a cgroup file system that can be written")
	s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 96, PIDs: 2000}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mark, err := s.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	// What it says does not matter: it is killed, or cannot start more.
	_, err = s.Exec(ctx, sandbox.Command{Shell: "for i in $(seq 1500); do sleep 60 & done 2>/dev/null; wait -n", Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatalf("the supervisor is gone: %v", err)
	}
	if err := s.KillTree(ctx, mark, 0); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if _, err := s.Exec(ctx, sandbox.Command{Shell: "cat /proc/self/oom_score_adj; cat /proc/1/oom_score_adj", Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	var command, supervisor int
	if _, err := fmt.Sscan(out.String(), &command, &supervisor); err != nil || command <= supervisor {
		t.Errorf("scores of a command and the supervisor: %q, %v", out.String(), err)
	}
}
