package sandboxes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func TestInner(t *testing.T) {
	t.Parallel()
	if code, inner := Inner([]string{"program", "run"}); inner {
		t.Errorf("an ordinary command line ran a helper, which returned %d", code)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir()})
	dir := t.TempDir()
	spec := sandbox.Spec{Name: "one", Image: sandbox.Image{Build: &sandbox.Build{ContextDir: dir}}}
	if err := Check(t.Context(), b, spec); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a Dockerfile: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM debian:12\nWORKDIR /app\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), b, spec); err != nil {
		t.Errorf("with a Dockerfile: %v", err)
	}
	spec.Compose = &sandbox.Compose{Project: "p", Dir: dir}
	if err := Check(t.Context(), b, spec); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("a compose project on a backend without: %v", err)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	b, done, err := Open(t.Context(), t.TempDir())
	if errors.Is(err, sandbox.ErrUnavailable) {
		t.Skip("no backend works on this machine: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if name := b.Name(); name != sandbox.BackendDocker && name != sandbox.BackendSandbox {
		t.Errorf("opened %q", name)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

func TestStreamMemory(t *testing.T) {
	t.Parallel()
	if StreamMemory() <= 0 {
		t.Error("connections need memory")
	}
}
