package cube_test

import (
	"context"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

// oddProblem returns what it is told to, at one of its hooks.
type oddProblem struct {
	cube.TaskBase[cube.Metadata]
	at   string
	obs  *cube.Observation
	info cube.Info
}

func (p *oddProblem) odd(hook string) (*cube.Observation, cube.Info) {
	if p.at != hook {
		return cube.Observe(cube.Text("fine")), nil
	}
	return p.obs, p.info
}

func (p *oddProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	obs, info := p.odd("Reset")
	return obs, info, nil
}

func (p *oddProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	_, info := p.odd("Evaluate")
	return 0, info, nil
}

func (p *oddProblem) PostprocessObs(_ context.Context, obs *cube.Observation) (*cube.Observation, error) {
	if p.at != "PostprocessObs" {
		return obs, nil
	}
	return p.obs, nil
}

type oddTool struct {
	turnTool
	p *oddProblem
}

func (o *oddTool) Execute(context.Context, cube.Action) (cube.Result, error) {
	obs, _ := o.p.odd("Execute")
	return cube.Observed(obs), nil
}

func selfContaining() *cube.Object {
	o := cube.Pairs("a", 1)
	o.Set("self", o)
	o.Set("again", o)
	return o
}

func TestOddResultsAreErrors(t *testing.T) {
	t.Parallel()
	var typedNil *cube.TextContent
	list := make(cube.List, 1)
	list[0] = list
	kinds := map[string]struct {
		obs  *cube.Observation
		info cube.Info
		want string
		at   []string
	}{
		"nil content":       {cube.Observe(cube.Text("a"), nil), nil, "content 1 is nil", []string{"Reset", "Execute", "PostprocessObs"}},
		"typed nil content": {cube.Observe(typedNil), nil, "content 0 is nil", []string{"Reset", "Execute", "PostprocessObs"}},
		"content that contains itself": {cube.Observe(&cube.StructuredContent{Data: cube.Structured{Value: list}}), nil, "contains itself",
			[]string{"Reset", "Execute", "PostprocessObs"}},
		"info that contains itself": {cube.Observe(cube.Text("a")), selfContaining(), "contains itself", []string{"Reset", "Evaluate"}},
	}
	for name, k := range kinds {
		for _, at := range k.at {
			t.Run(name+" at "+at, func(t *testing.T) {
				t.Parallel()
				p := &oddProblem{at: at, obs: k.obs, info: k.info}
				p.Metadata = &cube.TaskMetadata{ID: "t"}
				tool := &oddTool{p: p}
				tool.closed = make(chan struct{})
				p.ToolConfig = &scriptedConfig{tool: tool}
				task, err := cube.NewTask(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				_, _, err = task.Reset(t.Context())
				if err == nil {
					_, err = task.Step(t.Context(), cube.NewAction("wait"), cube.Stop())
				}
				wantMessage(t, err, k.want)
				if at == "Evaluate" {
					_, _, err = task.Evaluate(t.Context(), nil)
					wantMessage(t, err, k.want)
				}
			})
		}
	}
}

// privileged returns what it is told to as privileged info.
type privileged struct {
	oddProblem
	content cube.Content
}

func (p *privileged) PrivilegedInfo(context.Context) (cube.Content, error) { return p.content, nil }

func TestOddPrivilegedInfo(t *testing.T) {
	t.Parallel()
	info := func(content cube.Content) (cube.Content, error) {
		p := &privileged{content: content}
		p.Metadata = &cube.TaskMetadata{ID: "t"}
		p.ToolConfig = &scriptedConfig{tool: &turnTool{closed: make(chan struct{})}}
		task, err := cube.NewTask(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return task.PrivilegedInfo(t.Context())
	}
	var typedNil *cube.TextContent
	for _, content := range []cube.Content{nil, typedNil} {
		got, err := info(content)
		if err != nil || marshal(t, got) != marshal(t, &cube.StructuredContent{}) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	_, err := info(cube.Structure(selfContaining()))
	wantMessage(t, err, "contains itself")
}

func TestValuesThatContainThemselvesAreNotWritten(t *testing.T) {
	t.Parallel()
	_, err := cube.Marshal(&cube.EnvironmentOutput{Obs: &cube.Observation{}, Info: selfContaining()})
	wantMessage(t, err, "contains itself")
	_, err = cube.NewRuntimeContext("key", selfContaining())
	wantMessage(t, err, "contains itself")
}

func TestDeepValuesThatWereReadAreWritten(t *testing.T) {
	t.Parallel()
	const deep = 9000
	text := strings.Repeat("[", deep) + strings.Repeat("]", deep)
	a, err := cube.Load[*cube.Action](registry(t, cube.Options{}), []byte(`{"name":"n","arguments":{"a":`+text+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := marshal(t, a); !strings.Contains(got, text) {
		t.Error("the value is not in what was written")
	}
}

// both returns a task beside its error.
type both struct {
	cube.TaskConfigBase[cube.Metadata]
	tool *leakyTool
}

func (*both) TypeName() string { return "test_cube.Both" }

func (c *both) Make(ctx context.Context, _ cube.RuntimeContext, _ cube.ContainerBackend) (*cube.Task, error) {
	p := &leakyProblem{}
	p.Metadata = c.Metadata
	p.ToolConfig = &leakyConfig{tool: c.tool}
	t, err := cube.NewTask(ctx, p)
	if err != nil {
		return nil, err
	}
	return t, errHook
}

func TestTaskBesideAnErrorIsClosed(t *testing.T) {
	t.Parallel()
	cfg := &both{tool: &leakyTool{}}
	cfg.Metadata = &cube.TaskMetadata{ID: "t"}
	task, err := registry(t, cube.Options{}).MakeTask(t.Context(), cfg, cube.RuntimeContext{}, nil)
	if task != nil || err == nil || cfg.tool.closed.Load() != 1 {
		t.Errorf("got %v, %v, the tool was closed %d times", task, err, cfg.tool.closed.Load())
	}
}
