package harborcube_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
	harborcube "github.com/proctor-run/proctor/cube/cubes/harbor"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func taskIDs(t *testing.T, reg *cube.Registry, cfg cube.BenchmarkConfig) (ids, paths []string) {
	t.Helper()
	sel, err := reg.Select(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for c, err := range sel.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.TaskID())
		paths = append(paths, filepath.Dir(c.TaskMetadata().(*harborcube.Metadata).Path))
	}
	return ids, paths
}

// TestTwoDirectories: each directory is a benchmark of its own, also where the
// tasks have the same names.
func TestTwoDirectories(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	reg := cube.NewRegistry(cube.Options{Sandbox: backend})
	first, second := filepath.Dir(cubeDir(t, "")), filepath.Dir(cubeDir(t, ""))
	var configs []*harborcube.Config
	for i, dir := range []string{first, second} {
		cfg, err := harborcube.Register(reg, harborcube.Options{Path: dir, Name: []string{"one", "two"}[i], Oracle: i == 1})
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, cfg)
	}
	for i, dir := range []string{first, second} {
		if ids, paths := taskIDs(t, reg, configs[i]); !slices.Equal(ids, []string{"a-task"}) || !slices.Equal(paths, []string{dir}) {
			t.Errorf("benchmark %d: tasks %q in %q, want those of %q", i, ids, paths, dir)
		}
	}
	both := cube.NewComposite("both", configs[0], configs[1])
	data, err := cube.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := cube.NewRegistry(cube.Options{Sandbox: backend})
	if _, err := harborcube.Register(elsewhere, harborcube.Options{}); err != nil {
		t.Fatal(err)
	}
	read, err := cube.Load[cube.BenchmarkConfig](elsewhere, data)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		reg *cube.Registry
		cfg cube.BenchmarkConfig
	}{"here": {reg, both}, "elsewhere": {elsewhere, read}} {
		if ids, paths := taskIDs(t, c.reg, c.cfg); !slices.Equal(ids, []string{"one/a-task", "two/a-task"}) || !slices.Equal(paths, []string{first, second}) {
			t.Errorf("%s: the composite has %q in %q", name, ids, paths)
		}
		sel, err := c.reg.Select(c.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for tc, err := range sel.TaskConfigs() {
			if err != nil {
				t.Fatal(err)
			}
			if own := tc.(*harborcube.TaskConfig); own.OracleMode != strings.HasPrefix(own.TaskID(), "two/") {
				t.Errorf("%s: oracle mode of %s is %v", name, own.TaskID(), own.OracleMode)
			}
		}
	}
}

// TestEpisodeOfAComposite: tasks of both directories are made and scored.
func TestEpisodeOfAComposite(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1"))}})
	defer fake.Verify(t, backend)
	reg := cube.NewRegistry(cube.Options{Sandbox: backend})
	var configs []cube.BenchmarkConfig
	for _, name := range []string{"one", "two"} {
		cfg, err := harborcube.Register(reg, harborcube.Options{Path: filepath.Dir(cubeDir(t, "")), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		cfg.ContainerBackend = cube.NewLocalContainerBackend(backend)
		configs = append(configs, cfg)
	}
	bench, err := reg.Make(t.Context(), cube.NewComposite("both", configs...), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bench.Close(t.Context()) }()
	n := 0
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		task, err := bench.Spawn(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := task.Reset(t.Context()); err != nil {
			t.Error(err)
		}
		if score, _, err := task.Evaluate(t.Context(), nil); err != nil || score != 1 {
			t.Errorf("score %v, %v", score, err)
		}
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
		n++
	}
	if n != 2 || backend.Live() != 0 {
		t.Errorf("%d tasks, %d sandboxes are left", n, backend.Live())
	}
}
