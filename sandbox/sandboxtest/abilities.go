package sandboxtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
)

// apart ends the test when what the sandbox writes to its root appears in that of
// the machine, before anything of the system is deleted there.
func apart(t *testing.T, sb sandbox.Sandbox) {
	t.Helper()
	mark := fmt.Sprintf("/sandboxtest-mark-%x", rand.Uint64())
	output(t, sb, sh(": >"+mark))
	if _, err := os.Lstat(mark); err == nil {
		_ = os.Remove(mark)
		t.Fatal("the sandbox writes to this machine's own root")
	}
}

var abilityObligations = []obligation{
	{"Resetter brings files back to how Create left them", 0, func(t *testing.T, s *suite) {
		sb, dir := s.fresh(t), s.dir()
		r, ok := sandbox.As[sandbox.Resetter](sb)
		if !ok {
			t.Skip("the sandbox is no Resetter")
		}
		for i := range 3 {
			upload(t, sb, dir, pack(t, map[string]entry{"f": file(0o644, "x")}))
			if err := r.Reset(call(t)); err != nil {
				t.Fatalf("Reset %d: %v", i+1, err)
			}
			if err := sb.Download(call(t), dir, new(counter)); !errors.Is(err, sandbox.ErrNotExist) {
				t.Errorf("Reset %d: an uploaded file is still there (%v)", i+1, err)
			}
		}
	}},
	{"Resetter ends processes and gives back what was deleted", processes | privateRoot, func(t *testing.T, s *suite) {
		sb, tag := s.fresh(t), s.tag()
		r, ok := sandbox.As[sandbox.Resetter](sb)
		if !ok {
			t.Skip("the sandbox is no Resetter")
		}
		apart(t, sb)
		exec(t, sb, tagged(tag, daemonScript+`rm -f /etc/passwd; :`))
		waitAlive(t, sb, tag)
		if err := r.Reset(call(t)); err != nil {
			t.Fatalf("Reset: %v", err)
		}
		gone(t, sb, tag)
		output(t, sb, sh("test -s /etc/passwd"))
	}},
	{"Resetter leaves mounts alone", mounted, func(t *testing.T, s *suite) {
		host, target := t.TempDir(), s.dir()
		sb := s.mount(t, sandbox.Mount{Source: host, Target: target})
		r, ok := sandbox.As[sandbox.Resetter](sb)
		if !ok {
			t.Skip("the sandbox is no Resetter")
		}
		upload(t, sb, target, pack(t, map[string]entry{"f": file(0o644, "x")}))
		if err := r.Reset(call(t)); err != nil {
			t.Fatalf("Reset: %v", err)
		}
		readHost(t, host+"/f", "x")
		if got := download(t, sb, target)["f"].body; got != "x" {
			t.Errorf("after Reset the mount shows %q, want x", got)
		}
	}},
	{"Stopper stops, tells the way in, and Destroy still works", 0, func(t *testing.T, s *suite) {
		sb := s.fresh(t)
		st, ok := sandbox.As[sandbox.Stopper](sb)
		if !ok {
			t.Skip("the sandbox is no Stopper")
		}
		hint, err := st.Stop(call(t))
		if err != nil || hint == "" {
			t.Errorf("got hint %q, error %v", hint, err)
		}
		if err := sb.Destroy(call(t)); err != nil {
			t.Errorf("Destroy after Stop: %v", err)
		}
	}},
	{"Collector spares what is claimed", 0, func(t *testing.T, s *suite) {
		c, ok := s.backend.(sandbox.Collector)
		if !ok {
			t.Skip("the backend is no Collector")
		}
		sb := s.fresh(t)
		if _, err := c.Collect(call(t), func(procid.ID) bool { return true }); err != nil {
			t.Fatalf("Collect: %v", err)
		}
		mark(t, sb)
	}},
	{"Collector removes what is not claimed, and only that", 0, func(t *testing.T, s *suite) {
		c, ok := s.backend.(sandbox.Collector)
		if !ok {
			t.Skip("the backend is no Collector")
		}
		kept := s.fresh(t)
		spec := s.spec()
		spec.Labels.Owner = procid.ID{BootID: s.tag(), PID: 1, StartTicks: 1}
		lost := s.create(t, spec)
		removed, err := c.Collect(call(t), func(o procid.ID) bool { return o != spec.Labels.Owner })
		if err != nil || len(removed) == 0 {
			t.Errorf("got lines %q, error %v; want one line per thing removed", removed, err)
		}
		if _, err := lost.Exec(call(t), sh(ScriptExit3)); err == nil {
			t.Error("the collected sandbox still runs commands")
		}
		mark(t, kept)
		again, err := c.Collect(call(t), func(o procid.ID) bool { return o != spec.Labels.Owner })
		if err != nil || len(again) != 0 {
			t.Errorf("the second Collect: got lines %q, error %v; want none", again, err)
		}
	}},
}

// listenHost listens on the host's loopback while the test runs.
func listenHost(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// stands checks that a file that a process kept writing to is not written to
// any more. A writer that lives writes every 20 ms.
func stands(t testing.TB, name string) {
	t.Helper()
	size := func() int64 {
		fi, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}
	before := size()
	<-time.After(300 * time.Millisecond)
	if after := size(); after != before {
		t.Errorf("a process still writes after Destroy: %d bytes, then %d", before, after)
	}
}
