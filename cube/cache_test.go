package cube_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// installed is a benchmark that installs execution infos.
type installed struct {
	cube.BenchmarkConfigBase
}

func (*installed) TypeName() string { return "test_cube.Installed" }

type installedTask struct {
	cube.TaskConfigBase[*democube.Metadata]
}

func (*installedTask) TypeName() string { return "test_cube.InstalledTask" }

// Make shows the loaded execution info as the tool's greeting.
func (c *installedTask) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	info, err := c.LoadExecutionInfo()
	if err != nil {
		return nil, err
	}
	p := &democube.Task{Target: 1}
	p.ExecutionInfo = info
	return c.Build(ctx, rc, b, p, democube.NewToolConfig())
}

func (*installed) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "installed", Version: "1", Description: "d"},
		Tasks:      []cube.Metadata{democube.NewMetadata("group/one")},
		TaskConfig: &installedTask{},
	}
}

func (*installed) Install(_ context.Context, c *cube.Cache) error {
	return c.Store("group/one", &democube.ExecutionInfo{Problem: "solve it"})
}

func (*installed) Uninstall(_ context.Context, c *cube.Cache) error { return c.Clear() }

func TestExecutionInfo(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	reg := registry(t, cube.Options{CacheRoot: root})
	if err := reg.Add(&installed{}, &installedTask{}); err != nil {
		t.Fatal(err)
	}
	// Below a composite, too: the file has the native id.
	for _, cfg := range []cube.BenchmarkConfig{&installed{}, cube.NewComposite("all", &installed{})} {
		sel, err := reg.Select(cfg)
		if err != nil {
			t.Fatal(err)
		}
		bench, err := sel.Make(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range bench.TaskConfigs() {
			if err != nil {
				t.Fatal(err)
			}
			_, err = bench.Spawn(t.Context(), c)
			wantMessage(t, err, "No execution data for task_id='")
			if err := sel.Install(t.Context()); err != nil {
				t.Fatal(err)
			}
			task, err := bench.Spawn(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			info := task.Problem().(*democube.Task).ExecutionInfo.(*democube.ExecutionInfo)
			equal(t, "problem", info.Problem, "solve it")
			if err := task.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := sel.Uninstall(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := bench.Spawn(t.Context(), c); err == nil {
				t.Error("uninstalled and still there")
			}
		}
	}
}

func TestTaskIDsStayBelowTheCache(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "secret.json"), []byte(`{"_type":"cube.task.TaskExecutionInfo"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "bench-a", "tasks_execution_info")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "secret.json"), filepath.Join(dir, "link.json")); err != nil {
		t.Skipf("no symlinks here: %v", err)
	}
	reg := registry(t, cube.Options{CacheRoot: root})
	for _, id := range []string{"../../secret", "/" + root + "/secret", "a/../../../secret", "link", "", "a\x00b", `..\..\secret`} {
		cfg, err := cube.FromValue[*democube.TaskConfig](reg, cube.Pairs("metadata", cube.Pairs("id", id)))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := cfg.LoadExecutionInfo(); err == nil {
			t.Errorf("%q leads to %v", id, info)
		}
	}
}

func TestLoadExecutionInfoNeedsARegistry(t *testing.T) {
	t.Parallel()
	cfg := &democube.TaskConfig{}
	cfg.Metadata = democube.NewMetadata("t")
	_, err := cfg.LoadExecutionInfo()
	wantMessage(t, err, "no registry")
}

func TestSecondOwnerOfATaskConfig(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{CacheRoot: "/c"})
	err := reg.Add(&thief{})
	wantMessage(t, err, "DemoTaskConfig is already owned by benchmark at /c/bench-a; cannot reassign to /c/thief. Each BenchmarkConfig must declare its own TaskConfig subclass.")
}

// thief uses the task config of another benchmark.
type thief struct{ cube.BenchmarkConfigBase }

func (*thief) TypeName() string { return "test_cube.Thief" }

func (*thief) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "thief"},
		Tasks:      []cube.Metadata{democube.NewMetadata("t")},
		TaskConfig: &democube.TaskConfig{},
	}
}

// incomplete is a benchmark that lacks what is not set.
type incomplete struct {
	cube.BenchmarkConfigBase
	def cube.Definition
}

func (*incomplete) TypeName() string              { return "test_cube.Incomplete" }
func (i *incomplete) Definition() cube.Definition { return i.def }

func TestIncompleteDefinitions(t *testing.T) {
	t.Parallel()
	meta := &cube.BenchmarkMetadata{Name: "b"}
	task := []cube.Metadata{democube.NewMetadata("t")}
	for want, def := range map[string]cube.Definition{
		"Concrete benchmark config class Incomplete must define 'benchmark_metadata' as a ClassVar":                               {},
		"Incomplete must declare 'task_metadata' as a ClassVar, declare it as a @property, or ship 'task_metadata.json' / '.csv'": {Metadata: meta},
		"must define 'task_config_class' as a ClassVar subclass of TaskConfig, not None.":                                         {Metadata: meta, Tasks: task},
		"task id 't' of Incomplete is there twice":                                                                                {Metadata: meta, Tasks: append(task, task...)},
		"*cube_test.installedTask is not registered":                                                                              {Metadata: meta, Tasks: task, TaskConfig: &installedTask{}},
		"*cube_test.noTypeName is not registered: add it":                                                                         {Metadata: meta, Tasks: []cube.Metadata{&noTypeName{cube.TaskMetadata{ID: "x"}}}},
	} {
		wantMessage(t, registry(t, cube.Options{}).Add(&incomplete{def: def}), want)
	}
}
