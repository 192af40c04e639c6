package harbor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/vectors"
)

func TestChecksumVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Cases []struct {
			Name    string
			Entries []treeEntry
			SHA256  string
		}
		Errors []struct {
			Name      string
			Entries   []treeEntry
			ErrorType string `json:"error_type"`
			Message   string
		}
	}
	vector(t, "tasks/task-checksum.json", &file)
	for _, tt := range file.Cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(realTempDir(t), "task")
			grow(t, dir, tt.Entries)
			got, err := harbor.Checksum(dir)
			if err != nil || got != tt.SHA256 {
				t.Errorf("got %s, %v; want %s", got, err, tt.SHA256)
			}
		})
	}
	for _, tt := range file.Errors {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			tmp := realTempDir(t)
			grow(t, filepath.Join(tmp, "task"), tt.Entries)
			got, err := harbor.Checksum(filepath.Join(tmp, "task"))
			assertRaised(t, err, tt.ErrorType, strings.ReplaceAll(tt.Message, "<tmp>", tmp))
			if got != "" {
				t.Errorf("a checksum %q with the error", got)
			}
		})
	}
	t.Logf("%d trees, %d errors", len(file.Cases), len(file.Errors))
}

// assertRaised checks the exception's name and text.
func assertRaised(t testing.TB, err error, typ, message string) {
	t.Helper()
	raised, ok := errors.AsType[interface {
		error
		ErrorType() string
	}](err)
	if !ok || raised.ErrorType() != typ || raised.Error() != message {
		t.Errorf("got  %T %v\nwant %s: %s", raised, err, typ, message)
	}
}

func TestPackageHashVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name        string
		Files       map[string]content
		Included    []string
		ContentHash string `json:"content_hash"`
	}
	vector(t, "tasks/package-hash.json", &cases)
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plant(t, dir, tt.Files)
			checkPackage(t, dir, tt.Included, tt.ContentHash)
		})
	}
	t.Logf("%d cases", len(cases))
}

func checkPackage(t *testing.T, dir string, included []string, hash string) {
	t.Helper()
	digest, files, err := harbor.PackageHash(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(included, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if digest != "sha256:"+hash {
		t.Errorf("digest %s, want sha256:%s", digest, hash)
	}
}

func TestDigestVectors(t *testing.T) {
	t.Parallel()
	names := vectors.Dir(t, "harbor-jobs/digest", "*.json")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tt struct {
				Input struct {
					Files     map[string]content
					EmptyDirs []string `json:"empty_dirs"`
				}
				Expected struct {
					ContentHash  string   `json:"content_hash"`
					HashedFiles  []string `json:"hashed_files"`
					TaskChecksum string   `json:"task_checksum"`
				}
			}
			vector(t, "harbor-jobs/digest/"+name, &tt)
			dir := t.TempDir()
			plant(t, dir, tt.Input.Files)
			for _, empty := range tt.Input.EmptyDirs {
				mkdir(t, filepath.Join(dir, empty))
			}
			checkPackage(t, dir, tt.Expected.HashedFiles, tt.Expected.ContentHash)
			if sum, err := harbor.Checksum(dir); err != nil || sum != tt.Expected.TaskChecksum {
				t.Errorf("checksum %s, %v; want %s", sum, err, tt.Expected.TaskChecksum)
			}
		})
	}
	t.Logf("%d cases", len(names))
}

// Directories that link to each other in a lattice have exponentially many
// paths but few contents.
func TestChecksumOfALatticeOfLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const depth = 40
	for i := range depth {
		level := filepath.Join(dir, fmt.Sprintf("level%d", i))
		write(t, filepath.Join(level, "f"), nil, 0o644)
		if i == 0 {
			continue
		}
		for _, link := range []string{"a", "b"} {
			if err := os.Symlink(fmt.Sprintf("../level%d", i-1), filepath.Join(level, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := harbor.Checksum(dir); err != nil {
		t.Fatal(err)
	}
}

func TestChecksumOfOddEntries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), nil, 0o644)
	want, err := harbor.Checksum(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("self", filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	if _, err := harbor.Checksum(dir); err == nil {
		t.Error("a link to itself is no error")
	}
	if err := os.Remove(filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	if got, err := harbor.Checksum(dir + "/./"); err != nil || got != want {
		t.Errorf("spelled otherwise: %s, %v; want %s", got, err, want)
	}
	bad := filepath.Join(dir, "bad\xff")
	if err := os.WriteFile(bad, nil, 0o644); err != nil {
		t.Skipf("this file system has no names that are not UTF-8: %v", err)
	}
	if _, err := harbor.Checksum(dir); err == nil || !strings.Contains(err.Error(), "surrogates not allowed") {
		t.Errorf("a name that is not UTF-8: %v", err)
	}
}

func BenchmarkChecksum(b *testing.B) {
	dir := b.TempDir()
	const files = 1000
	data := make([]byte, 64<<10)
	for i := range files {
		write(b, filepath.Join(dir, fmt.Sprintf("d%d", i%20), fmt.Sprintf("f%d", i)), data, 0o644)
	}
	b.SetBytes(files * int64(len(data)))
	for b.Loop() {
		if _, err := harbor.Checksum(dir); err != nil {
			b.Fatal(err)
		}
	}
}
