package cube_test

import (
	"context"
	"fmt"
	"github.com/proctor-run/proctor/cube/infra"
	"math"
	"testing"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/exception"
)

// The scripted doubles of the step and construct vectors.

// raised is the error of a {"raise": {type, message}} entry.
func raised(c vcase) error {
	return &exception.Error{Type: c.str("type"), Message: c.str("message")}
}

type scriptedTool struct {
	t       *testing.T
	log     *democube.Log
	results cube.List
	reg     *cube.Registry
	closing error
}

func (s *scriptedTool) Actions() []cube.ActionSchema { return nil }

func (s *scriptedTool) Reset(context.Context) error {
	s.log.Add("tool.reset")
	return nil
}

func (s *scriptedTool) Close(context.Context) error {
	s.log.Add("tool.close")
	return s.closing
}

func (s *scriptedTool) Execute(_ context.Context, a cube.Action) (cube.Result, error) {
	s.log.Add("execute:" + a.Name)
	r := vcase{s.results[0].(*cube.Object)}
	s.results = s.results[1:]
	switch {
	case r.value("text") != nil:
		content := cube.Text(r.str("text"))
		content.ToolCallID = a.ID
		return cube.Observed(cube.Observe(content)), nil
	case r.has("observation"):
		obs, err := cube.FromValue[*cube.Observation](s.reg, r.value("observation"))
		if err != nil {
			s.t.Fatal(err)
		}
		return cube.Observed(obs), nil
	case r.has("step_error"):
		e, err := cube.FromValue[*cube.StepError](s.reg, r.value("step_error"))
		if err != nil {
			s.t.Fatal(err)
		}
		return cube.Result{Err: e}, nil
	case r.has("wrong_type"):
		return cube.Result{}, nil
	}
	return cube.Result{}, raised(r.obj("raise"))
}

// scriptedConfig makes a tool that was built before, or one that logs.
type scriptedConfig struct {
	tool cube.Tool
	log  *democube.Log
	fail error
}

func (*scriptedConfig) TypeName() string { return "test.ScriptedConfig" }

func (s *scriptedConfig) Make(_ context.Context, c cube.Container) (cube.Tool, error) {
	if s.log != nil {
		id := "none"
		if c != nil {
			id = c.ID()
		}
		s.log.Add("tool_config.make(container=" + id + ")")
	}
	return s.tool, s.fail
}

// scriptedProblem has the hooks of the step vectors, without postprocessing.
type scriptedProblem struct {
	cube.TaskBase[cube.Metadata]
	log      *democube.Log
	finished cube.List
	scores   cube.List
}

func (s *scriptedProblem) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("go")), nil, s.Tool().Reset(ctx)
}

func contents(obs *cube.Observation) string { return fmt.Sprintf("(contents=%d)", len(obs.Contents)) }

func (s *scriptedProblem) Finished(_ context.Context, obs *cube.Observation) (bool, error) {
	s.log.Add("finished" + contents(obs))
	if len(s.finished) == 0 {
		return false, nil
	}
	entry := s.finished[0]
	s.finished = s.finished[1:]
	if o, ok := entry.(*cube.Object); ok {
		return false, raised(vcase{o}.obj("raise"))
	}
	return bool(entry.(cube.Bool)), nil
}

func (s *scriptedProblem) Evaluate(ctx context.Context, obs *cube.Observation) (float64, cube.Info, error) {
	return 0, nil, fmt.Errorf("EvaluateValue comes first")
}

func (s *scriptedProblem) EvaluateValue(_ context.Context, obs *cube.Observation) (cube.Value, cube.Info, error) {
	s.log.Add("evaluate" + contents(obs))
	entry := vcase{s.scores[0].(*cube.Object)}
	s.scores = s.scores[1:]
	if entry.has("raise") {
		return nil, nil, raised(entry.obj("raise"))
	}
	reward := entry.value("reward")
	switch entry.str("reward") {
	case "NaN":
		reward = cube.Float(math.NaN())
	case "Infinity":
		reward = cube.Float(math.Inf(1))
	}
	return reward, entry.obj("info").Object, nil
}

