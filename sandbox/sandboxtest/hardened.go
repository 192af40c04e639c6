package sandboxtest

import (
	"archive/tar"
	"bytes"
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
		for _, user := range []string{"", "0:0", s.cfg.User.Name} {
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
				if !strings.Contains(line, " - tmpfs ") || !strings.Contains(f[5], "nosuid") || !strings.Contains(f[5], "nodev") {
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
	{"files are uploaded and commands ended as elsewhere", hardened | processes, func(t *testing.T, s *suite) {
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
