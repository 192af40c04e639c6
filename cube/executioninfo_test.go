package cube_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// plainTask is a task config that types the plain object itself, as cubes of the
// reference do.
type plainTask struct {
	cube.TaskConfigBase[*democube.Metadata]
}

func (*plainTask) TypeName() string { return "test_cube.PlainTask" }

func (c *plainTask) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	info, err := cube.LoadExecutionInfoAs[*democube.ExecutionInfo](c)
	if err != nil {
		return nil, err
	}
	p := &democube.Task{Target: 1}
	p.ExecutionInfo = info
	return c.Build(ctx, rc, b, p, democube.NewToolConfig())
}

type plainConfig struct{ cube.BenchmarkConfigBase }

func (*plainConfig) TypeName() string { return "test_cube.PlainConfig" }

func (*plainConfig) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "plain", Version: "1", Description: "d"},
		Tasks:      []cube.Metadata{democube.NewMetadata("one")},
		TaskConfig: &plainTask{},
	}
}

func (*plainConfig) Install(_ context.Context, c *cube.Cache) error {
	return c.StoreObject("one", cube.Pairs("problem", "solve it", "base_commit", "ignored"))
}

func (*plainConfig) Uninstall(_ context.Context, c *cube.Cache) error { return c.Clear() }

func plainRegistry(t *testing.T, root string) *cube.Registry {
	t.Helper()
	reg := registry(t, cube.Options{CacheRoot: root})
	if err := reg.Add(&plainTask{}, &plainConfig{}); err != nil {
		t.Fatal(err)
	}
	return reg
}

