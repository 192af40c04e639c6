//go:build unix

package environment_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/environment"
)

// armed is a directory in which a sandbox left all that gives rights or makes wait.
func armed(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "d") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	in := filepath.Join(dir, "agent", "deep")
	must(t, os.MkdirAll(in, 0o755))
	for name, mode := range map[string]fs.FileMode{
		"plain": 0o644, "shell": 0o755 | fs.ModeSetuid | fs.ModeSetgid, "open": 0o666, "sticky": 0o644 | fs.ModeSticky,
	} {
		must(t, os.WriteFile(filepath.Join(in, name), []byte(name), 0o600))
		must(t, os.Chmod(filepath.Join(in, name), mode))
	}
	must(t, syscall.Mkfifo(filepath.Join(in, "pipe"), 0o666))
	l, err := net.Listen("unix", filepath.Join(in, "socket")) //nolint:noctx // it only makes the socket
	must(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
	must(t, os.Symlink("/etc/shadow", filepath.Join(in, "link")))
	must(t, os.Chmod(in, 0o777|fs.ModeSetgid))
	must(t, os.Chmod(filepath.Join(dir, "agent"), 0o777))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDisarm(t *testing.T) {
	t.Parallel()
	dir := armed(t)
	done := environment.Disarm(dir)
	if done.Left.Total != 0 || done.Removed.Total != 2 || done.Changed.Total != 1 {
		t.Errorf("disarmed %+v", done)
	}
	for _, want := range []string{`"agent/deep/pipe" (a named pipe)`, `"agent/deep/socket" (a socket)`} {
		if !strings.Contains(done.Removed.String(), want) {
			t.Errorf("removed %v, want %s in it", done.Removed, want)
		}
	}
	want := map[string]fs.FileMode{
		"agent": fs.ModeDir | 0o755, "agent/deep": fs.ModeDir | 0o755, "agent/deep/plain": 0o644, "agent/deep/shell": 0o755,
		"agent/deep/open": 0o644, "agent/deep/sticky": 0o644, "agent/deep/link": fs.ModeSymlink | 0o777,
	}
	checkTree(t, dir, want)
	if again := environment.Disarm(dir); again.Removed.Total+again.Changed.Total+again.Left.Total != 0 {
		t.Errorf("a second time there was something left to do: %+v", again)
	}
}

func checkTree(t *testing.T, dir string, want map[string]fs.FileMode) {
	t.Helper()
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if mode, ok := want[name]; !ok || info.Mode() != mode {
			t.Errorf("%s is %v, want %v", name, info.Mode(), mode)
		}
		delete(want, name)
		return nil
	}))
	for name := range want {
		t.Errorf("%s is gone", name)
	}
}

// TestDisarmOwnsAsRoot: what belonged to a user of the sandbox, whose number somebody
// else may have on this machine, belongs to proctor afterwards.
func TestDisarmOwnsAsRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := armed(t)
	for _, name := range []string{"agent", "agent/deep", "agent/deep/plain", "agent/deep/shell", "agent/deep/link"} {
		must(t, os.Lchown(filepath.Join(dir, name), 12345, 12345))
	}
	must(t, os.Chmod(filepath.Join(dir, "agent/deep/shell"), 0o755|fs.ModeSetuid))
	must(t, syscall.Mknod(filepath.Join(dir, "agent/disk"), syscall.S_IFBLK|0o666, 7<<8))
	capability := []byte{1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}
	able := filepath.Join(dir, "agent/able")
	must(t, os.WriteFile(able, nil, 0o755))
	setCapability(t, able, capability)
	if done := environment.Disarm(dir); done.Left.Total != 0 || !strings.Contains(done.Removed.String(), `"agent/disk" (a device)`) {
		t.Errorf("disarmed %+v", done)
	}
	if hasCapability(able) {
		t.Error("a file keeps its capabilities")
	}
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s belongs to user %d", path, info.Sys().(*syscall.Stat_t).Uid)
		}
		return err
	}))
}

func TestDisarmSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	if done := environment.Disarm(filepath.Join(t.TempDir(), "none")); done.Left.Total != 1 {
		t.Errorf("disarmed %+v", done)
	}
	dir := t.TempDir()
	deep, err := os.OpenRoot(dir)
	must(t, err)
	for range 600 {
		must(t, deep.Mkdir("d", 0o777))
		next, err := deep.OpenRoot("d")
		must(t, err)
		_ = deep.Close()
		deep = next
	}
	_ = deep.Close()
	if done := environment.Disarm(dir); done.Left.Total != 1 || !strings.Contains(done.Left.String(), "too deeply") || len(done.Left.Lines) != 1 {
		t.Errorf("disarmed %+v", done)
	}
}
