package oci

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/sandbox/oci/internal/hostfile"
)

// TestOrdinaryUser runs the tests again as users other than root: one who has
// nothing but the own id, and one with subordinate ids if the machine has any.
func TestOrdinaryUser(t *testing.T) { //nolint:tparallel // each user's run fills the machine
	t.Parallel()
	need.Root(t)
	const nobodyElse = 54321
	users := map[string]int{"one id": nobodyElse}
	if uid, ok := userWithRange(); ok {
		users["range of ids"] = uid
	}
	program := programtest.ForAll(t, staticProgram(t))
	tun := readableTUN(t)
	// The whole contract once more takes a minute for each user.
	runs := []string{"^(TestCheck|TestHostMasks|TestHostShow|TestKilledOwner|TestPublicNetwork)$", "^TestContractHost$/^(gvisor|native)$/^(Mounts|Network|Outside|Destroy|Abilities|Snapshots|Prepared|Hardened)$"}
	if need.Required("patience") {
		runs[1] = "^TestContractHost$/^(gvisor|native)$"
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			for _, tests := range runs {
				asUser(t, program, uid, tests, testTUN+"="+tun)
			}
			// Without the device the host's network is what there is.
			asUser(t, program, uid, "^TestHostSys$", testTUN+"=/dev/null/none", testGroup+"="+ownedGroup(t, uid))
		})
	}
}

// asUser runs tests of this program as another user.
func asUser(t *testing.T, program string, uid int, tests string, env ...string) {
	t.Helper()
	cmd := exec.Command(program, "-test.run="+tests, "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	t.Logf("%d tests passed, %d skipped", strings.Count(string(out), "--- PASS"), strings.Count(string(out), "--- SKIP"))
}

// userWithRange finds a user to whom /etc/subuid and /etc/subgid give ids.
func userWithRange() (int, bool) {
	groups := "\n" + hostfile.Small("/etc/subgid")
	for line := range strings.Lines(hostfile.Small("/etc/subuid")) {
		name, _, _ := strings.Cut(line, ":")
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err == nil && uid != 0 && strings.Contains(groups, "\n"+name+":") {
			return uid, true
		}
	}
	return 0, false
}

// readableTUN makes a TUN device that every user can open, as most systems have
// it. Without one the users have none either.
func readableTUN(t *testing.T) string {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(tunPath, &st); err != nil {
		return tunPath
	}
	dir := stateDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tun")
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(st.Rdev)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
