package cube_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// The acceptance checklist of CUBE, section 16, row by row. Rows 37 and 38 are
// in package cubetest, row 39 also in package shell; row 41 are the vector
// tests.

func equal[V any](t *testing.T, what string, got, want V) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantMessage(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

func row(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run("row "+name, func(t *testing.T) {
		t.Parallel()
		f(t)
	})
}

func TestChecklistTypes(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	row(t, "01 action", func(t *testing.T) {
		a, err := cube.Load[*cube.Action](reg, []byte(`{"name":"click"}`))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "text", marshal(t, a), `{"id":null,"name":"click","arguments":{},"_type":"cube.core.Action"}`)
	})
	row(t, "02 abstract", func(t *testing.T) {
		_, err := cube.Load[cube.Content](reg, []byte(`{"data":"x"}`))
		wantMessage(t, err, "Cannot deserialize abstract class 'Content' directly.")
	})
	row(t, "03 wrong family", func(t *testing.T) {
		_, err := cube.Load[cube.ToolConfig](reg, []byte(`{"_type":"cube.core.Action","name":"x"}`))
		wantMessage(t, err, "must be a subclass of 'ToolConfig'")
	})
	row(t, "04 location", func(t *testing.T) {
		_, err := cube.Load[*cube.Observation](reg, []byte(`{"contents":[{"_type":"cube.core.TextContent","data":"a"},{"data":"b"}]}`))
		v, ok := errors.AsType[*cube.ValidationError](err)
		if !ok {
			t.Fatalf("got %v", err)
		}
		equal(t, "location", v.Errors[0].Loc, typed.Loc{"contents", "1"})
	})
	row(t, "05 reward", func(t *testing.T) {
		out, err := cube.Load[*cube.EnvironmentOutput](reg, []byte(`{"obs":{},"reward":1}`))
		if err != nil {
			t.Fatal(err)
		}
		if text := marshal(t, out); !strings.Contains(text, `"reward":1.0,`) {
			t.Error(text)
		}
		out.Reward = math.NaN()
		text := marshal(t, out)
		if !strings.Contains(text, `"reward":null,`) {
			t.Error(text)
		}
		_, err = cube.Load[*cube.EnvironmentOutput](reg, []byte(text))
		wantMessage(t, err, "reward: Input should be a valid number")
	})
}

func TestChecklistValues(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	row(t, "06 floats", func(t *testing.T) {
		c := cube.Structure(cube.Pairs("f", 1e-5))
		if text := marshal(t, c); !strings.Contains(text, `{"f":0.00001}`) {
			t.Error(text)
		}
		body, err := c.ModelContent()
		equal(t, "text", body, cube.Value(cube.Str(`{"f": 1e-05}`)))
		if err != nil {
			t.Error(err)
		}
	})
	row(t, "07 strings", func(t *testing.T) {
		c := cube.Structure([]any{"é\u2028\x7f\x00"})
		if text := marshal(t, c); !strings.Contains(text, "[\"é\u2028\x7f\\u0000\"]") {
			t.Errorf("%q", text)
		}
		body, _ := c.ModelContent()
		equal(t, "text", body, cube.Value(cube.Str(`["\u00e9\u2028\u007f\u0000"]`)))
	})
	row(t, "08 toolbox config", func(t *testing.T) {
		inner := democube.NewToolConfig()
		inner.Greeting = "Yo"
		full := `{"tool_configs":[{"greeting":"Yo","options":{},"_type":"demo_cube.defs.DemoToolConfig"}],"_type":"cube.tool.ToolboxConfig"}`
		equal(t, "text", marshal(t, &cube.ToolboxConfig{ToolConfigs: []cube.ToolConfig{inner}}), full)
		lossy := `{"tool_configs":[{"_type":"demo_cube.defs.DemoToolConfig"}],"_type":"cube.tool.ToolboxConfig"}`
		if _, err := cube.Load[cube.ToolConfig](reg, []byte(lossy)); err != nil {
			t.Error(err)
		}
	})
	row(t, "09 metadata subtype", func(t *testing.T) {
		cfg := &democube.TaskConfig{}
		cfg.Metadata = democube.NewMetadata("t")
		cfg.Metadata.Weight, cfg.Metadata.Tags = 2.5, []string{"a"}
		again, err := cube.Load[cube.TaskConfig](reg, []byte(marshal(t, cfg)))
		if err != nil {
			t.Fatal(err)
		}
		m := again.TaskMetadata().(*democube.Metadata)
		equal(t, "weight", m.Weight, 2.5)
		equal(t, "tags", m.Tags, []string{"a"})
	})
	row(t, "36 seeds", func(t *testing.T) {
		g := &cube.BasicSeedGenerator{NSeed: 3, MetaSeed: 7}
		seeds, err := g.Seeds(&cube.TaskMetadata{ID: "task-1"})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "seeds", seeds, []int64{728883825, 926895171, 812745475})
	})
	row(t, "40 images", func(t *testing.T) {
		img := cube.NewImage(imageOf(vcase{cube.Pairs("width", 2, "height", 1, "rgba", []any{[]int{1, 2, 3, 128}, []int{4, 5, 6, 255}})}))
		text := marshal(t, &cube.ImageContent{Data: img})
		if !strings.Contains(text, `"data":"data:image/png;base64,`) {
			t.Fatal(text)
		}
		again, err := cube.Load[*cube.ImageContent](reg, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		checkPixels(t, again.Data.Pixels(), vcase{cube.Pairs("width", 2, "height", 1, "rgba", []any{[]int{1, 2, 3, 128}, []int{4, 5, 6, 255}})})
		equal(t, "text", marshal(t, again), text)
	})
}

