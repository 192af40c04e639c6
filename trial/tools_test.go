package trial_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// withModel lets the agent tools work with a model.
func (b *bench) withModel(m llm.Model, settings ...any) *bench {
	opener := llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return m, nil })
	b.Models, b.Agents = opener, append(b.Agents, agents.All()...)
	b.cfg.Agent.Name, b.cfg.Agent.ModelName, b.cfg.Agent.Kwargs = new("tools"), new("test/m"), cube.Pairs(settings...)
	return b
}

// withCube lets the bench run one task of a shipped cube.
func (b *bench) withCube(t *testing.T, id string, config func(cube.ContainerBackend) cube.BenchmarkConfig) *bench {
	t.Helper()
	b.Cube = func(jobdir.TrialConfig) (*trial.CubeTask, error) {
		return &trial.CubeTask{Name: id, Checksum: "0", Make: func(ctx context.Context, sb sandbox.Backend) (*cube.Task, error) {
			r := cube.NewRegistry(cube.Options{Sandbox: sb})
			if err := cubes.Register(r); err != nil {
				return nil, err
			}
			backend := cube.NewLocalContainerBackend(sb)
			all, err := r.Select(config(backend))
			if err != nil {
				return nil, err
			}
			one, err := all.Subset(id)
			if err != nil {
				return nil, err
			}
			for c, err := range one.TaskConfigs() {
				if err != nil {
					return nil, err
				}
				return c.Make(ctx, cube.RuntimeContext{}, backend)
			}
			return nil, cube.RuntimeErrorf("there is no task %s", id)
		}}, nil
	}
	return b
}

func toolCall(name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: "id-" + name, Name: name, Arguments: arguments}
}

// trajectoryOf reads the trajectory that the agent left, relative to the trial.
func trajectoryOf(t *testing.T, b *bench, dir string) *atif.Trajectory {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, dir, "trajectory.json"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := atif.Parse(data)
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return made
}

// TestToolsPlayCubes: a model plays a task of a cube, and its result has what that took.
func TestToolsPlayCubes(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{}).withCube(t, "mul-6-7", func(cube.ContainerBackend) cube.BenchmarkConfig { return &arithmetic.Config{} })
	script := &llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Say("That is 42."), llmtest.Call(toolCall("submit_answer", `{"anser": 42}`)), llmtest.Call(toolCall("submit_answer", `{"answer": 42}`)),
	}}
	res := b.withModel(script).run(t)
	if got := rewardsText(res); got != "{'reward': 1.0}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	if got := script.Requests()[0].Messages[1].Text(); got != "What is 6 * 7?" {
		t.Errorf("the model is asked %q", got)
	}
	if a := res.AgentResult; value.Repr(*a.NInputTokens) != "30" || value.Repr(*a.NOutputTokens) != "15" || !strings.HasPrefix(value.Repr(a.Metadata), "{'n_steps': 1, 'truncated': False, 'n_model_calls': 3") {
		t.Errorf("agent result %+v, metadata %s", a, value.Repr(a.Metadata))
	}
	if i := res.AgentInfo; i.Name != "tools" || i.Version != "1.0.0" || i.ModelInfo == nil || i.ModelInfo.Name != "m" {
		t.Errorf("agent info %+v", i)
	}
	if made := trajectoryOf(t, b, "agent"); len(made.Steps) != 6 || made.FinalMetrics == nil {
		t.Errorf("trajectory %+v", made)
	}
}

// TestToolsInContainers: the same with a task that has a container and a shell.
func TestToolsInContainers(t *testing.T) {
	t.Parallel()
	writing := regexp.MustCompile(`^printf '%s' '(.*)' > (\S+)$`)
	shell := func(_ context.Context, p *fake.Process) (int, error) {
		command := p.Command.Argv[len(p.Command.Argv)-1]
		if m := writing.FindStringSubmatch(command); m != nil {
			return 0, p.Sandbox.WriteFile(p.Dir+"/"+m[2], []byte(m[1]), 0o644)
		}
		if path, reads := strings.CutPrefix(command, "cat "); reads {
			data, err := p.Sandbox.ReadFile(path)
			if err != nil {
				return 1, nil
			}
			_, err = p.Stdout.Write(data)
			return 0, err
		}
		return 0, nil
	}
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{fake.Always(shell)}}).
		withCube(t, "greeting", func(c cube.ContainerBackend) cube.BenchmarkConfig { return textfiles.NewConfig(c) })
	res := b.withModel(&llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Call(toolCall("bash", `{"command": "pwd"}`), toolCall("write_file", `{"path": "greeting.txt", "content": "Hello, world!"}`)),
		llmtest.Call(toolCall("final_step", ``)),
	}}).run(t)
	if got := rewardsText(res); got != "{'reward': 1.0}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	if n := b.backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestToolsOnHarborTasks: a model works on a Harbor task with a shell, and the task's
