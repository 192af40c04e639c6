package oci

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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
	return Options{OwnRoot: true, StateDir: stateDir(t), Executable: staticProgram(t), Runtime: runtime, Build: testBuild}
}

// cleanupContext outlives the test's context, and is bounded.
func cleanupContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), destroyLimit)
	t.Cleanup(cancel)
	return ctx
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			if err := newBackend(t, opts).Check(t.Context()); err != nil {
				t.Error(err)
			}
			assertNothingLeft(t, opts.StateDir)
		})
	}
}

// assertNothingLeft holds that no sandbox has left anything.
func assertNothingLeft(t testing.TB, stateDir string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(stateDir, sandboxesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, d := range left {
		t.Errorf("directory %q is left", d.Name())
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(string(mounts), stateDir) {
		t.Errorf("a mount below %q is left:\n%s", stateDir, mounts)
	}
}

func TestRuntimes(t *testing.T) {
	t.Parallel()
	needRuntime(t, RuntimeGVisor)
	for _, st := range Runtimes(t.Context(), testOptions(t, "")) {
		if !st.Available && (st.Reason == "" || st.Fix == "") {
			t.Errorf("%s cannot be used, but there is no reason or fix: %+v", st.Name, st)
		}
		if st.Name == RuntimeGVisor && !st.Available {
			t.Errorf("gVisor cannot be used: %s", st.Reason)
		}
	}
}

// TestOtherBuild: a gVisor of another build is told, as an old one beside a new program.
func TestOtherBuild(t *testing.T) {
	t.Parallel()
	needRuntime(t, RuntimeGVisor)
	opts := testOptions(t, RuntimeGVisor)
	opts.Build = "another"
	err := newBackend(t, opts).Check(t.Context())
	if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(err.Error(), fmt.Sprintf("is of build %q and was executed by build %q", testBuild, opts.Build)) {
		t.Errorf("got %v", err)
	}
	assertNothingLeft(t, opts.StateDir)
}

func TestHostMasks(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			secret := filepath.Join(stateDir(t), "jobs")
			if err := os.MkdirAll(secret, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(secret, "solution"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			opts.Mask = []string{secret}
			s := create(t, newBackend(t, opts), sandbox.Spec{})
			if got := say(t, s, "ls -A /root /home /run /mnt /media | grep -v :; ls /etc/ssh/ssh_host_*_key 2>/dev/null; true"); strings.TrimSpace(got) != "" {
				t.Errorf("visible: %s", got)
			}
			if got := say(t, s, "cut -d: -f2 /etc/shadow 2>/dev/null | sort -u"); strings.Trim(got, "*\n") != "" {
				t.Errorf("passwords are visible")
			}
			say(t, s, "! test -e "+secret+"/solution && ! test -e "+opts.StateDir+"/"+sandboxesDir)
			say(t, s, "touch /usr/bin/written /etc/written /root/written && rm /etc/hosts && mkdir /new")
			for _, f := range []string{"/usr/bin/written", "/etc/written", "/root/written", "/new"} {
				if _, err := os.Lstat(f); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%s on the host: %v", f, err)
				}
			}
			if _, err := os.Stat("/etc/hosts"); err != nil {
				t.Errorf("/etc/hosts on the host: %v", err)
			}
		})
	}
}

// TestHostShow: what is on this machine beside its system is seen when it is asked for.
func TestHostShow(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			tool, err := os.MkdirTemp("/var/lib", "proctor-show-")
			if errors.Is(err, fs.ErrPermission) { // an ordinary user's own files are elsewhere
				tool = stateDir(t)
			} else if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(tool) })
			if err := errors.Join(os.WriteFile(filepath.Join(tool, "seen"), []byte("tool"), 0o644), os.Mkdir(filepath.Join(tool, "jobs"), 0o755),
				os.WriteFile(filepath.Join(tool, "jobs", "solution"), nil, 0o644), os.Chmod(tool, 0o755)); err != nil {
				t.Fatal(err)
			}
			opts := testOptions(t, name)
			opts.Mask = []string{filepath.Join(tool, "jobs")}
			say(t, create(t, newBackend(t, opts), sandbox.Spec{}), "! test -e "+tool)
			opts.Show = []string{tool}
			if got := say(t, create(t, newBackend(t, opts), sandbox.Spec{}), "cat "+tool+"/seen && ! test -e "+tool+"/jobs/solution"); got != "tool" {
				t.Errorf("got %q", got)
			}
			opts.Show = opts.Mask
			if _, err := New(opts); !errors.Is(err, ErrShow) || !strings.Contains(err.Error(), opts.Mask[0]) {
				t.Errorf("showing the jobs: %v", err)
			}
		})
	}
}

func TestHostDockerfile(t *testing.T) {
	t.Parallel()
	needRuntime(t, RuntimeRunc)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM x\nENV A=b\nRUN false\nWORKDIR /srv/$A/c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := create(t, newBackend(t, testOptions(t, RuntimeRunc)), sandbox.Spec{Image: sandbox.Image{Build: &sandbox.Build{ContextDir: dir}}})
	if got := say(t, s, `echo "$A $PWD"`); got != "b /srv/b/c\n" {
		t.Errorf("got %q", got)
	}
}

// TestNoHostDisks: root in a sandbox has no way to the disks of the host.
func TestNoHostDisks(t *testing.T) {
	t.Parallel()
	for _, name := range runtimeNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			s := create(t, newBackend(t, testOptions(t, name)), sandbox.Spec{})
			say(t, s, `
				for dir in / /dev /tmp; do
					while read -r major minor _ disk; do
						case $major in ''|*[!0-9]*) continue;; esac
						mknod "$dir/disk" b "$major" "$minor" 2>/dev/null || continue
						if head -c 1 "$dir/disk" 2>/dev/null | grep -q .; then echo "$disk can be read"; exit 1; fi
						if (: <"$dir/disk") 2>/dev/null; then echo "$disk can be opened"; exit 1; fi
						rm "$dir/disk"
					done </proc/partitions
					mknod "$dir/disk" b 254 0 2>/dev/null && (: <"$dir/disk") 2>/dev/null && exit 1
				done
				head -c 1 /dev/zero >/dev/null`)
		})
	}
}

// TestConcurrentSandboxes also covers the main thread, which never enters a
// sandbox's namespace.
func TestConcurrentSandboxes(t *testing.T) { //nolint:tparallel // the group ends before anybody looks for what it left
	t.Parallel()
	needRuntime(t, RuntimeRunc)
	b := newBackend(t, testOptions(t, RuntimeRunc))
	t.Run("all", func(t *testing.T) {
		for i := range 8 {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				s := create(t, b, sandbox.Spec{})
				if got := say(t, s, "echo $((6*7)) >/made; cat /made"); got != "42\n" {
					t.Errorf("got %q", got)
				}
			})
		}
	})
	assertNothingLeft(t, b.opts.StateDir)
}

func TestValidMounts(t *testing.T) {
	t.Parallel()
	for _, m := range []sandbox.Mount{{Source: "a", Target: "/a"}, {Source: "/a", Target: "a"}, {Source: "/a", Target: "/"}, {Source: "", Target: "/a"}, {Source: "/a"}} {
		if validMounts([]sandbox.Mount{m}) == nil {
			t.Errorf("%+v: no error", m)
		}
	}
	if err := validMounts([]sandbox.Mount{{Source: "/a", Target: "/b"}}); err != nil {
		t.Error(err)
	}
}
