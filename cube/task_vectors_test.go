package cube_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

func TestStepVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "step_scenarios.json", func(t *testing.T, c vcase) {
		log, clock := &democube.Log{}, &steppedClock{}
		task := scriptedTask(t, reg, c, log)
		task.SetClock(clock.now)
		out, err := task.Step(t.Context(), actionsOf(t, reg, c.value("actions"))...)
		if c.has("raises") {
			raises := c.obj("raises")
			if isWrongType(c) {
				raises.Set("message", cube.Str(wrongTypeMessage(raises.str("message"))))
			}
			checkError(t, c.id(), err, raises)
		} else if err != nil {
			t.Fatal(err)
		} else if diff := cmp.Diff(c.str("output"), marshal(t, out)); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(c.strs("calls"), log.Lines()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if clock.reads != c.num("clock_reads") {
			t.Errorf("%d clock reads, want %d", clock.reads, c.num("clock_reads"))
		}
	})
}

var kindAfterGot = regexp.MustCompile(`got \w+, expected`)

func isWrongType(c vcase) bool {
	return slices.ContainsFunc(c.list("tool_results"), func(v cube.Value) bool { return vcase{v.(*cube.Object)}.has("wrong_type") })
}

// wrongTypeMessage replaces the kind after "got ": a typed port has only one
// wrong result.
func wrongTypeMessage(s string) string {
	return kindAfterGot.ReplaceAllString(s, "got NoneType, expected")
}