// verifier judges.
func TestToolsOnHarborTasks(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{fake.On("say hello", fake.Print("hello\n")), rewardRule("reward.txt", "0.5\n")}})
	script := &llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Call(toolCall("bash", `{"command": "say hello"}`)), llmtest.Call(toolCall("final_step", `{}`)),
	}}
	res := b.withModel(script).run(t)
	if got := rewardsText(res); got != "{'reward': 0.5}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	if last := script.Requests()[1].Messages; last[1].Text() != "Do it.\n" && last[1].Text() != "Do it." || last[3].Text() != "hello\n" {
		t.Errorf("the model saw %+v", last)
	}
	if a := res.AgentResult; value.Repr(*a.NInputTokens) != "20" {
		t.Errorf("agent result %+v", a)
	}
	if made := trajectoryOf(t, b, "agent"); len(made.Steps) != 4 {
		t.Errorf("%d steps", len(made.Steps))
	}
}

// TestToolsOnSteps: each step of a task is a conversation of its own, with a trajectory
// of its own.
func TestToolsOnSteps(t *testing.T) {
	t.Parallel()
	b := newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: []fake.Rule{
		emptying(), rewardByTurn("reward.txt", "1", "0.5"),
	}})
	stop := llmtest.Call(toolCall("final_step", ``))
	script := &llmtest.Script{Answers: []llmtest.Answer{llmtest.Call(toolCall("bash", `{"command": "true"}`)), stop, stop}}
	res := b.withModel(script).run(t)
	if got := rewardsText(res); got != "{'reward': 0.75}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", got, res.ExceptionInfo)
	}
	for i, name := range []string{"one", "two"} {
		first := trajectoryOf(t, b, "steps/"+name+"/agent").Steps[1]
		if !strings.HasPrefix(first.Message.Text, "Do "+name+".") || res.StepResults[i].AgentResult.NInputTokens == nil {
			t.Errorf("step %s: %+v, %+v", name, first, res.StepResults[i].AgentResult)
		}
	}
}

// stuck answers once, and then not before its call is ended.
type stuck struct{ *llmtest.Script }

func (s stuck) Complete(ctx context.Context, r *llm.Request) (*llm.Response, error) {
	if len(s.Requests()) > 0 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return s.Script.Complete(ctx, r)
}

// TestToolsFaults: an error of the model is the trial's, under its name, and no score;
// when the time is up, what was done is judged. What was used is known in any case.
func TestToolsFaults(t *testing.T) {
	t.Parallel()
	one := func() llmtest.Answer { return llmtest.Call(toolCall("bash", `{"command": "true"}`)) }
	look := func() llmtest.Answer { return llmtest.Call(toolCall("look", ``)) }
	auth := llmtest.Answer{Err: &llm.Error{Kind: llm.Auth, Model: "test/m", Message: "no key"}}
	for _, c := range []struct {
		name    string
		bench   func(t *testing.T) *bench
		model   llm.Model
		want    string
		rewards string
	}{
		{"no key, Harbor's task", harborBench, &llmtest.Script{Answers: []llmtest.Answer{one(), auth}}, "AuthenticationError", "no result"},
		{"no key, a cube's", cubeBench, &llmtest.Script{Answers: []llmtest.Answer{look(), auth}}, "AuthenticationError", "no result"},
		{"time, Harbor's task", harborBench, stuck{&llmtest.Script{Answers: []llmtest.Answer{one()}}}, "AgentTimeoutError", "{'reward': 1.0}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := c.bench(t).withModel(c.model)
			res := b.runTimed(t)
			if got := exceptionType(res); got != c.want || rewardsText(res) != c.rewards {
				t.Errorf("exception %q, rewards %s, want %q and %s", got, rewardsText(res), c.want, c.rewards)
			}
			if a := res.AgentResult; a == nil || a.NInputTokens == nil || value.Repr(*a.NInputTokens) != "10" {
				t.Errorf("agent result %+v", a)
			}
			if made := trajectoryOf(t, b, "agent"); len(made.Steps) != 3 {
				t.Errorf("%d steps", len(made.Steps))
			}
		})
	}
}

func harborBench(t *testing.T) *bench {
	t.Helper()
	return newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1.0")}})
}

func cubeBench(t *testing.T) *bench {
	t.Helper()
	return lookBench(t, &lookProblem{}, "nop")
}

// TestToolsKeepSecrets: the trajectory has no secret while the trial runs either.
func TestToolsKeepSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1")}})
	b.cfg.Agent.Env.Set("SOME_PASSWORD", hiddenValue)
	var during []byte
	script := &llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Call(toolCall("bash", `{"command": "echo `+hiddenValue+`"}`)), llmtest.Call(toolCall("final_step", ``)),
	}}
	b.withModel(watched{script, func() {
		if data, err := os.ReadFile(filepath.Join(b.dir, "agent", "trajectory.json")); err == nil {
			during = data
		}
	}})
	if res := b.run(t); res.ExceptionInfo != nil {
		t.Fatalf("exception %+v", res.ExceptionInfo)
	}
	if !strings.Contains(string(during), "[REDACTED:SOME_PASSWORD]") || strings.Contains(string(during), hiddenValue) {
		t.Errorf("during the trial the trajectory is\n%s", during)
	}
}

// watched is a model that tells of its calls.
type watched struct {
	*llmtest.Script
	called func()
}

func (w watched) Complete(ctx context.Context, r *llm.Request) (*llm.Response, error) {
	w.called()
	return w.Script.Complete(ctx, r)
}
