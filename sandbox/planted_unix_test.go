//go:build unix

package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestUploadOfNoFile: what is no file on the host is not waited for, and a file that no
// sandbox has room for is not sent.
func TestUploadOfNoFile(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			sb, err := fake.New(fake.Config{Dir: t.TempDir()}).Create(t.Context(), sandbox.Spec{Name: "s"})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "f")
			kind.Put(t, file)
			if err := sandbox.UploadFile(t.Context(), sb, file, "/f"); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("UploadFile: %v", err)
			}
			err = sandbox.UploadDir(t.Context(), sb, dir, "/d")
			if want := kind == planted.Sparse; (err != nil) != want || want && !strings.Contains(err.Error(), file) {
				t.Errorf("UploadDir: %v", err)
			}
			if kind == planted.Endless { // a link, which is kept as one
				return
			}
			if err := sandbox.UploadDir(t.Context(), sb, dir, "/e", "f"); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("UploadDir of what is to be executed: %v", err)
			}
		})
	}
}