// plainOf returns the config of the task "one", with what is installed for it.
func plainOf(t *testing.T, installed string) *plainTask {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "plain", "tasks_execution_info")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "one.json"), []byte(installed), 0o644)); err != nil {
		t.Fatal(err)
	}
	cfg, err := cube.FromValue[*plainTask](plainRegistry(t, root), cube.Pairs("metadata", cube.Pairs("id", "one")))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestPlainExecutionInfoReachesTheTask(t *testing.T) {
	t.Parallel()
	reg := plainRegistry(t, t.TempDir())
	sel, err := reg.Select(&plainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := sel.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	for cfg, err := range sel.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		task, err := reg.MakeTask(t.Context(), cfg, cube.RuntimeContext{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "problem", task.Problem().(*democube.Task).ExecutionInfo.(*democube.ExecutionInfo).Problem, "solve it")
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	results, err := cubetest.Check(t.Context(), cubetest.Subject{
		Register: func(r *cube.Registry) error {
			return errors.Join(democube.Register(r, nil), r.Add(&plainTask{}, &plainConfig{}))
		},
		Config:  &plainConfig{},
		Agent:   func(cube.TaskConfig) cube.Agent { return cube.Script(cube.NewAction("count")) },
		Options: cube.Options{CacheRoot: t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Check == "install" && r.Status != cubetest.Pass {
			t.Errorf("%s: %s", r.Check, r.Reason)
		}
	}
}

func TestUntypedExecutionInfoIsNeverAnEmptyOne(t *testing.T) {
	t.Parallel()
	for _, installed := range []string{`{"problem":"solve it"}`, `{}`} {
		cfg := plainOf(t, installed)
		if info, err := cfg.LoadExecutionInfo(); err == nil {
			t.Errorf("%s is read as %+v", installed, info)
		} else {
			wantMessage(t, err, "has no _type: read it with cube.LoadExecutionInfoAs")
		}
		_, err := cube.LoadExecutionInfoAs[*cube.TaskExecutionInfo](cfg)
		wantMessage(t, err, "has no _type")
	}
}

func TestLoadExecutionInfoAs(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ installed, want string }{
		"plain":         {`{"problem":"p","tests":["a"]}`, ""},
		"own type":      {`{"_type":"demo_cube.defs.DemoExecutionInfo","problem":"p","tests":["a"]}`, ""},
		"other type":    {`{"_type":"cube.core.Action","name":"p"}`, "class must be a subclass of 'DemoExecutionInfo'"},
		"base type":     {`{"_type":"cube.task.TaskExecutionInfo"}`, "class must be a subclass of 'DemoExecutionInfo'"},
		"field missing": {`{"tests":[]}`, "problem: Field required"},
		"no object":     {`[1]`, "is not an object"},
		"no JSON":       {`{`, "reading the execution info of task 'one'"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, err := cube.LoadExecutionInfoAs[*democube.ExecutionInfo](plainOf(t, c.installed))
			if c.want != "" {
				wantMessage(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "info", marshal(t, info), `{"problem":"p","tests":["a"],"_type":"demo_cube.defs.DemoExecutionInfo"}`)
		})
	}
}

func TestRawExecutionInfo(t *testing.T) {
	t.Parallel()
	const installed = `{"cipher": "x",  "n": 1e2}`
	cfg := plainOf(t, installed)
	data, err := cube.ExecutionInfoData(cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "bytes", string(data), installed)
	obj, err := cube.ExecutionInfoObject(cfg)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "object", cube.PythonText(obj), "{'cipher': 'x', 'n': 100.0}")
}

// placedTask and placedConfig keep their data where they want.
type placedTask struct {
	plainTask
	Dir string `json:"dir" default:""`
}

func (*placedTask) TypeName() string { return "test_cube.PlacedTask" }

func (c *placedTask) ExecutionCacheDir(root string) string {
	if c.Dir == "" {
		return filepath.Join(root, "shared", "infos")
	}
	return c.Dir
}

type placedConfig struct {
	plainConfig
	InfoDir string `json:"info_dir" default:""`
}

func (*placedConfig) TypeName() string { return "test_cube.PlacedConfig" }

func (*placedConfig) CacheDir(root string) string { return filepath.Join(root, "elsewhere") }

func (c *placedConfig) ConfigureTask(cfg cube.TaskConfig) error {
	if c.InfoDir == "fail" {
		panic("on purpose")
	}
	cfg.(*placedTask).Dir = c.InfoDir
	return nil
}

func (c *placedConfig) Definition() cube.Definition {
	def := c.plainConfig.Definition()
	def.TaskConfig = &placedTask{}
	return def
}

func TestOverriddenCacheDirectories(t *testing.T) {
	t.Parallel()
	root, own := t.TempDir(), t.TempDir()
	reg := registry(t, cube.Options{CacheRoot: root})
	if err := reg.Add(&placedTask{}, &placedConfig{}); err != nil {
		t.Fatal(err)
	}
	for dir, cfg := range map[string]*placedConfig{
		filepath.Join(root, "shared", "infos"): {},
		own:                                    {InfoDir: own},
	} {
		sel, err := reg.Select(cfg)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "directory of the benchmark", sel.CacheDir(), filepath.Join(root, "elsewhere"))
		if err := sel.Install(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "one.json")); err != nil {
			t.Error(err)
		}
		for task, err := range sel.TaskConfigs() {
			if err != nil {
				t.Fatal(err)
			}
			// A worker knows what the benchmark's config said.
			worker, err := cube.Load[cube.TaskConfig](reg, []byte(marshal(t, task)))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "option", worker.(*placedTask).Dir, cfg.InfoDir)
			if _, err := cube.LoadExecutionInfoAs[*democube.ExecutionInfo](worker); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestCacheDirOfABenchmarkIsThatOfItsTasks(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{CacheRoot: "/c"})
	if err := reg.Add(&plainTask{}, &movedConfig{}); err != nil {
		t.Fatal(err)
	}
	equal(t, "directory", reg.ExecutionCacheDir(&plainTask{}), "/data/tasks_execution_info")
}

type movedConfig struct{ plainConfig }

func (*movedConfig) TypeName() string       { return "test_cube.MovedConfig" }
func (*movedConfig) CacheDir(string) string { return "/data" }

func TestConfigureTaskThatFails(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{CacheRoot: t.TempDir()})
	if err := reg.Add(&placedTask{}, &placedConfig{}); err != nil {
		t.Fatal(err)
	}
	sel, err := reg.Select(&placedConfig{InfoDir: "fail"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range sel.TaskConfigs() {
		n++
		wantMessage(t, err, "configuring task 'one': panic in ConfigureTask: on purpose")
	}
	equal(t, "yields", n, 1)
}

func TestNoCacheRootWritesNowhere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	reg := plainRegistry(t, "")
	sel, err := reg.Select(&plainConfig{})
	if err != nil {
		t.Fatal(err)
	}
	wantMessage(t, sel.Install(t.Context()), "plain: there is no cache directory: the registry's Options have no CacheRoot")
	wantMessage(t, sel.Uninstall(t.Context()), "no cache directory")
	cfg, err := cube.FromValue[*plainTask](reg, cube.Pairs("metadata", cube.Pairs("id", "one")))
	if err != nil {
		t.Fatal(err)
	}
	_, err = cfg.LoadExecutionInfo()
	wantMessage(t, err, "no cache directory")
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("in the working directory: %v, %v", left, err)
	}
	equal(t, "directory", sel.CacheDir(), "")
}
