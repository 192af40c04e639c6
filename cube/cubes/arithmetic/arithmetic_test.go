package arithmetic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cubetest.Run(t, cubetest.Subject{
		Register: arithmetic.Register,
		Config:   &arithmetic.Config{},
		Agent:    arithmetic.Agent,
		Options:  cube.Options{CacheRoot: t.TempDir()},
	})
}

func spawn(t *testing.T, id string) *cube.Task {
	t.Helper()
	reg := cube.NewRegistry(cube.Options{})
	if err := arithmetic.Register(reg); err != nil {
		t.Fatal(err)
	}
	bench, err := reg.Make(t.Context(), &arithmetic.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		if cfg.TaskID() == id {
			task, err := bench.Spawn(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = task.Close(t.Context()) })
			return task
		}
	}
	t.Fatalf("no task %q", id)
	return nil
}

func TestReset(t *testing.T) {
	t.Parallel()
	obs, info, err := spawn(t, "mul-6-7").Reset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, _ := obs.Markdown()
	if diff := cmp.Diff("What is 6 * 7?", text); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("{'question': 'What is 6 * 7?', 'expected': 42}", cube.PythonText(info)); diff != "" {
		t.Error(diff)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer any
		text   string
		info   string
		reward float64
		open   bool // not finished
	}{
		"right":   {answer: 7, text: "Answer 7 submitted.", info: "{'answer': 7, 'expected': 7, 'correct': True}", reward: 1},
		"wrong":   {answer: 8, text: "Answer 8 submitted.", info: "{'answer': 8, 'expected': 7, 'correct': False}"},
		"float":   {answer: 7.0, text: "Answer 7.0 submitted.", info: "{'answer': 7.0, 'expected': 7, 'correct': True}", reward: 1},
		"text":    {answer: "7", text: "Answer 7 submitted.", info: "{'answer': '7', 'expected': 7, 'correct': False}"},
		"boolean": {answer: true, text: "Answer True submitted.", info: "{'answer': True, 'expected': 7, 'correct': False}"},
		"object":  {answer: map[string]float64{"a": 1}, text: "Answer {'a': 1.0} submitted.", info: "{'answer': {'a': 1.0}, 'expected': 7, 'correct': False}"},
		"null":    {answer: nil, text: "Answer None submitted.", open: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := spawn(t, "add-3-4")
			if _, _, err := task.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			out, err := task.Step(t.Context(), cube.NewAction("submit_answer", "answer", c.answer))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := out.Obs.Markdown()
			if text != c.text || out.Done == c.open || out.Reward != c.reward {
				t.Errorf("got %q, done %v, reward %v", text, out.Done, out.Reward)
			}
			if got := cube.PythonText(out.Info); out.Done && got != c.info {
				t.Errorf("info %s, want %s", got, c.info)
			}
		})
	}
}

func TestToolTexts(t *testing.T) {
	t.Parallel()
	task := spawn(t, "add-3-4")
	schema, err := cube.Marshal(&task.ActionSet()[0])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"submit_answer","description":"Submit the final answer.","parameters":{"type":"object","properties":{"answer":{"type":"integer","description":"The result, an integer."}},"required":["answer"]},"_type":"cube.core.ActionSchema"}`
	if diff := cmp.Diff(want, string(schema)); diff != "" {
		t.Error(diff)
	}
	out, err := task.Step(t.Context(), cube.NewAction("submit_answer"))
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Error.ExceptionStr; got != "ArithmeticTool.submit_answer() missing 1 required positional argument: 'answer'" {
		t.Errorf("got %q", got)
	}
}

// TestDocumentsOfTheReference reads documents as the reference writes them and
// writes the same bytes (CUBE server, section 5).
func TestDocumentsOfTheReference(t *testing.T) {
	t.Parallel()
	const (
		metadata = `{"id":"add-3-4","split":"test","abstract_description":"","recommended_max_steps":2,"container_config":null,` +
			`"a":3,"b":4,"op":"+","expected":7,"_type":"arithmetic_cube.task.ArithmeticTaskMetadata"}`
		toolConfig = `{"_type":"arithmetic_cube.tool.ArithmeticToolConfig"}`
		taskConfig = `{"metadata":` + metadata + `,"seed":null,"tool_config":` + toolConfig + `,"sub_bench_name":null,` +
			`"_type":"arithmetic_cube.task.ArithmeticTaskConfig"}`
		task = `{"metadata":` + metadata + `,"execution_info":null,"tool_config":` + toolConfig + `,"container_backend":null,` +
			`"runtime_context":null,"validate_per_step":false,"accept_agent_stop":true,"_type":"arithmetic_cube.task.SolveArithmeticTask"}`
		config = `{"task_ids":["add-3-4"],"resources":[],"container_backend":null,"tool_config":` + toolConfig + `,"seed_generator":null,` +
			`"_type":"arithmetic_cube.benchmark.ArithmeticBenchmarkConfig"}`
	)
	reg := cube.NewRegistry(cube.Options{})
	if err := arithmetic.Register(reg); err != nil {
		t.Fatal(err)
	}
	for family, text := range map[string]string{
		"cube.task.TaskMetadata": metadata, "cube.task.TaskConfig": taskConfig, "cube.tool.ToolConfig": toolConfig,
		"cube.task.Task": task, "cube.benchmark.BenchmarkConfig": config,
	} {
		v, err := reg.LoadAs(family, []byte(text))
		if err != nil {
			t.Errorf("%s: %v", family, err)
			continue
		}
		got, err := cube.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Error(diff)
		}
	}
	loaded, err := reg.LoadTask(t.Context(), []byte(task))
	if err != nil {
		t.Fatal(err)
	}
	out, err := loaded.Step(t.Context(), cube.NewAction("submit_answer", "answer", 7))
	if err != nil || out.Reward != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	if err := loaded.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
