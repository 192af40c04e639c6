package oci

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// testGiven is an environment variable: this is an ordinary user's process that has a
// control group to itself.
const testGiven = "PROCTOR_TEST_GIVEN"

// TestLimitsAreShown: a sandbox finds its limits, and what it uses, where it would in a
// container of an engine, and can change nothing there.
func TestLimitsAreShown(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 300, CPUs: 1.5, PIDs: 200}})
		const limits = `cd /sys/fs/cgroup; if test -e memory.max; then cat memory.max cpu.max pids.max
else cat memory/memory.limit_in_bytes cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us pids/pids.max; fi`
		if got, want := strings.Fields(say(t, s, limits)), "314572800 150000 100000 200"; strings.Join(got, " ") != want {
			t.Errorf("limits %q, want %s", got, want)
		}
		const used = `cd /sys/fs/cgroup; for f in memory.current memory/memory.usage_in_bytes; do test -e $f && cat $f; done; true`
		if got := strings.TrimSpace(say(t, s, used)); len(got) < 6 || len(got) > 9 {
			t.Errorf("memory in use: %q, want some megabytes", got)
		}
		const change = `cd /sys/fs/cgroup; mkdir memory/x pids/x cpu/x; test -e memory.max && mkdir x; echo max > pids.max; echo -1 > memory/memory.limit_in_bytes
echo 1000 > pids/pids.max; echo $$ > cgroup.procs; mount -o remount,rw /sys/fs/cgroup; umount /sys/fs/cgroup/memory; umount /sys/fs/cgroup; true`
		say(t, s, "("+change+") 2>/dev/null")
		if got := say(t, s, limits); len(strings.Fields(got)) != 4 || !strings.Contains(got, "314572800") || !strings.Contains(got, "200\n") {
			t.Errorf("limits %q after a try to change them", got)
		}
		if got := say(t, s, "ls -d /sys/fs/cgroup/x /sys/fs/cgroup/*/x 2>/dev/null; true"); got != "" {
			t.Errorf("groups were made: %q", got)
		}
	})
}

// TestGroupsAreNamedFromInside: a sandbox does not see where this machine has its
// groups.
func TestGroupsAreNamedFromInside(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 300}})
		got := say(t, s, "cat /proc/self/cgroup")
		if inGVisor := strings.TrimSpace(got) == "0::/"+s.ID(); strings.Contains(got, s.ID()) && !inGVisor {
			t.Errorf("groups %q", got)
		}
	})
}

// TestLayersAreNotNamed: a sandbox does not see where this machine has the layers of
// its files.
func TestLayersAreNotNamed(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{})
		for option := range strings.FieldsFuncSeq(say(t, s, "cat /proc/self/mountinfo"), func(r rune) bool { return strings.ContainsRune(" ,:\n", r) }) {
			if name, dir, ok := strings.Cut(option, "dir=/"); ok && !strings.HasPrefix(dir, "proc/self/fd/") {
				t.Errorf("%sdir is /%s", name, dir)
			}
		}
	})
}

// TestTemporaryFilesAreOnDisk: what lies in /tmp does not count as memory.
func TestTemporaryFilesAreOnDisk(t *testing.T) {
	t.Parallel()
	eachLimiting(t, func(t *testing.T, _ string, b *Backend) {
		s := create(t, b, sandbox.Spec{Resources: sandbox.Resources{MemoryMB: 200}})
		const fill = `ls -A /tmp; dd if=/dev/zero of=/tmp/big bs=1M count=400 2>/dev/null; stat -c %s /tmp/big; stat -c %a /tmp`
		if got, want := say(t, s, fill), "419430400\n1777\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := say(t, s, "head -c 20M /dev/zero | tail -c 20M | wc -c"); strings.TrimSpace(got) != "20971520" {
			t.Errorf("%q: memory is short beside a large file", got)
		}
	})
}

// TestGivenGroup runs tests again as an ordinary user who was given a group with limits,
// as systemd-run --user --scope does it.
func TestGivenGroup(t *testing.T) { //nolint:tparallel // each runtime's tests fill the machine
	t.Parallel()
	need.Root(t)
	if !strings.Contains(hostfile.Small(filepath.Join(cgroup.Root, "cgroup.controllers")), "memory") {
		t.Skip("this machine has version 1 of control groups, whose groups are not given to others")
	}
	const uid = 54322
	group := ownedGroup(t, uid)
	dir, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	cmd := exec.Command(programtest.ForAll(t, staticProgram(t)), "-test.v", "-test.parallel=2", "-test.run=^(TestLimitsAreShown|TestGroupsAreNamedFromInside|TestMemoryLimit|TestProcessorLimit|TestPIDsLimit)$/^(native|runc|crun)$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), testGiven+"=1", testTUN+"="+readableTUN(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uid, Gid: uid}, UseCgroupFD: true, CgroupFD: int(dir.Fd()),
	}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") < 5 {
		t.Errorf("%v:\n%s", err, out)
	}
	for _, left := range []string{"proctor/self", "proctor"} {
		if err := os.Remove(filepath.Join(group, left)); err != nil {
			t.Error(err)
		}
	}
}
