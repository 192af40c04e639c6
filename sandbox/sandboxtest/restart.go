package sandboxtest

import (
	"errors"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// forking is a process that starts another all the time, as a service does. It is made in
// a way of which a later mark knows, and what it starts carries its tag.
const forking = `(setsid bash -c 'while :; do (exec -a "$0" sleep 86400) & sleep 0.1; done' "$0" >/dev/null 2>&1 &)`

// restarter is the sandbox as a Restarter; where it is none the test is skipped.
func restarter(t *testing.T, sb sandbox.Sandbox) sandbox.Restarter {
	t.Helper()
	r, ok := sandbox.As[sandbox.Restarter](sb)
	if !ok {
		t.Skip("the sandbox is no Restarter")
	}
	return r
}

// endAll ends everything in the sandbox; where the backend cannot the test is skipped.
func endAll(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	err := restarter(t, sb).EndAll(call(t), shortGrace)
	if errors.Is(err, sandbox.ErrUnsupported) {
		t.Skipf("not here: %v", err)
	}
	if err != nil {
		t.Fatalf("EndAll: %v", err)
	}
}

// restartObligations are those of sandbox.Restarter.
var restartObligations = []obligation{
	{"what is older than any mark is ended, and what it starts", processes, func(t *testing.T, s *suite) {
		sb, dir, tag := s.fresh(t), s.dir(), s.tag()
		exec(t, sb, tagged(tag, forking+`; `+daemonScript))
		upload(t, sb, dir, pack(t, map[string]entry{"f": file(0o644, "kept")}))
		waitAlive(t, sb, tag)
		killTree(t, sb, mark(t, sb)) // which spares it
		endAll(t, sb)
		gone(t, sb, tag)
		if got := download(t, sb, dir)["f"].body; got != "kept" {
			t.Errorf("after EndAll a file says %q, want kept", got)
		}
		endAll(t, sb)
		if err := restarter(t, sb).StartServices(call(t)); err != nil {
			t.Errorf("StartServices: %v", err)
		}
		output(t, sb, sh("true"))
	}},
	{"an Exec under way is ended", processes, func(t *testing.T, s *suite) {
		sb, tag := s.fresh(t), s.tag()
		u := start(t, call(t), sb, tagged(tag, `echo ready; sleep 86400; :`))
		u.untilReady(t)
		endAll(t, sb)
		u.wait(t)
		if u.err == nil && u.status.Code != 128+15 && u.status.Code != 128+9 {
			t.Errorf("the Exec that was ended: status %+v, want death by signal", u.status)
		}
		gone(t, sb, tag)
	}},
	{"listeners end, and new ones can be had", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		restarter(t, sb)
		in := listen(t, sb)
		endAll(t, sb)
		if c, err := in.Accept(); err == nil {
			t.Errorf("a connection from %v came in", c.RemoteAddr())
		}
		meets(t, s, sb, listen(t, sb))
	}},
	{"the allow list goes on", processes | allowlist, func(t *testing.T, s *suite) {
		sb, _ := s.listed(t, nil)
		endAll(t, sb)
		reaches(t, sb, sandbox.Command{}, "good.test")
		isDenied(t, sb, "evil.test")
		loopbackOnly(t, sb)
	}},
	{"an ended context is returned as its cause", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		r := restarter(t, sb)
		if err := r.EndAll(endedContext(t), shortGrace); !errors.Is(err, errCause) && !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("EndAll: got error %v, want the context's cause", err)
		}
	}},
}
