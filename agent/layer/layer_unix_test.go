//go:build unix

package layer_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestHostilePrefix: of what an image put into the prefix nothing leads out of the layer on
// this machine, nothing is a device or a pipe, has a set-uid bit or can be written to by
// others, and what is private there can be read by whoever the agent works as.
func TestHostilePrefix(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.in.Install = func(_ context.Context, env agent.Env) (string, error) {
		sb, _ := env.Sandbox.(*fake.Sandbox)
		for name, mode := range map[string]fs.FileMode{"bin/suid": 0o755, "bin/shared": 0o777, "bin/private": 0o700, "secret": 0o600} {
			if err := sb.WriteFile(prefix+"/"+name, []byte("x"), mode); err != nil {
				return "", err
			}
		}
		top := sb.Path(prefix)
		for _, err := range []error{
			os.Chmod(filepath.Join(top, "bin/suid"), 0o755|fs.ModeSetuid|fs.ModeSetgid),
			os.Chmod(filepath.Join(top, "bin/shared"), 0o777),
			os.Chmod(filepath.Join(top, "bin"), 0o777|fs.ModeSticky),
			syscall.Mkfifo(filepath.Join(top, "pipe"), 0o666),
			os.Symlink("/etc", filepath.Join(top, "etc")),
			os.Symlink("../../../../etc/passwd", filepath.Join(top, "bin/up")),
			os.Symlink("private", filepath.Join(top, "bin/inside")),
			os.Symlink("loop", filepath.Join(top, "loop")),
		} {
			if err != nil {
				return "", err
			}
		}
		return "1", nil
	}
	l := w.build(t, debian)
	want := map[string]fs.FileMode{
		".": fs.ModeDir | 0o755, "bin": fs.ModeDir | 0o755, "bin/suid": 0o755, "bin/shared": 0o755, "bin/private": 0o755, "secret": 0o644,
		"bin/inside": fs.ModeSymlink, "loop": fs.ModeSymlink,
	}
	err := filepath.WalkDir(l.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(l.Dir, path)
		mode := info.Mode()
		if mode&fs.ModeSymlink != 0 {
			mode = fs.ModeSymlink
		}
		if w, there := want[name]; !there || mode != w {
			t.Errorf("%s is %v, want %v", name, mode, w)
		}
		delete(want, name)
		return err
	})
	if err != nil || len(want) > 0 {
		t.Errorf("%v; missing %v", err, want)
	}
}
