package oci

import (
	"bytes"
	"os"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// stateDir is short, as gVisor's sockets need it.
func stateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "oci")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func testOptions(t testing.TB, runtime string) Options {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Host: true, StateDir: stateDir(t), Executable: exe, Runtime: runtime, Build: testBuild}
}

func TestHostHello(t *testing.T) {
	need.Root(t)
	for _, rt := range []string{RuntimeGVisor, RuntimeRunc, RuntimeCrun} {
		t.Run(rt, func(t *testing.T) {
			b, err := New(testOptions(t, rt))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.Create(t.Context(), sandbox.Spec{Name: "hello"})
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			st, err := s.Exec(t.Context(), sandbox.Command{Shell: "id; ls -la / /root /home /etc/shadow; cat /etc/hosts; pwd; mount | head -50; echo x > /usr/x; ls -la /usr/x", Stdout: &out})
			t.Logf("%v %v %s", st, err, out.String())
			if err := s.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
