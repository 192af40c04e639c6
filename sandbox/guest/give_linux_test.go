package guest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

// somebody is a user and group id that nobody has.
const somebody = 54321

func TestOwnGivesAllBelowADirectory(t *testing.T) {
	need.Root(t)
	sb := serve(t, bare{init: true})
	outside, dir := t.TempDir(), t.TempDir()
	kept := filepath.Join(outside, "kept")
	in := filepath.Join(dir, "a", "closed")
	for _, err := range []error{
		os.WriteFile(kept, nil, 0o600),
		os.MkdirAll(in, 0o700),
		os.WriteFile(filepath.Join(in, "file"), nil, 0o600),
		os.WriteFile(filepath.Join(in, "shell"), nil, 0o700),
		os.Chmod(filepath.Join(in, "shell"), 0o700|fs.ModeSetuid),
		os.Symlink(kept, filepath.Join(in, "link")),
		os.Symlink(outside, filepath.Join(dir, "linked")),
		syscall.Mkfifo(filepath.Join(in, "pipe"), 0o600),
		os.Chmod(in, 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := sb.Own(t.Context(), dir, somebody, somebody+1); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		seen++
		if st := info.Sys().(*syscall.Stat_t); st.Uid != somebody || st.Gid != somebody+1 || info.Mode()&fs.ModeSetuid != 0 {
			t.Errorf("%s belongs to %d:%d, %v", path, st.Uid, st.Gid, info.Mode())
		}
		return nil
	})
	if err != nil || seen != 8 {
		t.Errorf("%d files, %v", seen, err)
	}
	for _, path := range []string{outside, kept} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 {
			t.Errorf("%s, to which a link leads, belongs to %d", path, st.Uid)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "", kept + "/below": "",
		"relative": "absolute", filepath.Join(dir, "linked"): "not a directory", kept: "not a directory",
	} {
		err := sb.Own(t.Context(), path, somebody, somebody)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}
