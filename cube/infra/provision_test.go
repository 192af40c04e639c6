package infra

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

func TestResourceVectors(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "cube/resource.json"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, item := range vectors.Get(v.(*value.Object), "cases").(value.List) {
		c := item.(*value.Object)
		switch vectors.Str(c, "op") {
		case "provision_store_filename":
			s := newProvisionStore("")
			if got := s.fileName(vectors.Str(c, "key")); got != vectors.Str(c, "filename") {
				t.Errorf("file %q, want %q", got, vectors.Str(c, "filename"))
			}
			if got := s.tempName(vectors.Str(c, "key")); got != vectors.Str(c, "temp_filename") {
				t.Errorf("temporary file %q, want %q", got, vectors.Str(c, "temp_filename"))
			}
		case "docker_run_script":
			a := vectors.Get(c, "args").(*value.Object)
			cfg := &ContainerConfig{
				Image:    vectors.Str(a, "image"),
				RAMGB:    float64(vectors.Get(a, "ram_gb").(value.Float)),
				CPUCores: float64(vectors.Get(a, "cpu_cores").(value.Float)),
			}
			if got := dockerRunScript(vectors.Str(a, "container_name"), cfg); got != vectors.Str(c, "script") {
				t.Errorf("script\n%s\nwant\n%s", got, vectors.Str(c, "script"))
			}
		default:
			continue // of package cube, which tests it
		}
		ran++
	}
	if ran == 0 {
		t.Error("no case")
	}
}

func TestProvisionStore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "provisions")
	s := newProvisionStore(dir)
	if s.has("a@local") {
		t.Error("an empty store has something")
	}
	if err := s.put("a/b@local", typed.Pairs("k", 1)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a_b@local.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != "{\n  \"k\": 1\n}" {
		t.Errorf("file %s", data)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad@local.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s.has("bad@local") {
		t.Error("what cannot be read is there")
	}
}
