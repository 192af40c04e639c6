package harborcube_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// made is a task in a sandbox of the fake backend.
func made(t *testing.T, rules ...fake.Rule) (*cube.Task, *fake.Backend) {
	t.Helper()
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: rules})
	t.Cleanup(func() { fake.Verify(t, backend) })
	cfg, err := harborcube.NewTaskConfig(cubeDir(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	task, err := cfg.Make(t.Context(), cube.RuntimeContext{}, cube.NewLocalContainerBackend(backend))
	if err != nil {
		t.Fatal(err)
	}
	return task, backend
}

// TestAfterClose: a closed task does nothing any more, and nothing is left of
// it.
func TestAfterClose(t *testing.T) {
	t.Parallel()
	for _, used := range []bool{false, true} {
		task, backend := made(t, fake.On("(/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1")))
		if used {
			if _, _, err := task.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, _, err := task.Evaluate(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := task.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, do := range map[string]func() error{
			"reset":    func() error { _, _, err := task.Reset(t.Context()); return err },
			"evaluate": func() error { _, _, err := task.Evaluate(t.Context(), nil); return err },
			"problem's reset": func() error {
				_, _, err := task.Problem().Reset(t.Context())
				return err
			},
		} {
			if err := do(); err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("used %v, %s after Close: got %v, want that it is closed", used, name, err)
			}
		}
		if _, err := task.Container().Exec(t.Context(), cube.ExecRequest{Command: "true"}); !errors.Is(err, environment.ErrClosed) {
			t.Errorf("a command after Close: %v", err)
		}
		if n := backend.Live(); n != 0 || backend.Count(fake.OpCreate) != 1 {
			t.Errorf("%d sandboxes are left of %d", n, backend.Count(fake.OpCreate))
		}
		if err := task.Close(t.Context()); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

// TestInfoFollowsNoLinks: what a sandbox leaves in place of the tests' output
// is not followed to files of the host.
func TestInfoFollowsNoLinks(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("1 passed, and a secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	task, _ := made(t, fake.On("(/tests/test.sh", func(_ context.Context, p *fake.Process) (int, error) {
		dir := p.Sandbox.Spec().Mounts[0].Source
		path := filepath.Join(dir, "test-stdout.txt")
		return 0, errors.Join(os.Remove(path), os.Symlink(secret, path), os.WriteFile(filepath.Join(dir, "reward.txt"), []byte("1"), 0o644))
	}))
	defer func() { _ = task.Close(t.Context()) }()
	if _, _, err := task.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	score, info, err := task.Evaluate(t.Context(), nil)
	if err != nil || score != 1 {
		t.Fatalf("score %v, %v", score, err)
	}
	if text := string(value.AppendPydantic(nil, info, 0)); strings.Contains(text, "secret") || !strings.Contains(text, `"total":0`) {
		t.Errorf("info %s", text)
	}
}
