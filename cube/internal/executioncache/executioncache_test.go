package executioncache_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube/internal/executioncache"
	"github.com/proctor-run/proctor/exception"
)

func TestWrittenIsRead(t *testing.T) {
	t.Parallel()
	dir := executioncache.Dir(filepath.Join(t.TempDir(), executioncache.DirName))
	if dir.Has("group/one") {
		t.Error("there before it was written")
	}
	if err := dir.Write("group/one", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"group/one", "composite/group/one"} {
		if data, err := dir.Read(id, "group/one"); err != nil || string(data) != `{"a":1}` {
			t.Errorf("%s: read %q, %v", id, data, err)
		}
	}
	if err := dir.Clear(); err != nil {
		t.Fatal(err)
	}
	_, err := dir.Read("composite/group/one", "group/one")
	if exception.TypeOf(err) != exception.RuntimeError || !strings.Contains(err.Error(), dir.Path("composite/group/one")) {
		t.Errorf("read what is gone: %v", err)
	}
}

func TestIDsThatLeadOut(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := executioncache.Dir(filepath.Join(root, "infos"))
	if err := errors.Join(os.Mkdir(string(dir), 0o755), os.WriteFile(filepath.Join(root, "secret.json"), []byte("{}"), 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"", "../secret", "a/../../secret", "a/../b", root + "/secret", `..\secret`, "a\x00"} {
		if err := dir.Write(id, nil); exception.TypeOf(err) != exception.ValueError {
			t.Errorf("%q: written, %v", id, err)
		}
		if _, err := dir.Read(id, id); exception.TypeOf(err) != exception.ValueError {
			t.Errorf("%q: read, %v", id, err)
		}
		if dir.Has(id) {
			t.Errorf("%q is there", id)
		}
	}
	if err := os.Symlink(filepath.Join(root, "secret.json"), filepath.Join(string(dir), "link.json")); err != nil {
		t.Skipf("no symlinks here: %v", err)
	}
	if data, err := dir.Read("link", "link"); err == nil {
		t.Errorf("a link out of the directory is read: %q", data)
	}
}

func TestNoDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	var none executioncache.Dir
	_, readErr := none.Read("a", "a")
	for _, err := range []error{readErr, none.Write("a", nil), none.Clear()} {
		if !errors.Is(err, executioncache.ErrNone) {
			t.Errorf("got %v", err)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 || none.Has("a") {
		t.Errorf("in the working directory: %v, %v", left, err)
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	for text, fits := range map[string]bool{`{"a":1}`: true, `[1]`: false, `{`: false} {
		if _, err := executioncache.Object("one", []byte(text)); (err == nil) != fits {
			t.Errorf("%s: %v", text, err)
		}
	}
}