func TestChecklistTools(t *testing.T) {
	t.Parallel()
	row(t, "20 falsy result", func(t *testing.T) {
		for _, out := range []any{nil, false, 0, 0.0, "", []string{}, map[string]int{}, (*int)(nil)} {
			tool, err := cube.NewActionTool("T", cube.Func("a", "An action.", func(context.Context, none) (any, error) { return out, nil }))
			if err != nil {
				t.Fatal(err)
			}
			r, err := tool.Execute(t.Context(), cube.NewAction("a"))
			if err != nil {
				t.Fatalf("%#v: %v", out, err)
			}
			equal(t, "text", texts(r.Obs), []string{"Success"})
		}
	})
	row(t, "21 action set", func(t *testing.T) {
		var names []string
		for _, a := range demoTools(t)["DemoTool"].Actions() {
			names = append(names, a.Name)
		}
		equal(t, "names", names, []string{"count", "fail", "flag", "greet", "number", "raw", "silent", "stats"})
	})
	row(t, "22 toolbox duplicate", func(t *testing.T) {
		tools := demoTools(t)
		_, err := cube.NewToolbox(tools["DemoTool"], tools["T3"])
		wantMessage(t, err, "Duplicate action name 'greet' found in multiple tools (DemoTool and T3).")
	})
}