// postprocessing is a scriptedProblem that also changes observations.
type postprocessing struct {
	scriptedProblem
	how vcase
}

func (p *postprocessing) PostprocessObs(_ context.Context, obs *cube.Observation) (*cube.Observation, error) {
	p.log.Add("obs_postprocess" + contents(obs))
	switch {
	case p.how.has("append_text"):
		obs.Contents = append(obs.Contents, cube.Text(p.how.str("append_text")))
		return obs, nil
	case p.how.has("replace_text"):
		return cube.Observe(cube.Text(p.how.str("replace_text"))), nil
	}
	return nil, raised(p.how.obj("raise"))
}

// steppedClock returns 0.125·n·(n+1)/2 seconds at its n-th reading.
type steppedClock struct{ reads int }

func (c *steppedClock) now() time.Time {
	c.reads++
	n := float64(c.reads)
	return time.Unix(0, 0).Add(time.Duration(0.125 * n * (n + 1) / 2 * float64(time.Second)))
}

type scriptedContainer struct {
	id  string
	log *democube.Log
}

func (c *scriptedContainer) ID() string { return c.id }

func (c *scriptedContainer) Exec(context.Context, cube.ExecRequest) (cube.ExecResult, error) {
	return cube.ExecResult{}, nil
}

func (c *scriptedContainer) Stop(context.Context) error {
	c.log.Add("container.stop(" + c.id + ")")
	return nil
}

type scriptedBackend struct {
	cube.ContainerBackendBase
	log  *democube.Log
	fail error
}

func (*scriptedBackend) TypeName() string { return "test.ScriptedBackend" }

func (b *scriptedBackend) Launch(_ context.Context, cfg *cube.ContainerConfig) (cube.Container, error) {
	b.log.Add("backend.launch(" + cfg.Image + ")")
	if b.fail != nil {
		return nil, b.fail
	}
	return &scriptedContainer{"c-backend", b.log}, nil
}

type scriptedInfra struct {
	infra.InfraConfigBase
	log    *democube.Log
	status map[string]infra.ProvisionStatus
	short  bool // log as the benchmark vectors do
	fail   error
}

func (*scriptedInfra) TypeName() string       { return "test.ScriptedInfra" }
func (*scriptedInfra) Fingerprint() string    { return "scripted" }
func (*scriptedInfra) Capabilities() []string { return nil }

func (i *scriptedInfra) ProvisionStatus(_ context.Context, r infra.Resource) (infra.ProvisionStatus, error) {
	name := r.Base().Name
	if i.short {
		i.log.Add("status:" + name)
	} else {
		i.log.Add("infra.provision_status(" + name + ")")
	}
	if s, ok := i.status[name]; ok {
		return s, nil
	}
	return infra.Ready, nil
}

func (i *scriptedInfra) Provision(_ context.Context, r infra.Resource) error {
	if i.short {
		i.log.Add("provision:" + r.Base().Name)
	} else {
		i.log.Add("infra.provision(" + r.Base().Name + ")")
	}
	return nil
}

func (i *scriptedInfra) Launch(_ context.Context, r infra.Resource) (infra.Handle, error) {
	d := r.(*infra.DockerServiceConfig)
	images := ""
	for _, image := range d.DockerImages {
		images += image
	}
	i.log.Add("infra.launch(" + d.Name + "," + d.Scope + "," + images + ")")
	if i.fail != nil {
		return nil, i.fail
	}
	return scriptedHandle{i.log}, nil
}

type scriptedHandle struct{ log *democube.Log }

func (h scriptedHandle) Container() (cube.Container, error) {
	return &scriptedContainer{"c-infra", h.log}, nil
}

func (h scriptedHandle) Close(context.Context) error {
	h.log.Add("handle.close")
	return nil
}