func scriptedTask(t *testing.T, reg *cube.Registry, c vcase, log *democube.Log) *cube.Task {
	t.Helper()
	spec := c.obj("task")
	base := scriptedProblem{log: log, finished: spec.list("finished"), scores: spec.list("evaluate")}
	base.Metadata = &cube.TaskMetadata{ID: "task-x"}
	base.ToolConfig = &scriptedConfig{tool: &scriptedTool{t: t, log: log, results: c.list("tool_results"), reg: reg}}
	base.ValidatePerStep = spec.flag("validate_per_step")
	base.RejectAgentStop = spec.value("accept_agent_stop") == cube.Bool(false)
	var p cube.Problem = &base
	if spec.has("obs_postprocess") {
		p = &postprocessing{scriptedProblem: base, how: spec.obj("obs_postprocess")}
	}
	task, err := cube.NewTask(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func actionsOf(t *testing.T, reg *cube.Registry, v cube.Value) []cube.Action {
	t.Helper()
	list, ok := v.(cube.List)
	if !ok {
		list = cube.List{v}
	}
	var out []cube.Action
	for _, item := range list {
		a, err := cube.FromValue[*cube.Action](reg, item)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *a)
	}
	return out
}

func TestTaskConstructVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "task_construct.json", func(t *testing.T, c vcase) {
		log := &democube.Log{}
		p := constructed(t, reg, c, log)
		task, err := cube.NewTask(t.Context(), p)
		if c.has("raises") {
			checkError(t, c.id(), err, c.obj("raises"))
		} else if err != nil {
			t.Fatal(err)
		} else {
			afterwards(t, task, c, log)
		}
		want := c.strs("calls")
		switch c.id() {
		case "tool-build-fails-after-launch": // no leak here, unlike the reference
			want = append(want, "container.stop(c-backend)")
		case "tool-close-raises": // the container is stopped all the same
			want = slices.Insert(want, len(want)-1, "container.stop(c-backend)")
		}
		if diff := cmp.Diff(want, log.Lines()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func constructed(t *testing.T, reg *cube.Registry, c vcase, log *democube.Log) cube.Problem {
	t.Helper()
	p := &scriptedProblem{log: log}
	meta := &cube.TaskMetadata{ID: "task-x"}
	if c.has("container_config") {
		cfg, err := cube.FromValue[*cube.ContainerConfig](reg, c.value("container_config"))
		if err != nil {
			t.Fatal(err)
		}
		meta.ContainerConfig = cfg
	}
	p.Metadata = meta
	if c.has("container_backend") {
		p.ContainerBackend = &scriptedBackend{log: log, fail: failure(c.obj("container_backend"), "fail")}
	}
	context := []any{}
	for k, v := range c.obj("runtime_context").All() {
		context = append(context, k, v)
	}
	if c.has("infra") {
		machine := &scriptedInfra{log: log, fail: failure(c.obj("infra"), "fail")}
		if s := c.obj("infra").str("status"); s != "" {
			machine.status = map[string]infra.ProvisionStatus{"task-x": infra.ProvisionStatus(s)}
		}
		context = append(context, "infra", machine)
	}
	if len(context) > 0 {
		rc, err := cube.NewRuntimeContext(context...)
		if err != nil {
			t.Fatal(err)
		}
		p.RuntimeContext = rc
	}
	spec := c.obj("tool_config")
	tool := &scriptedTool{t: t, log: log, reg: reg, closing: failure(spec, "close_raises")}
	p.ToolConfig = &scriptedConfig{tool: tool, log: log, fail: failure(spec, "fail")}
	return p
}

func failure(c vcase, key string) error {
	if !c.has(key) {
		return nil
	}
	return raised(c.obj(key))
}

func afterwards(t *testing.T, task *cube.Task, c vcase, log *democube.Log) {
	t.Helper()
	id := ""
	if task.Container() != nil {
		id = task.Container().ID()
	}
	if id != c.str("container_id") {
		t.Errorf("container %q, want %q", id, c.str("container_id"))
	}
	for _, call := range c.strs("after") {
		var err error
		switch call {
		case "reset":
			_, _, err = task.Reset(t.Context())
		case "close":
			err = task.Close(t.Context())
		default:
			t.Fatalf("unknown call %q", call)
		}
		if err != nil {
			log.Add(call + " raised " + cube.ErrorType(err) + ": " + err.Error())
		}
	}
}

func TestTaskConfigVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{CacheRoot: "/cache/.cube"})
	if err := reg.Add(&derived{}); err != nil {
		t.Fatal(err)
	}
	eachCase(t, "task_config.json", func(t *testing.T, c vcase) {
		if c.has("dir") {
			var cfg cube.TaskConfig = &democube.TaskConfig{}
			if c.has("type_name") {
				cfg = &derived{}
			}
			if got := reg.ExecutionCacheDir(cfg); got != c.str("dir") {
				t.Errorf("directory %q, want %q", got, c.str("dir"))
			}
			return
		}
		cfg, err := cube.FromValue[*democube.TaskConfig](reg, cube.Pairs(
			"metadata", cube.Pairs("id", c.str("metadata_id")), "sub_bench_name", c.value("sub_bench_name")))
		if err != nil {
			t.Fatal(err)
		}
		if c.has("error") {
			_, err := cfg.LoadExecutionInfo()
			checkError(t, c.id(), err, c.obj("error"))
			return
		}
		if got := cfg.TaskID(); got != c.str("task_id") {
			t.Errorf("task id %q, want %q", got, c.str("task_id"))
		}
		if got := reg.ExecutionInfoPath(cfg); got != c.str("cache_file") {
			t.Errorf("cache file %q, want %q", got, c.str("cache_file"))
		}
	})
}

// derived is a subtype of a task config that a benchmark owns.
type derived struct{ democube.TaskConfig }

func (*derived) TypeName() string { return "other_pkg.sub.mod.Derived" }

func TestSeedVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "seeds.json", func(t *testing.T, c vcase) {
		g := &cube.BasicSeedGenerator{NSeed: c.num("n_seed"), MetaSeed: int64(c.num("meta_seed"))}
		if got := cube.BaseSeed(c.str("task_id"), g.MetaSeed); int(got) != c.num("base_seed") {
			t.Errorf("base seed %d, want %d", got, c.num("base_seed"))
		}
		seeds, err := g.Seeds(&cube.TaskMetadata{ID: c.str("task_id")})
		if err != nil {
			t.Fatal(err)
		}
		got, err := cube.ValueOf(seeds)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "seeds", got, c.value("seeds"))
	})
}