// constructCase builds a task from the JSON of a construct case and plays its
// "after" calls.
func constructCase(t *testing.T, text string) ([]string, error) {
	t.Helper()
	v, err := value.DecodeText(text)
	if err != nil {
		t.Fatal(err)
	}
	c, log := vcase{v.(*cube.Object)}, &democube.Log{}
	task, err := cube.NewTask(t.Context(), constructed(t, registry(t, cube.Options{}), c, log))
	for range c.strs("after") {
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	return log.Lines(), err
}

func TestChecklistConstruction(t *testing.T) {
	t.Parallel()
	row(t, "23 backend", func(t *testing.T) {
		calls, err := constructCase(t, `{"container_config": {"image": "i"}, "container_backend": {}, "tool_config": {}}`)
		equal(t, "calls", calls, []string{"backend.launch(i)", "tool_config.make(container=c-backend)"})
		equal(t, "error", err, nil)
	})
	row(t, "24 infra", func(t *testing.T) {
		calls, err := constructCase(t, `{"container_config": {"image": "i"}, "container_backend": {}, "infra": {}, "tool_config": {}}`)
		equal(t, "calls", calls, []string{"infra.provision_status(task-x)", "infra.launch(task-x,task,i)", "tool_config.make(container=c-infra)"})
		equal(t, "error", err, nil)
	})
	row(t, "25 tool fails", func(t *testing.T) {
		calls, err := constructCase(t, `{"container_config": {"image": "i"}, "container_backend": {}, "tool_config": {"fail": {"type": "RuntimeError", "message": "no tool"}}}`)
		equal(t, "last call", calls[len(calls)-1], "container.stop(c-backend)")
		wantMessage(t, err, "no tool")
	})
	row(t, "26 close twice", func(t *testing.T) {
		calls, _ := constructCase(t, `{"container_config": {"image": "i"}, "container_backend": {}, "tool_config": {}, "after": ["close", "close"]}`)
		equal(t, "calls", calls[2:], []string{"tool.close", "container.stop(c-backend)", "tool.close"})
	})
}

func TestChecklistTaskConfigs(t *testing.T) {
	t.Parallel()
	row(t, "27 task id", func(t *testing.T) {
		cfg := &democube.TaskConfig{}
		cfg.Metadata = democube.NewMetadata("task-1")
		cfg.SubBenchName = new("inner-suite/bench-a")
		equal(t, "id", cfg.TaskID(), "inner-suite/bench-a/task-1")
	})
	row(t, "28 nothing installed", func(t *testing.T) {
		reg := registry(t, cube.Options{CacheRoot: "/cache/.cube"})
		cfg, err := cube.Load[*democube.TaskConfig](reg, []byte(`{"metadata":{"id":"missing"},"sub_bench_name":"s"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = cfg.LoadExecutionInfo()
		wantMessage(t, err, "No execution data for task_id='s/missing' at /cache/.cube/bench-a/tasks_execution_info/s/missing.json. Run `cube install <bench>` (or `<OwnerBenchmarkConfig>.install()`) to populate the per-task execution cache on this worker.")
	})
	row(t, "29 derived type", func(t *testing.T) {
		reg := registry(t, cube.Options{CacheRoot: "/cache/.cube"})
		if err := reg.Add(&derived{}); err != nil {
			t.Fatal(err)
		}
		equal(t, "directory", reg.ExecutionCacheDir(&derived{}), "/cache/.cube/other_pkg/tasks_execution_info")
	})
}

func viewIDs(t *testing.T, s *cube.Selection, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func selected(t *testing.T, cfg cube.BenchmarkConfig) *cube.Selection {
	t.Helper()
	s, err := registry(t, cube.Options{}).Select(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChecklistBenchmarks(t *testing.T) {
	t.Parallel()
	row(t, "30 subset", func(t *testing.T) {
		s, err := selected(t, &democube.ConfigA{}).Subset("task-2", "task-1", "task-2")
		equal(t, "ids", viewIDs(t, s, err), []string{"task-2", "task-1"})
	})
	row(t, "31 glob", func(t *testing.T) {
		s, err := selected(t, &democube.ConfigA{}).Glob("tags", "*t2*")
		equal(t, "ids", viewIDs(t, s, err), []string{"task-2"})
		s, err = selected(t, &democube.ConfigA{}).Glob("hard", "True")
		equal(t, "ids", viewIDs(t, s, err), []string{"task-2"})
		_, err = selected(t, &democube.ConfigA{}).Glob("weight", "1")
		wantMessage(t, err, "No tasks found matching glob pattern '1' on key 'weight'")
	})
}

func TestChecklistComposites(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	suite := cube.NewComposite("suite", &democube.ConfigA{}, &democube.ConfigB{})
	row(t, "32 nested composite", func(t *testing.T) {
		narrowed := &democube.ConfigA{}
		narrowed.TaskIDs = []string{"task-1"}
		var ids []string
		for cfg, err := range selected(t, cube.NewComposite("outer", suite, narrowed)).TaskConfigs() {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, cfg.TaskID())
		}
		equal(t, "ids", ids, []string{"suite/bench-a/task-1", "suite/bench-a/task-2", "suite/bench-a/other-3", "suite/bench-b/task-1", "bench-a/task-1"})
	})
	row(t, "33 composite order", func(t *testing.T) {
		s, err := selected(t, suite).Subset("bench-b/task-1", "bench-a/task-2")
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for cfg, err := range s.TaskConfigs() {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, cfg.TaskID())
		}
		equal(t, "ids", ids, []string{"bench-a/task-2", "bench-b/task-1"})
	})
	row(t, "34 composite spawn", func(t *testing.T) {
		b, err := reg.Make(t.Context(), cube.NewComposite("outer", suite, &democube.ConfigA{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"-":           "CompositeBenchmark.spawn() expects a TaskConfig with sub_bench_name set",
			"zzz":         "Unknown sub-benchmark 'zzz' (from sub_bench_name='zzz'); known: ['suite', 'bench-a']",
			"suite/zzz":   "Unknown sub-benchmark 'zzz' (from sub_bench_name='zzz'); known: ['bench-a', 'bench-b']",
			"bench-a/zzz": "Task 'zzz/task-1' not found in benchmark 'bench-a' (current view has 3 tasks)",
			"suite":       "ends at the composite 'suite'",
		} {
			cfg := &democube.TaskConfig{Target: 3}
			cfg.Metadata = democube.NewMetadata("task-1")
			if path != "-" {
				cfg.SubBenchName = &path
			}
			_, err := b.Spawn(t.Context(), cfg)
			wantMessage(t, err, want)
		}
	})
	row(t, "35 composite make fails", func(t *testing.T) {
		log := &democube.Log{}
		reg := registryWith(t, cube.Options{}, log)
		err := reg.Add(&badSetupTask{}, &badSetup{failingBench{setup: cube.RuntimeErrorf("setup failed"), log: log}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = reg.Make(t.Context(), cube.NewComposite("c", &democube.ConfigA{}, &badSetup{}), nil)
		wantMessage(t, err, "setup failed")
		equal(t, "calls", log.Lines(), []string{"close A"})
	})
}

// vectorFiles are the suites of the whole layer, and how many cases each has.
// Two of them are run by other packages.
func TestChecklistRow41(t *testing.T) {
	t.Parallel()
	if os.Getenv("PROCTOR_VECTORS") != "" {
		t.Skip("counts the vectors of the repository only")
	}
	total := 0
	for _, name := range vectors.Dir(t, "cube", "*.json") {
		total += countCases(t, vectors.File(t, "cube/"+name))
	}
	for _, elsewhere := range []string{"cubetest/testdata/vectors/cube/debug_harness.json", "shell/testdata/vectors/cube/bash_tool.json"} {
		data, err := os.ReadFile(filepath.FromSlash(elsewhere))
		if err != nil {
			t.Fatal(err)
		}
		total += countCases(t, data)
	}
	if total != 455 {
		t.Errorf("%d cases, want 455", total)
	}
	if names := vectors.Dir(t, "cube", "*.json"); !slices.IsSorted(names) || len(names) != 18 {
		t.Errorf("%d vector files, want 18", len(names))
	}
}

func countCases(t *testing.T, data []byte) int {
	t.Helper()
	var file struct{ Cases []json.RawMessage }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	return len(file.Cases)
}
