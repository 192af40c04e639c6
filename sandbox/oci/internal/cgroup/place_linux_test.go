package cgroup

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
)

// testRoot is an environment variable: where version 2 of control groups is mounted for
// the process that TestGiven starts.
const testRoot = "PROCTOR_TEST_CGROUP2"

const nobodyElse = 54323

// TestGiven: an ordinary user's process that has a group to itself makes groups in it,
// and one that has not makes none.
func TestGiven(t *testing.T) {
	t.Parallel()
	need.Root(t)
	root := unifiedRoot(t)
	program := programtest.ForAll(t, "/proc/self/exe")
	for _, alone := range []bool{true, false} {
		group := programtest.Group(t, root, nobodyElse)
		if group == "" {
			t.Fatal("no group can be made")
		}
		var others *exec.Cmd
		if !alone {
			others = exec.Command("sleep", "60")
			startIn(t, others, group, 0)
		}
		cmd := exec.Command(program, "-test.run=^TestGivenInside$", "-test.v")
		cmd.Env = append(os.Environ(), testRoot+"="+root)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &out, "/"
		startIn(t, cmd, group, nobodyElse)
		err := cmd.Wait()
		if made := strings.Contains(out.String(), "--- PASS"); err != nil || made != alone {
			t.Errorf("alone in a group %v: %v, %s", alone, err, &out)
		}
		if others != nil {
			_ = others.Process.Kill()
			_ = others.Wait() // it was ended
		}
		for _, left := range []string{"proctor/self", "proctor", "."} {
			if err := os.Remove(filepath.Join(group, left)); err != nil && (alone || left == ".") {
				t.Error(err)
			}
		}
	}
}

// TestGivenInside is skipped where there is no place.
func TestGivenInside(t *testing.T) {
	t.Parallel()
	root := os.Getenv(testRoot)
	if root == "" {
		t.Skip("TestGiven runs it")
	}
	for range 2 { // as a second backend of the process finds it
		p := given(root)
		if p == nil {
			t.Skip("no group is given")
		}
		if want := "/proctor/self"; !strings.HasSuffix(ownPath(), want) {
			t.Fatalf("the process is in %s, want a group %s", ownPath(), want)
		}
		g, err := p.Make("p1", Wanted{Shown: true})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("cat", "/proc/self/cgroup")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		g.StartIn(cmd)
		out, err := cmd.Output()
		g.Close()
		if want := "0::" + p.Path("p1") + "\n"; err != nil || !strings.Contains(string(out), want) {
			t.Fatalf("what is started is in %q, %v, want %q", out, err, want)
		}
		if err := p.Remove(t.Context(), "p1"); err != nil || len(p.Dirs("p1")) > 0 {
			t.Fatalf("groups %q are left, %v", p.Dirs("p1"), err)
		}
	}
}

// startIn starts a command of a user in a group.
func startIn(t *testing.T, cmd *exec.Cmd, group string, uid uint32) {
	t.Helper()
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
}
