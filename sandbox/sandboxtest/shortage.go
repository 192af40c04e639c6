package sandboxtest

import (
	"context"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// MemoryShortage holds a sandbox to this: hundreds of small processes that take all its
// memory together are killed, and not its supervisor, which is larger than any of them. The
// sandbox has 96 MB, the limit is enforced, and there may be 2000 processes. Short of memory
// everything in it is slow, so that this may take minutes, and is no part of Run.
func MemoryShortage(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	m, err := sb.Mark(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// What it says does not matter: it is killed, or cannot start more. Memory of their
	// own each: what is only read from files is read again and again for a minute before
	// anything is killed.
	const script = `x=$(head -c 300000 /dev/zero | tr '\0' x); for i in $(seq 500); do (y=$x$x; sleep 600; :) & done 2>/dev/null; wait -n`
	if _, err := sb.Exec(ctx, sandbox.Command{Shell: script}); err != nil {
		t.Fatalf("the supervisor is gone: %v", err)
	}
	if err := sb.KillTree(ctx, m, 0); err != nil {
		t.Fatal(err)
	}
}

// Spared holds a sandbox of which the machine's kernel runs the processes to this: when
// memory is short it kills any command before the supervisor.
func Spared(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	// While it starts a command the supervisor has the command's score.
	const lower = `until [ "$(cat /proc/1/oom_score_adj)" -lt "$(cat /proc/self/oom_score_adj)" ]; do sleep 0.02; done`
	if st, err := sb.Exec(t.Context(), sandbox.Command{Shell: lower, Timeout: time.Minute}); err != nil || st.Code != 0 {
		t.Errorf("the supervisor's score does not get below a command's: %+v, %v", st, err)
	}
}
