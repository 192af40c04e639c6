package sandboxtest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// hardenedObligations are those of Spec.Hardened.
var hardenedObligations = []obligation{
	{"a Spec beyond the Capabilities is ErrUnsupported", 0, func(t *testing.T, s *suite) {
		if s.caps.Hardened {
			t.Skip("Capabilities.Hardened is claimed")
		}
		refused(t, s, s.hardened())
	}},
	{"commands have no capability and gain none", hardened | processes, func(t *testing.T, s *suite) {
		sb := s.create(t, s.hardened())
		users := []string{"", "0:0"}
		if !s.cfg.OneUser {
			users = append(users, s.cfg.User.Name)
		}
		for _, user := range users {
			cmd := sandbox.Command{Argv: []string{"cat", "/proc/self/status"}, User: user}
			status := output(t, sb, cmd)
			for _, line := range []string{
				"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
				"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1",
			} {
				if !strings.Contains(status, line+"\n") {
					t.Errorf("a command as %q has no %q:\n%s", user, line, status)
				}
			}
		}
	}},
	{"a set-uid program gives nothing", hardened | processes | otherUser, func(t *testing.T, s *suite) {
		sb := s.create(t, s.hardened())
		output(t, sb, sandbox.Command{Shell: "cp $(command -v cat) /home/raise && chmod 4755 /home/raise", User: "0:0"})
		status := output(t, sb, sandbox.Command{Argv: []string{"/home/raise", "/proc/self/status"}, User: s.cfg.User.Name})
		want := fmt.Sprintf("Uid:\t%d\t%[1]d\t%[1]d\t%[1]d\n", s.cfg.User.UID)
		if !strings.Contains(status, want) {
			t.Errorf("it does not run as the user who runs it:\n%s", status)
		}
	}},
	{"the root is read-only, and what must be writable is", hardened | processes, func(t *testing.T, s *suite) {
		spec := s.hardened()
		spec.Workdir = "/usr/share"
		sb := s.create(t, spec)
		for _, dir := range []string{"/", "/etc", "/usr/bin", "/var"} {
			if r := exec(t, sb, sandbox.Command{Shell: "touch " + dir + "/sandboxtest", Dir: "/"}); r.Code == 0 {
				t.Errorf("%s can be written", dir)
			}
		}
		for _, dir := range append(sandbox.HardenedWritable(), "/tmp", spec.Workdir) {
			if r := exec(t, sb, sandbox.Command{Shell: "touch " + dir + "/sandboxtest", Dir: "/"}); r.Code != 0 {
				t.Errorf("%s cannot be written: %s", dir, r.stdout)
			}
		}
		if n := output(t, sb, sh("ls | wc -l")); n == "0" || n == "1" {
			t.Errorf("the working directory has not what the image has there: %s files", n)
		}
	}},
	{"/tmp shows no set-uid programs and no devices", hardened | processes, func(t *testing.T, s *suite) {
		mounts := output(t, s.create(t, s.hardened()), sh("cat /proc/self/mountinfo"))
		for line := range strings.Lines(mounts) {
			if f := strings.Fields(line); len(f) > 5 && f[4] == "/tmp" {
				// gVisor's kernel shows nodev nowhere: devices there are its own.
				opened := strings.Contains(mounts, "nodev") && !strings.Contains(f[5], "nodev")
				if !strings.Contains(line, " - tmpfs ") || !strings.Contains(f[5], "nosuid") || opened {
					t.Errorf("/tmp is %q", line)
				}
				return
			}
		}
		t.Errorf("/tmp is no file system of its own:\n%s", mounts)
	}},
	{"there is no network where none is asked for", hardened | noNetwork | processes, func(t *testing.T, s *suite) {
		spec := s.hardened()
		spec.Network = sandbox.Network{}
		if got := output(t, s.create(t, spec), sh("grep -c : /proc/net/dev || true")); got != "1" {
			t.Errorf("got %s interfaces, want loopback alone", got)
		}
	}},
	{"what begins anew is hardened again", hardened | processes, func(t *testing.T, s *suite) {
		sb := s.create(t, s.hardened())
		r, ok := sb.(sandbox.Resetter)
		if !ok {
			t.Skip("the backend's sandboxes are no Resetters")
		}
		exec(t, sb, sh("touch /root/sandboxtest"))
		for range 2 { // the second may have been made ahead
			if err := r.Reset(call(t)); errors.Is(err, sandbox.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			if got := output(t, sb, sh("touch /etc/sandboxtest 2>/dev/null || ls /root; touch /root/sandboxtest")); got != "" {
				t.Errorf("its root can be written, or is not as at first: %s", got)
			}
			if status := output(t, sb, sh("cat /proc/self/status")); !strings.Contains(status, "CapBnd:\t0000000000000000\n") {
				t.Errorf("its commands can have capabilities:\n%s", status)
			}
		}
	}},
	{"what is prepared is hardened, or is not taken", hardened, func(t *testing.T, s *suite) {
		sb := take(t, s.prepare(t), s.hardened())
		if status := output(t, sb, sh("cat /proc/self/status")); !strings.Contains(status, "CapBnd:\t0000000000000000\n") {
			t.Errorf("its commands can have capabilities:\n%s", status)
		}
	}},
	{"files are uploaded and commands ended as elsewhere", hardened | processes | otherUser, func(t *testing.T, s *suite) {
		sb := s.create(t, s.hardened())
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := w.WriteHeader(&tar.Header{Name: "f", Mode: 0o600, Size: 2, Uid: s.cfg.User.UID, Gid: s.cfg.User.GID}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("x\n")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := sb.Upload(call(t), "/tests", &archive); err != nil {
			t.Fatal(err)
		}
		if got := output(t, sb, sandbox.Command{Argv: []string{"cat", "/tests/f"}, User: s.cfg.User.Name}); got != "x" {
			t.Errorf("its owner reads %q", got)
		}
		mark, err := sb.Mark(call(t))
		if err != nil {
			t.Fatal(err)
		}
		tag := s.tag()
		exec(t, sb, sandbox.Command{Argv: []string{"bash", "-c", "setsid sleep 86400 & trap '' TERM; (while :; do sleep 1000; done) &", tag}, User: s.cfg.User.Name})
		if err := sb.KillTree(call(t), mark, 0); err != nil {
			t.Fatal(err)
		}
		if n := alive(t, sb, tag); n != 0 {
			t.Errorf("%d processes of another user are left", n)
		}
	}},
}

// hardened is the base Spec, hardened.
func (s *suite) hardened() sandbox.Spec {
	spec := s.spec()
	spec.Hardened = true
	return spec
}
