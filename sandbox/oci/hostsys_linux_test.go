package oci

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/cgroup"
)

// testGroup is an environment variable: a control group that the user of
// TestOrdinaryUser may change.
const testGroup = "PROCTOR_TEST_CGROUP"

// ownedGroup makes a control group that belongs to a user.
func ownedGroup(t *testing.T, uid int) string {
	t.Helper()
	for _, parent := range []string{"freezer", "unified", ""} {
		if group := programtest.Group(t, filepath.Join(cgroup.Root, parent), uid); group != "" {
			return group
		}
	}
	return ""
}

// TestHostSys: where a sandbox has the host's network and sees the host's /sys,
// nothing of it can be written, and the control groups of the host are not in it.
func TestHostSys(t *testing.T) {
	t.Parallel()
	group := os.Getenv(testGroup)
	if group == "" {
		t.Skip("TestOrdinaryUser runs it")
	}
	if err := os.Mkdir(filepath.Join(group, "own"), 0o755); err != nil {
		t.Fatalf("the group is not the user's to change: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(filepath.Join(group, "own")) })
	for _, name := range []string{RuntimeNative, RuntimeRunc, RuntimeCrun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needRuntime(t, name)
			opts := testOptions(t, name)
			opts.ShareHost = true
			s := create(t, newBackend(t, opts), sandbox.Spec{})
			seen := 0
			for line := range strings.Lines(say(t, s, "cat /proc/self/mountinfo")) {
				f := strings.Fields(line)
				if f[4] != "/sys" && !strings.HasPrefix(f[4], "/sys/") {
					continue
				}
				seen++
				if !slices.Contains(strings.Split(f[5], ","), "ro") {
					t.Errorf("can be written: %s", line)
				}
			}
			if seen == 0 {
				t.Error("there is no /sys")
			}
			if got := say(t, s, "ls -A "+cgroup.Root+"; mkdir "+group+"/"+name+" 2>/dev/null && echo made; true"); got != "" {
				t.Errorf("of the host's control groups: %q", got)
			}
			if _, err := os.Stat(filepath.Join(group, name)); err == nil {
				_ = os.Remove(filepath.Join(group, name))
				t.Error("a group was made on the host")
			}
		})
	}
}
