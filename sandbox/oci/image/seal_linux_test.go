package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/proctor-run/proctor/internal/need"
)

// bootsIn lists which boots the layers of a store say they are of.
func bootsIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "layers", "*", "*", layerFile))
	if err != nil || len(files) == 0 {
		t.Fatalf("layers %v (%v), want some", files, err)
	}
	var boots []string
	for _, f := range files {
		var info layerInfo
		if ok, err := readJSON(f, &info); !ok || err != nil {
			t.Fatalf("%s cannot be read: %v", f, err)
		}
		if info.Boot != "" {
			boots = append(boots, info.Boot)
		}
	}
	return boots
}

// TestSeal: layers are of this boot alone until they were written out, which
// Close waits for.
func TestSeal(t *testing.T) {
	t.Parallel()
	need.That(t, "linux", bootID() != "", "needs a boot id")
	ref := "oci:" + writeLayout(t, map[string]v1.Image{"x": sample(t)})
	dir := t.TempDir()
	s := openStore(t, dir, Options{})
	mustPull(t, s, ref)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if boots := bootsIn(t, dir); len(boots) != 0 {
		t.Errorf("after Close some layers are of the boots %q, want all sealed", boots)
	}
}

// TestMachineStopped: a layer that another boot did not seal is made anew, and
// one of this boot that a killed process left unsealed is used and sealed.
func TestMachineStopped(t *testing.T) {
	t.Parallel()
	need.That(t, "linux", bootID() != "", "needs a boot id")
	ref := "oci:" + writeLayout(t, map[string]v1.Image{"x": sample(t)})
	for name, c := range map[string]struct {
		boot string
		kept bool
	}{"another boot": {"another", false}, "this boot": {bootID(), true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			before := openStore(t, dir, Options{})
			layer := mustPull(t, before, ref).Layers[0]
			if err := before.Close(); err != nil {
				t.Fatal(err)
			}
			mark := filepath.Join(filepath.Dir(layer.Dir), "mark")
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			unseal(t, filepath.Join(filepath.Dir(layer.Dir), layerFile), c.boot)
			s := openStore(t, dir, Options{})
			checkSample(t, mustPull(t, s, ref))
			if _, err := os.Stat(mark); (err == nil) != c.kept {
				t.Errorf("what was beside the unsealed layer: %v, want it kept: %v", err, c.kept)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if boots := bootsIn(t, dir); len(boots) != 0 {
				t.Errorf("layers are of the boots %q, want all sealed", boots)
			}
		})
	}
}

func unseal(t *testing.T, path, boot string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "{", `{"boot":"`+boot+`",`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
