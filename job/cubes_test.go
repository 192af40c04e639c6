package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// A cube whose tasks are scored with 1 and whose first observation says which
// container the task has.

type roomMetadata struct{ cube.TaskMetadata }

func (*roomMetadata) TypeName() string { return "room_cube.Metadata" }

type roomTool struct{}

func (*roomTool) TypeName() string { return "room_cube.ToolConfig" }

func (*roomTool) Make(context.Context, cube.Container) (cube.Tool, error) {
	return cube.NewActionTool("RoomTool", cube.Func("wait", "Wait.", func(context.Context, struct{}) (any, error) { return "waited", nil }))
}

type roomProblem struct {
	cube.TaskBase[*roomMetadata]
	seed *int64
}

func (p *roomProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	return cube.Observe(cube.Text("A room.")), nil, nil
}

func (p *roomProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	if p.seed == nil {
		return 1, nil, nil
	}
	return 1, cube.Pairs("seed", fmt.Sprint(*p.seed)), nil
}

type roomTask struct {
	cube.TaskConfigBase[*roomMetadata]
}

func (*roomTask) TypeName() string { return "room_cube.TaskConfig" }

func (c *roomTask) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	return c.Build(ctx, rc, b, &roomProblem{seed: c.Seed}, &roomTool{})
}

type roomConfig struct {
	cube.BenchmarkConfigBase
	ids   []string
	image string
}

func (*roomConfig) TypeName() string { return "room_cube.Config" }

func (c *roomConfig) DefinitionKey() string { return strings.Join(c.ids, "\n") + "\n" + c.image }

func (c *roomConfig) Definition() cube.Definition { return cube.Definition{} }

func (c *roomConfig) Define() (cube.Definition, error) {
	def := cube.Definition{
		Metadata: &cube.BenchmarkMetadata{Name: "rooms", Version: "1", Description: "Rooms."}, TaskConfig: &roomTask{},
	}
	for _, id := range c.ids {
		m := &roomMetadata{cube.TaskMetadata{ID: id}}
		if c.image != "" {
			m.ContainerConfig = cube.NewContainerConfig(c.image)
		}
		def.Tasks = append(def.Tasks, m)
	}
	return def, nil
}

// rooms opens a cube of the config that configure completes.
func rooms(containers bool, configure func(*roomConfig, sandbox.Backend), place cube.Infra) job.CubeOpener {
	return job.CubeOpener{Containers: containers, Open: func(b sandbox.Backend) (job.CubeSource, error) {
		r := cube.NewRegistry(cube.Options{Sandbox: b})
		if err := r.Add(&roomMetadata{}, &roomTool{}, &roomTask{}, &roomConfig{}); err != nil {
			return job.CubeSource{}, err
		}
		cfg := &roomConfig{ids: []string{"ten"}}
		configure(cfg, b)
		sel, err := r.Select(cfg)
		return job.CubeSource{Selection: sel, Infra: place}, err
	}}
}

