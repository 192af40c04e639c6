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

// grace for commands that the suite ends. Long enough that a handler of
// SIGTERM runs on a loaded machine.
const grace = 2 * time.Second

// shortGrace is for what ignores SIGTERM.
const shortGrace = 200 * time.Millisecond

var endObligations = []obligation{
	{"a passed Timeout is a result with TimedOut", 0, func(t *testing.T, s *suite) {
		cmd := sh(ScriptHang)
		cmd.Timeout, cmd.Grace = 300*time.Millisecond, grace
		st, err := s.shared(t).Exec(call(t), cmd)
		if err != nil || !st.TimedOut {
			t.Errorf("got status %+v, error %v; want TimedOut", st, err)
		}
	}},
	{"a Timeout that does not pass leaves no trace", 0, func(t *testing.T, s *suite) {
		cmd := sh(ScriptExit3)
		cmd.Timeout = limit
		if r := exec(t, s.shared(t), cmd); r.Code != 3 || r.TimedOut {
			t.Errorf("got %+v, want code 3 and not TimedOut", r.ExitStatus)
		}
	}},
	{"an ended context is returned as its cause", 0, func(t *testing.T, s *suite) {
		ctx, cancel := context.WithCancelCause(call(t))
		u := start(t, ctx, s.shared(t), withGrace(sh(ScriptHang), grace))
		u.untilReady(t)
		cancel(errCause)
		u.wait(t)
		if !errors.Is(u.err, errCause) {
			t.Errorf("got status %+v, error %v; want an error that wraps context.Cause", u.status, u.err)
		}
	}},
	{"a context that has ended before runs nothing", 0, func(t *testing.T, s *suite) {
		ctx, cancel := context.WithCancelCause(call(t))
		cancel(errCause)
		var out counter
		_, err := s.shared(t).Exec(ctx, sandbox.Command{Shell: ScriptBoth, Stdout: &out})
		if !errors.Is(err, errCause) || out.n != 0 {
			t.Errorf("got error %v and %d bytes of output, want context.Cause and none", err, out.n)
		}
	}},
	{"a context can end at any moment of the start", 0, func(t *testing.T, s *suite) {
		for i := range 20 {
			ctx, cancel := context.WithTimeoutCause(call(t), time.Duration(i)*300*time.Microsecond, errCause)
			_, err := s.shared(t).Exec(ctx, withGrace(sh(ScriptHang), grace))
			cancel()
			if !errors.Is(err, errCause) {
				t.Fatalf("got error %v, want the context's cause", err)
			}
		}
	}},
	{"the context's own deadline is an error, not TimedOut", 0, func(t *testing.T, s *suite) {
		ctx, cancel := context.WithTimeoutCause(call(t), 300*time.Millisecond, errCause)
		defer cancel()
		st, err := s.shared(t).Exec(ctx, withGrace(sh(ScriptHang), grace))
		if !errors.Is(err, errCause) || st.TimedOut {
			t.Errorf("got status %+v, error %v; want the deadline's cause", st, err)
		}
	}},
	{"output before the end is delivered", 0, func(t *testing.T, s *suite) {
		var out strings.Builder
		st, err := s.shared(t).Exec(call(t), sandbox.Command{Shell: ScriptHang, Stdout: &out, Timeout: 2 * time.Second, Grace: grace})
		if err != nil || !st.TimedOut || out.String() != "ready\n" {
			t.Errorf("got status %+v, error %v, output %q; want TimedOut and \"ready\\n\"", st, err, out.String())
		}
	}},
	{"SIGTERM comes first and can be handled within Grace", processes, func(t *testing.T, s *suite) {
		u := endReady(t, s.shared(t), withGrace(sh(`trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`), limit/2))
		if !strings.HasSuffix(u.output(), "bye\n") {
			t.Errorf("the handler of SIGTERM did not run; output %q", u.output())
		}
	}},
	{"what ignores SIGTERM is killed after Grace", processes, func(t *testing.T, s *suite) {
		endsAll(t, s, `trap '' TERM; (trap '' TERM; sleep 86400; : $0) & echo ready; while :; do sleep 0.05; done`)
	}},
	{"what is stopped is killed", processes, func(t *testing.T, s *suite) {
		endsAll(t, s, `(sleep 0.1; kill -STOP $BASHPID; sleep 86400) & echo ready; kill -STOP $$; sleep 86400`)
	}},
	{"background children are ended", processes, func(t *testing.T, s *suite) {
		endsAll(t, s, `for i in 1 2 3; do (exec -a "$0" sleep 86400) & done; echo ready; wait`)
	}},
	{"daemons in a session of their own are ended", processes, func(t *testing.T, s *suite) {
		endsAll(t, s, `setsid bash -c 'trap "" TERM HUP; while :; do sleep 0.05; done' "$0" </dev/null >/dev/null 2>&1 & echo ready; wait`)
	}},
	{"double forks are ended", processes, func(t *testing.T, s *suite) {
		endsAll(t, s, `for i in 1 2 3; do ( setsid bash -c '(setsid bash -c "sleep 86400; :" "$0" >/dev/null 2>&1 &)' "$0" & ); done
until [ "$(grep -lsaFf - /proc/[0-9]*/cmdline <<<"$0" | wc -l)" -ge 4 ]; do sleep 0.02; done; echo ready; sleep 86400; :`)
	}},
	{"a fork loop is ended", processes, func(t *testing.T, s *suite) { endsForkLoop(t, s, "") }},
	{"a fork loop that leaves its session each time is ended", processes, func(t *testing.T, s *suite) { endsForkLoop(t, s, "setsid ") }},
	{"processes that restart each other are ended", processes, endsPair},
	{"a Timeout ends daemons too", processes, func(t *testing.T, s *suite) {
		sb, tag := s.shared(t), s.tag()
		cmd := tagged(tag, `(setsid bash -c 'sleep 86400; :' "$0" >/dev/null 2>&1 &); echo ready; sleep 86400; :`)
		cmd.Timeout, cmd.Grace = time.Second, shortGrace
		if r := exec(t, sb, cmd); !r.TimedOut {
			t.Errorf("got %+v, want TimedOut", r.ExitStatus)
		}
		gone(t, sb, tag)
	}},
	{"Exec returns although a daemon holds its output", processes, func(t *testing.T, s *suite) {
		sb, tag := s.fresh(t), s.tag()
		if r := exec(t, sb, tagged(tag, `(setsid bash -c 'sleep 86400; :' "$0" &); echo done`)); r.Code != 0 || r.stdout != "done\n" {
			t.Errorf("got %+v, output %q", r.ExitStatus, r.stdout)
		}
	}},
	{"what a command leaves running stays", processes, staysAlive},
	{"what is left running is not killed by a closed pipe", processes, survivesClosedPipe},
	{"what an earlier Exec left is not ended with a later one", processes, func(t *testing.T, s *suite) {
		sb, tag := s.fresh(t), s.tag()
		exec(t, sb, tagged(tag, `(setsid bash -c 'sleep 86400; :' "$0" >/dev/null 2>&1 &); : `))
		waitAlive(t, sb, tag)
		endReady(t, sb, withGrace(sh(ScriptHang), grace))
		if alive(t, sb, tag) == 0 {
			t.Error("the daemon of an Exec that had ended is gone")
		}
	}},
	{"ending one Exec does not touch another under way", processes, sparesOthers},
}

