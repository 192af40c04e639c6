package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

const daemonScript = `(setsid bash -c 'trap "" TERM HUP; while :; do sleep 0.05; done' "$0" >/dev/null 2>&1 &); `

var killObligations = []obligation{
	{"what was born since the mark is ended", processes, func(t *testing.T, s *suite) {
		sb, tag := s.shared(t), s.tag()
		m := mark(t, sb)
		exec(t, sb, tagged(tag, daemonScript+`sleep 86400 & (exec -a "$0" sleep 86400) & :`))
		waitAlive(t, sb, tag)
		killTree(t, sb, m)
		gone(t, sb, tag)
	}},
	{"what was there before the mark is spared", processes, func(t *testing.T, s *suite) {
		sb, before, since := s.fresh(t), s.tag(), s.tag()
		exec(t, sb, tagged(before, `(setsid bash -c 'sleep 86400; :' "$0" >/dev/null 2>&1 &)`))
		waitAlive(t, sb, before)
		m := mark(t, sb)
		exec(t, sb, tagged(since, daemonScript))
		waitAlive(t, sb, since)
		killTree(t, sb, m)
		gone(t, sb, since)
		if alive(t, sb, before) == 0 {
			t.Error("a process from before the mark is gone")
		}
	}},
	{"what a spared process starts later stays with it", processes, func(t *testing.T, s *suite) {
		// A service forks workers all the time: killing them would have no end.
		sb, before := s.fresh(t), s.tag()
		exec(t, sb, tagged(before, `(setsid bash -c 'while :; do sleep 0.03; done' "$0" >/dev/null 2>&1 &)`))
		waitAlive(t, sb, before)
		killTree(t, sb, mark(t, sb))
		endReady(t, sb, withGrace(sh(ScriptHang), grace))
		if alive(t, sb, before) == 0 {
			t.Error("a process from before the mark is gone")
		}
	}},
	{"an Exec under way that began after the mark is ended", processes, func(t *testing.T, s *suite) {
		sb, tag := s.shared(t), s.tag()
		m := mark(t, sb)
		u := start(t, call(t), sb, tagged(tag, `echo ready; sleep 86400; :`))
		u.untilReady(t)
		killTree(t, sb, m)
		u.wait(t)
		if u.err == nil && u.status.Code != 128+15 && u.status.Code != 128+9 {
			t.Errorf("the Exec that was ended: status %+v, want death by signal", u.status)
		}
		gone(t, sb, tag)
	}},
	{"a mark can be used after another", processes, func(t *testing.T, s *suite) {
		sb, first, second := s.fresh(t), s.tag(), s.tag()
		m1 := mark(t, sb)
		exec(t, sb, tagged(first, daemonScript))
		waitAlive(t, sb, first)
		m2 := mark(t, sb)
		exec(t, sb, tagged(second, daemonScript))
		waitAlive(t, sb, second)
		killTree(t, sb, m2)
		gone(t, sb, second)
		if alive(t, sb, first) == 0 {
			t.Error("killing since the second mark ended what is older")
		}
		killTree(t, sb, m1)
		gone(t, sb, first)
	}},
	{"a mark that never was is an error", 0, func(t *testing.T, s *suite) {
		if err := s.shared(t).KillTree(call(t), sandbox.Mark("no such mark"), shortGrace); err == nil {
			t.Error("got no error")
		}
	}},
	{"an ended context is returned as its cause", 0, func(t *testing.T, s *suite) {
		if _, err := s.shared(t).Mark(endedContext(t)); !errors.Is(err, errCause) {
			t.Errorf("Mark: got error %v, want the context's cause", err)
		}
	}},
	{"signals to the first process are without effect, or the sandbox is lost", processes, attacksSupervisor},
	{"with nothing born since it returns, repeatedly", 0, func(t *testing.T, s *suite) {
		sb := s.shared(t)
		m := mark(t, sb)
		killTree(t, sb, m)
		killTree(t, sb, m)
	}},
}

// endedContext is one that has ended with errCause.
func endedContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(call(t))
	cancel(errCause)
	return ctx
}

// attacksSupervisor sends the signals that a program cannot hold, or does not expect, to
// the first process of the sandbox.
func attacksSupervisor(t *testing.T, s *suite) {
	for _, signal := range []string{"KILL", "34", "STOP"} {
		t.Run(signal, func(t *testing.T) {
			sb, tag := s.fresh(t), s.tag()
			m := mark(t, sb)
			cmd := tagged(tag, fmt.Sprintf(`(setsid sleep 86400 >/dev/null 2>&1 &); kill -%s 1; sleep 86400; :`, signal))
			cmd.Timeout, cmd.Grace = time.Second, shortGrace
			st, err := sb.Exec(call(t), cmd)
			killed := sb.KillTree(call(t), m, shortGrace)
			_, again := sb.Mark(call(t))
			if err == nil && st.TimedOut && killed == nil && again == nil {
				gone(t, sb, tag)
				return
			}
			for _, err := range []error{err, killed, again} {
				lost, ok := errors.AsType[*sandbox.LostError](err)
				if !ok {
					t.Errorf("Exec, KillTree or Mark: got error %v, want all to work or the sandbox to be lost", err)
				} else if !strings.Contains(lost.Reason, "something in") {
					t.Errorf("the reason does not say who it was: %q", lost.Reason)
				}
			}
		})
	}
}

func mark(t *testing.T, sb sandbox.Sandbox) sandbox.Mark {
	t.Helper()
	m, err := sb.Mark(call(t))
	if err != nil {
		t.Fatalf("Mark: %v", err)
	}
	return m
}

func killTree(t *testing.T, sb sandbox.Sandbox, m sandbox.Mark) {
	t.Helper()
	if err := sb.KillTree(call(t), m, shortGrace); err != nil {
		t.Errorf("KillTree: %v", err)
	}
}