func roomJob(t *testing.T) jobdir.Config {
	t.Helper()
	cfg, _, err := jobdir.ParseConfig([]byte(`{"agents": [{"name": "nop"}]}`), jobdir.JSON, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	cfg.JobName, cfg.JobsDir = "rooms", t.TempDir()
	return cfg
}

// runRooms runs a job of the cube.
func runRooms(t *testing.T, b sandbox.Backend, cfg jobdir.Config, opener job.CubeOpener) *job.Summary {
	t.Helper()
	s := newSession(b)
	defer closeSession(t, s)
	tasks, err := s.OpenCubes(t.Context(), &cfg, opener)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tasks = tasks
	p, err := s.Prepare(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func closeSession(t *testing.T, s *job.Session) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// guarded is a container backend of an author's own, around another.
type guardedBackend struct {
	cube.ContainerBackend
	launched []string
}

func (g *guardedBackend) Launch(ctx context.Context, cfg *cube.ContainerConfig) (cube.Container, error) {
	g.launched = append(g.launched, cfg.Image)
	return g.ContainerBackend.Launch(ctx, cfg)
}

// TestCubesHaveTheirContainerBackend: what the benchmark's config says of containers
// is what trials have, and their sandboxes are theirs.
func TestCubesHaveTheirContainerBackend(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{})
	var own *guardedBackend
	opener := rooms(true, func(c *roomConfig, b sandbox.Backend) {
		local := cube.NewLocalContainerBackend(b)
		local.NetworkMode = "none"
		own = &guardedBackend{ContainerBackend: local}
		c.image, c.ContainerBackend = "rooms:1", own
	}, nil)
	out := runRooms(t, backend, roomJob(t), opener)
	if len(out.Progress.Ended.Errors) != 0 || len(own.launched) != 1 || own.launched[0] != "rooms:1" {
		t.Errorf("progress %+v, the config's backend launched %q", out.Progress, own.launched)
	}
	var spec *sandbox.Spec
	for _, c := range backend.Calls() {
		if c.Op == fake.OpCreate {
			spec = &c.Spec
		}
	}
	if spec == nil || spec.Network.Mode != sandbox.NetworkNone {
		t.Fatalf("created %+v, want a sandbox without a network", spec)
	}
	record := out.Records[0]
	if spec.Labels.Trial != record.TrialName || spec.Labels.Job != out.Result.ID.String() {
		t.Errorf("labels %+v, want those of trial %q", spec.Labels, record.TrialName)
	}
	if n := backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// TestSeedsOfCubes: a task is run once per seed, and each seed is told apart
// everywhere: in names, in the configuration, in the lock and in a resume.
func TestSeedsOfCubes(t *testing.T) {
	t.Parallel()
	cfg := roomJob(t)
	long := strings.Repeat("long-", 9)
	opener := rooms(false, func(c *roomConfig, _ sandbox.Backend) {
		c.ids = []string{"ten", long}
		c.SeedGenerator = &cube.BasicSeedGenerator{NSeed: 2, MetaSeed: 7}
	}, nil)
	out := runRooms(t, nil, cfg, opener)
	if out.Progress.Total != 4 || len(out.Progress.Ended.Errors) != 0 {
		t.Fatalf("progress %+v, want four trials", out.Progress)
	}
	names := map[string]bool{}
	for _, r := range out.Records {
		_, seed, ok := strings.Cut(r.TaskName, "@")
		if !ok || !strings.Contains(r.TrialName, "@"+seed+"__") {
			t.Errorf("trial %q of task %q does not name its seed", r.TrialName, r.TaskName)
		}
		names[r.TaskName] = true
		info, err := os.ReadFile(filepath.Join(cfg.Dir(), r.TrialName, "verifier", "info.json"))
		if err != nil || !strings.Contains(string(info), `"seed": "`+seed+`"`) {
			t.Errorf("info of %q (%v): %s", r.TrialName, err, info)
		}
	}
	if len(names) != 4 {
		t.Errorf("tasks are %v, want four", names)
	}
	var lock jobdir.Lock
	data, err := os.ReadFile(filepath.Join(cfg.Dir(), "lock.json"))
	if err == nil {
		err = json.Unmarshal(data, &lock)
	}
	if err != nil {
		t.Fatal(err)
	}
	digests := map[string]bool{}
	for _, l := range lock.Trials {
		digests[l.Task.Digest] = true
		if !names[l.Task.Name] {
			t.Errorf("the lock has task %q", l.Task.Name)
		}
	}
	if len(digests) != 4 {
		t.Errorf("the lock has digests %v, want four", digests)
	}

	gone := out.Records[3].TrialName
	if err := os.RemoveAll(filepath.Join(cfg.Dir(), gone)); err != nil {
		t.Fatal(err)
	}
	resumed := resumeRooms(t, cfg, opener)
	if len(resumed.Remaining) != 1 || resumed.Trials[resumed.Remaining[0]].Task.Path == nil {
		t.Errorf("%v remain, want the one that was removed", resumed.Remaining)
	}
}

func resumeRooms(t *testing.T, cfg jobdir.Config, opener job.CubeOpener) *job.Resumed {
	t.Helper()
	r, err := prepareRooms(t, cfg, opener)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func prepareRooms(t *testing.T, cfg jobdir.Config, opener job.CubeOpener) (*job.Resumed, error) {
	t.Helper()
	s := newSession(nil)
	defer closeSession(t, s)
	if _, err := s.OpenCubes(t.Context(), &cfg, opener); err != nil {
		return nil, err
	}
	return s.PrepareResume(cfg.Dir(), job.ResumeOptions{})
}

// TestOddTaskIDs: whatever an id is, it is a path of the cube and no other
// directory, and the job finds it again.
func TestOddTaskIDs(t *testing.T) {
	t.Parallel()
	cfg := roomJob(t)
	ids := []string{"../x", ".", "..", "a//b", "a/b", "a%2Fb", "ten@7", `a\b`}
	opener := rooms(false, func(c *roomConfig, _ sandbox.Backend) { c.ids = ids }, nil)
	out := runRooms(t, nil, cfg, opener)
	if out.Progress.Total != len(ids) || len(out.Progress.Ended.Errors) != 0 {
		t.Errorf("progress %+v", out.Progress)
	}
	stored, err := job.StoredConfig(cfg.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if got := job.CubesOf(stored); !slices.Equal(got, []string{"rooms"}) {
		t.Errorf("cubes of the job are %q", got)
	}
	for _, task := range stored.Tasks {
		if !filepath.IsLocal(*task.Path) || filepath.Clean(*task.Path) != *task.Path || !strings.HasPrefix(*task.Path, "cube/rooms/") {
			t.Errorf("path %q", *task.Path)
		}
	}
	if r := resumeRooms(t, cfg, opener); len(r.Remaining) != 0 {
		t.Errorf("%d trials are not found again", len(r.Remaining))
	}
	_, err = prepareRooms(t, cfg, rooms(false, func(c *roomConfig, _ sandbox.Backend) { c.ids = ids[1:] }, nil))
	if err == nil || !strings.Contains(err.Error(), `the cube has no task "cube/rooms/%2E%2E/x" any more`) {
		t.Errorf("a task that the cube no longer has: %v", err)
	}
}

// house provisions everything and notes it.
type house struct {
	infra.InfraConfigBase
	provisioned []string
}

func (*house) TypeName() string       { return "room_cube.House" }
func (*house) Fingerprint() string    { return "house" }
func (*house) Capabilities() []string { return []string{"kvm"} }

func (*house) ProvisionStatus(context.Context, infra.Resource) (infra.ProvisionStatus, error) {
	return "needs_provisioning", nil
}

func (h *house) Provision(_ context.Context, r infra.Resource) error {
	h.provisioned = append(h.provisioned, r.Base().Name)
	return nil
}

func (*house) Launch(context.Context, infra.Resource) (infra.Handle, error) {
	return nil, cube.RuntimeErrorf("nothing is launched here")
}

// TestResourcesAreProvisionedOrRefused: a benchmark whose resources nobody provides
// is not run.
func TestResourcesAreProvisionedOrRefused(t *testing.T) {
	t.Parallel()
	needy := func(c *roomConfig, _ sandbox.Backend) {
		vm := cube.Default[infra.VMResourceConfig]()
		vm.Name = "desktop"
		c.Resources = []infra.Resource{&vm}
	}
	cfg := roomJob(t)
	s := newSession(nil)
	defer closeSession(t, s)
	_, err := s.OpenCubes(t.Context(), &cfg, rooms(false, needy, nil))
	if err == nil || !strings.Contains(err.Error(), `rooms needs "desktop" (cube.resource.VMResourceConfig), which nothing provisions`) {
		t.Errorf("without an infra: %v", err)
	}
	h := &house{}
	if out := runRooms(t, nil, cfg, rooms(false, needy, h)); len(out.Progress.Ended.Errors) != 0 || !slices.Equal(h.provisioned, []string{"desktop"}) {
		t.Errorf("progress %+v, provisioned %q", out.Progress, h.provisioned)
	}
}
