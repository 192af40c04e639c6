package cube_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// keepsSetup is a benchmark whose runtime keeps the Setup it was given.
type keepsSetup struct {
	democube.Runtime
	setup *cube.Setup
}

func (k *keepsSetup) Setup(_ context.Context, s *cube.Setup) error {
	k.setup = s
	data := map[string]any{"a": []int{1}}
	err := errors.Join(s.Set("data", data), s.Set("live", k), s.Set("url", "http://x"))
	data["a"] = "changed later"
	return err
}

type keeping struct {
	cube.BenchmarkConfigBase
	runtime *keepsSetup
}

func (*keeping) TypeName() string { return "test_cube.Keeping" }

type keepingTask struct{ democube.TaskConfig }

func (*keepingTask) TypeName() string { return "test_cube.KeepingTask" }

func (k *keeping) Definition() cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "keeping"},
		Tasks:      []cube.Metadata{democube.NewMetadata("t")},
		TaskConfig: &keepingTask{},
		Runtime:    func() cube.Runtime { return k.runtime },
	}
}

func TestRuntimeContextIsReadOnly(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	cfg := &keeping{runtime: &keepsSetup{}}
	if err := reg.Add(&keepingTask{}, cfg); err != nil {
		t.Fatal(err)
	}
	bench, err := reg.Make(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	rc := bench.RuntimeContext()
	equal(t, "keys", rc.Keys(), []string{"data", "live", "url"})
	equal(t, "url", rc.String("url"), "http://x")
	if err := cfg.runtime.setup.Set("late", 1); !errors.Is(err, cube.ErrFrozen) {
		t.Errorf("setting after setup: %v", err)
	}
	equal(t, "violations", rc.Violations(), []string{"late"})
	data, _ := rc.Get("data")
	data.(*cube.Object).Set("b", cube.Null{})
	again, _ := rc.Get("data")
	equal(t, "data", compact(again.(cube.Value)), `{"a":[1]}`)
	if live, _ := rc.Get("live"); live != any(cfg.runtime) {
		t.Error("a live value is another one")
	}
	for c, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		task, err := bench.Spawn(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cube.Marshal(task.Problem().(cube.Typed))
		wantMessage(t, err, "runtime_context: live holds a live *cube_test.keepsSetup, which cannot be written")
	}
}

func TestTaskFromJSONIsSetUp(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	reg := registry(t, cube.Options{Sandbox: backend})
	task, err := reg.LoadTask(t.Context(), []byte(`{"_type":"demo_cube.defs.DemoTask","metadata":{"id":"t","container_config":{"image":"i"}},
		"tool_config":{"_type":"demo_cube.defs.DemoToolConfig"},"container_backend":{"_type":"cube.backends.local.LocalContainerBackend"},"target":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if task.Container() == nil || backend.Live() != 1 {
		t.Error("no container was launched")
	}
	out, err := task.Step(t.Context(), cube.NewAction("count"))
	if err != nil || out.Reward != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	if err := task.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestContainerExec(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.On("hang", fake.Hang()),
		fake.On("flood", fake.Flood(20<<20)),
		fake.On("bad", fake.Print("a\xffb")),
		fake.On("both", fake.Print("out"), fake.PrintErr("err"), fake.Exit(3)),
		fake.On("broken", fake.Fail(nil)),
	}})
	defer fake.Verify(t, backend)
	cfg := cube.NewContainerConfig("img")
	c, err := cube.NewLocalContainerBackend(backend).Launch(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop(t.Context()) }()
	exec := func(req cube.ExecRequest) cube.ExecResult {
		t.Helper()
		r, err := c.Exec(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := exec(cube.ExecRequest{Command: "both", Workdir: "/w", Env: cube.MapOf([]string{"K"}, []string{"v"})}); r.Stdout != "out" || r.Stderr != "err" || r.ExitCode != 3 {
		t.Errorf("got %+v", r)
	}
	calls := backend.Calls()
	cmd := calls[len(calls)-1].Command
	equal(t, "argv", cmd.Argv, []string{"sh", "-lc", "both"})
	equal(t, "env", cmd.Env, []string{"K=v"})
	equal(t, "directory", cmd.Dir, "/w")
	if r := exec(cube.ExecRequest{Command: "hang", Timeout: time.Millisecond}); r.ExitCode != cube.TimedOutCode {
		t.Errorf("got %+v", r)
	}
	if r := exec(cube.ExecRequest{Command: "bad"}); r.Stdout != "a\ufffdb" {
		t.Errorf("got %q", r.Stdout)
	}
	if r := exec(cube.ExecRequest{Command: "flood"}); len(r.Stdout) > 9<<20 || !strings.Contains(r.Stdout, "bytes of output cut here") {
		t.Errorf("%d bytes were kept", len(r.Stdout))
	}
	_, err = c.Exec(t.Context(), cube.ExecRequest{Command: "broken it", Timeout: 5 * time.Second})
	if cube.ErrorType(err) != infra.ContainerExecErrorKind || !strings.Contains(err.Error(), "timeout 5s sh -lc 'broken it'") {
		t.Errorf("got %v", err)
	}
	_, err = infra.ForwardPort(t.Context(), c, 80)
	if cube.ErrorType(err) != infra.ContainerErrorKind || err.Error() != "Port 80 is not exposed. Available ports: []" {
		t.Errorf("got %v", err)
	}
	if _, ok := cube.SandboxOf(c); !ok {
		t.Error("no sandbox behind the container")
	}
}

func TestLaunchSpec(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	b := cube.NewLocalContainerBackend(backend)
	b.NetworkMode = "none"
	cfg := cube.NewContainerConfig("img:1")
	cfg.RAMGB = 1.5
	c, err := b.Launch(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop(t.Context()) }()
	spec := backend.Calls()[0].Spec
	equal(t, "image", spec.Image.Ref, "img:1")
	equal(t, "network", spec.Network.Mode, sandbox.NetworkNone)
	equal(t, "resources", spec.Resources, sandbox.Resources{CPUs: 2, MemoryMB: 1536})
	if spec.Labels.Owner.PID != os.Getpid() || spec.Labels.Trial != spec.Name {
		t.Errorf("labels %+v", spec.Labels)
	}
	_, err = (&cube.LocalContainerBackend{}).Launch(t.Context(), cfg)
	wantMessage(t, err, "no sandbox backend is wired in")
	_, err = infra.NewModalContainerBackend().Launch(t.Context(), cfg)
	wantMessage(t, err, "Modal containers cannot be launched from here")
}

func TestLocalInfra(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	reg := registry(t, cube.Options{Sandbox: backend, CacheRoot: t.TempDir()})
	rc, err := cube.NewRuntimeContext("infra", reg.NewLocalInfra())
	if err != nil {
		t.Fatal(err)
	}
	cfg := &democube.TaskConfig{Target: 1}
	cfg.Metadata = democube.NewMetadata("task-x")
	cfg.Metadata.ContainerConfig = cube.NewContainerConfig("img")
	task, err := reg.MakeTask(t.Context(), cfg, rc, nil)
	if err != nil {
		t.Fatal(err)
	}
	if task.Container() == nil {
		t.Error("no container")
	}
	if err := task.Close(t.Context()); err != nil {
		t.Error(err)
	}
	machine := reg.NewLocalInfra()
	vm := cube.Default[infra.VMResourceConfig]()
	vm.Name = "vm"
	if _, err := machine.Launch(t.Context(), &vm); cube.ErrorType(err) != "UnsupportedResourceType" {
		t.Errorf("got %v", err)
	}
	service := cube.Default[infra.DockerServiceConfig]()
	service.Name = "svc"
	if _, err := machine.Launch(t.Context(), &service); cube.ErrorType(err) != "ResourceNotReadyError" {
		t.Errorf("got %v", err)
	}
	wantMessage(t, machine.Provision(t.Context(), &service), "(got 0 containers)")
}

// TestWhatIsProvisionedCanBeLaunched: what Launch refuses, Provision refuses, in
// the same words.
func TestWhatIsProvisionedCanBeLaunched(t *testing.T) {
	t.Parallel()
	machine := registry(t, cube.Options{Sandbox: fake.New(fake.Config{Dir: t.TempDir()}), CacheRoot: t.TempDir()}).NewLocalInfra()
	image := cube.Default[infra.DockerImageConfig]()
	image.Name, image.Image = "image", "img"
	gpu := image
	gpu.Name, gpu.GPU = "gpu", true
	script := cube.Default[infra.DockerServiceConfig]()
	script.Name, script.DockerImages, script.LaunchScript = "script", []string{"img"}, "docker run img"
	two := script
	two.Name, two.DockerImages = "two", []string{"a", "b"}
	for want, r := range map[string]infra.Resource{
		"LocalInfraConfig launches the containers of tasks, and no DockerImageConfig ('image')":                 &image,
		"LocalInfraConfig does not support DockerImageConfig ('gpu')":                                           &gpu,
		"LocalInfraConfig runs no launch scripts: it launches the containers of tasks, and 'script' is not one": &script,
		"(got 2 containers)": &two,
	} {
		wantMessage(t, machine.Provision(t.Context(), r), want)
		if status, err := machine.ProvisionStatus(t.Context(), r); err != nil || status == "ready" {
			t.Errorf("%s: status %q, %v", r.Base().Name, status, err)
		}
		if err := machine.Register(r, nil); err != nil { // by hand
			t.Fatal(err)
		}
		_, err := machine.Launch(t.Context(), r)
		wantMessage(t, err, want)
	}
}

func TestPortsAreRefused(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir()})
	defer fake.Verify(t, backend)
	cfg := cube.NewContainerConfig("img")
	cfg.Ports = []int{8080}
	_, err := cube.NewLocalContainerBackend(backend).Launch(t.Context(), cfg)
	wantMessage(t, err, `launching image "img": sandboxes have no way to make its ports [8080] reachable from outside`)
	equal(t, "class", cube.ErrorType(err), "ContainerLaunchError")
	equal(t, "created", backend.Count(fake.OpCreate), 0)
}

func TestBenchmarkIsClosedOnce(t *testing.T) {
	t.Parallel()
	for _, composite := range []bool{false, true} {
		log := &democube.Log{}
		reg := registryWith(t, cube.Options{}, log)
		var cfg cube.BenchmarkConfig = &democube.ConfigA{}
		if composite {
			cfg = cube.NewComposite("all", cfg)
		}
		bench, err := reg.Make(t.Context(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := bench.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		equal(t, "calls", log.Lines(), []string{"close A"})
		for c, err := range bench.TaskConfigs() {
			if err != nil {
				t.Fatal(err)
			}
			task, err := bench.Spawn(t.Context(), c)
			if task != nil {
				t.Error("a task was made")
			}
			wantMessage(t, err, "is closed: it makes no more tasks")
		}
	}
}

// unready cannot be set up.
type unready struct{ thief }

func (*unready) TypeName() string { return "test_cube.Unready" }

func (u *unready) Definition() cube.Definition {
	def := u.thief.Definition()
	def.TaskConfig = &installedTask{}
	def.Runtime = func() cube.Runtime { return &democube.Runtime{SetupErr: errHook} }
	return def
}

func TestMakeThatFailsReturnsNoBenchmark(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	if err := reg.Add(&unready{}, &installedTask{}); err != nil {
		t.Fatal(err)
	}
	bench, err := reg.Make(t.Context(), &unready{}, nil)
	if bench != nil || !errors.Is(err, errHook) {
		t.Errorf("got %v, %v", bench, err)
	}
}

func TestDescriptionsThatAreNoText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		description any
		ok          bool
	}{{7, true}, {"x", true}, {" ", false}, {nil, false}, {0, false}} {
		schema := cube.ActionSchema{Name: "n", Description: "d", Parameters: cube.Pairs("properties", cube.Pairs("p", cube.Pairs("description", c.description)))}
		if err := schema.CheckDescriptions(); (err == nil) != c.ok {
			t.Errorf("%v: %v", c.description, err)
		}
	}
	missing := cube.ActionSchema{Name: "n", Description: "d", Parameters: cube.Pairs("properties", cube.Pairs("p", cube.Pairs()))}
	wantMessage(t, missing.CheckDescriptions(), "parameter 'p' missing description")
}
