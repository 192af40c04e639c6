//go:build unix

package dataset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/planted"
	"github.com/proctor-run/proctor/jobdir"
)

// TestPlanted replaces files of a registry, a dataset and a package by what is none.
func TestPlanted(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		t.Run("registry/"+string(kind), func(t *testing.T) {
			t.Parallel()
			if kind == planted.Pipe {
				t.Skip("that is for its writer")
			}
			file := filepath.Join(t.TempDir(), "registry.json")
			kind.Put(t, file)
			if _, err := dataset.ReadRegistry(t.Context(), &file, nil, dataset.FetchOptions{}); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("manifest/"+string(kind), func(t *testing.T) {
			t.Parallel()
			home, hash := t.TempDir(), strings.Repeat("0", 64)
			kind.Put(t, filepath.Join(home, ".cache", "harbor", "datasets", "o", "s", hash, "dataset.toml"))
			cfg, ref := sourcesConfig(t, t.TempDir()), "sha256:"+hash
			name := "o/s"
			cfg.Datasets = []jobdir.DatasetConfig{{Name: &name, Ref: &ref}}
			if _, err := dataset.Fetch(t.Context(), cfg, fetchOptions(home)); err == nil || !strings.Contains(err.Error(), hash) {
				t.Errorf("got %v", err)
			}
		})
		t.Run("package/"+string(kind), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			dir, err := fetchPackage(t, home, func(dir string) { kind.Put(t, filepath.Join(dir, "instruction.md")) })
			if err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestPackageThatLeadsOut: a package has what its link leads to neither hashed nor
// shown to anybody.
func TestPackageThatLeadsOut(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	secret := filepath.Join(home, "secret")
	planted.Files(t, home, map[string]string{"secret": "key"})
	dir, err := fetchPackage(t, home, func(dir string) {
		if err := os.Symlink(secret, filepath.Join(dir, "environment", "data")); err != nil {
			t.Fatal(err)
		}
	})
	if err == nil || !strings.Contains(err.Error(), bounded.ErrLeadsOut.Error()) || !strings.Contains(err.Error(), filepath.Join(dir, "environment", "data")) {
		t.Errorf("got %v", err)
	}
}

// fetchPackage fetches a package that was changed in the cache.
func fetchPackage(t *testing.T, home string, change func(dir string)) (dir string, err error) {
	t.Helper()
	name := "o/p"
	digest := cachePackage(t, home, name, "Do it.")
	dir = filepath.Join(home, ".cache", "harbor", "tasks", filepath.FromSlash(harbor.PackageCachePath("o", "p", digest)))
	if err := os.MkdirAll(filepath.Join(dir, "environment"), 0o755); err != nil {
		t.Fatal(err)
	}
	change(dir)
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{{Name: &name, Ref: &digest}}
	_, err = dataset.Fetch(t.Context(), cfg, fetchOptions(home))
	return dir, err
}