var errCause = errors.New("sandboxtest: the cause")

func withGrace(cmd sandbox.Command, d time.Duration) sandbox.Command {
	cmd.Grace = d
	return cmd
}

// endReady starts cmd, cancels it when it is ready and waits for its end.
func endReady(t *testing.T, sb sandbox.Sandbox, cmd sandbox.Command) *underway {
	t.Helper()
	ctx, cancel := context.WithCancelCause(call(t))
	u := start(t, ctx, sb, cmd)
	u.untilReady(t)
	cancel(errCause)
	u.wait(t)
	if !errors.Is(u.err, errCause) {
		t.Errorf("got status %+v, error %v; want an error that wraps context.Cause", u.status, u.err)
	}
	return u
}

// endsAll runs a script whose processes all carry $0, cancels it when it says
// "ready", and looks for survivors.
func endsAll(t *testing.T, s *suite, script string) {
	t.Helper()
	sb, tag := s.shared(t), s.tag()
	endReady(t, sb, withGrace(tagged(tag, script), shortGrace))
	gone(t, sb, tag)
}

func gone(t *testing.T, sb sandbox.Sandbox, tag string) {
	t.Helper()
	if n := alive(t, sb, tag); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func waitAlive(t *testing.T, sb sandbox.Sandbox, tag string) {
	t.Helper()
	cmd := sh(`read -r tag; until grep -qsaFf - /proc/[0-9]*/cmdline <<<"$tag"; do sleep 0.02; done`)
	cmd.Stdin = strings.NewReader(tag + "\n")
	output(t, sb, cmd)
}

// endsForkLoop ends a chain in which each process starts its successor and
// exits, so that no list of processes is ever current.
func endsForkLoop(t *testing.T, s *suite, how string) {
	sb, tag, dir := s.shared(t), s.tag(), s.dir()
	script := fmt.Sprintf("#!/bin/bash\ntrap '' TERM\n%s\"$0\" %s </dev/null >/dev/null 2>&1 &\nexit 0\n", how, tag)
	cmd := tagged(tag, fmt.Sprintf(`mkdir -p %s; cat >%s/loop; chmod +x %s/loop
for i in 1 2 3; do %s/loop; done; echo ready; exec sleep 86400`, dir, dir, dir, dir))
	cmd.Stdin = strings.NewReader(script)
	endReady(t, sb, withGrace(cmd, shortGrace))
	gone(t, sb, tag)
}

// endsPair ends two processes each of which starts the other again when it
// misses it.
func endsPair(t *testing.T, s *suite) {
	sb, tag, dir := s.shared(t), s.tag(), s.dir()
	script := fmt.Sprintf(`#!/bin/bash
trap '' TERM
echo $BASHPID >%[1]s/$1
while :; do
  kill -0 "$(cat %[1]s/$2)" 2>/dev/null || setsid "$0" $2 $1 %[2]s </dev/null >/dev/null 2>&1 &
  read -rt 0.01 <> <(:)
done
`, dir, tag)
	cmd := tagged(tag, fmt.Sprintf(`mkdir -p %[1]s; cat >%[1]s/pair; chmod +x %[1]s/pair
setsid %[1]s/pair a b "$0" </dev/null >/dev/null 2>&1 &
until [ -s %[1]s/a ] && [ -s %[1]s/b ]; do sleep 0.02; done; echo ready; exec sleep 86400`, dir))
	cmd.Stdin = strings.NewReader(script)
	endReady(t, sb, withGrace(cmd, shortGrace))
	gone(t, sb, tag)
}

func staysAlive(t *testing.T, s *suite) {
	sb, tag := s.fresh(t), s.tag()
	exec(t, sb, tagged(tag, `sleep 86400 & (exec -a "$0" sleep 86400) & disown -a; true`))
	waitAlive(t, sb, tag)
	for range 5 {
		output(t, sb, sh("true"))
	}
	if alive(t, sb, tag) == 0 {
		t.Error("the background process is gone after its command ended normally")
	}
}

// survivesClosedPipe leaves a process that writes more than any pipe holds
// after its command has ended, and then says in a file that it lived.
func survivesClosedPipe(t *testing.T, s *suite) {
	sb, dir := s.fresh(t), s.dir()
	script := fmt.Sprintf(`mkdir -p %[1]s; (until [ -e %[1]s/go ]; do sleep 0.02; done
yes out | head -c 4194304; yes err | head -c 4194304 >&2; echo "${PIPESTATUS[*]}" >%[1]s/lived) & :`, dir)
	for _, split := range []bool{false, true} {
		t.Run(map[bool]string{false: "merged", true: "split"}[split], func(t *testing.T) {
			output(t, sb, sh("rm -rf "+dir))
			if split {
				execSplit(t, sb, sh(script))
			} else {
				exec(t, sb, sh(script))
			}
			wait := sh(fmt.Sprintf(`: >%[1]s/go; until [ -s %[1]s/lived ]; do sleep 0.02; done`, dir))
			output(t, sb, wait)
		})
	}
}

// sparesOthers ends one Exec while another, with children and a daemon of its
// own, is under way, and lets the other end normally.
func sparesOthers(t *testing.T, s *suite) {
	sb, dir, tagA, tagB := s.shared(t), s.dir(), s.tag(), s.tag()
	output(t, sb, sh(fmt.Sprintf("mkdir -p %[1]s && mkfifo %[1]s/go", dir)))
	family := `(setsid bash -c 'sleep 86400; :' "$0" >/dev/null 2>&1 &); (exec -a "$0" sleep 86400) & `
	ctxA, cancelA := context.WithCancelCause(call(t))
	a := start(t, ctxA, sb, withGrace(tagged(tagA, family+`echo ready; sleep 86400; :`), shortGrace))
	a.untilReady(t)
	ctxB, cancelB := context.WithCancelCause(call(t))
	b := start(t, ctxB, sb, withGrace(tagged(tagB, family+fmt.Sprintf(`echo ready; read -r _ <%s/go; exit 7`, dir)), shortGrace))
	b.untilReady(t)
	const members = 3 // the shell, its child and its daemon; the forks in between are gone
	settled(t, sb, tagB, members)

	cancelA(errCause)
	a.wait(t)
	gone(t, sb, tagA)
	settled(t, sb, tagB, members)
	output(t, sb, sh(fmt.Sprintf("echo >%s/go", dir)))
	b.wait(t)
	if b.err != nil || b.status.Code != 7 {
		t.Errorf("the second Exec: status %+v, error %v; want code 7", b.status, b.err)
	}
	cancelB(nil)
}
