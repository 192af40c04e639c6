package cube_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// failingBench is a benchmark whose setup or close fails.
type failingBench struct {
	cube.BenchmarkConfigBase
	setup, close error
	log          *democube.Log
}

func (f *failingBench) definition(name string, cfg cube.TaskConfig) cube.Definition {
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: name, Version: "1", Description: "d"},
		Tasks:      []cube.Metadata{&cube.TaskMetadata{ID: "t"}},
		TaskConfig: cfg,
		Runtime: func() cube.Runtime {
			return &democube.Runtime{EndsAs: name, Log: f.log, SetupErr: f.setup, CloseErr: f.close}
		},
	}
}

type badClose struct{ failingBench }

func (*badClose) TypeName() string              { return "test_cube.BadClose" }
func (b *badClose) Definition() cube.Definition { return b.definition("bad", &badCloseTask{}) }

type badSetup struct{ failingBench }

func (*badSetup) TypeName() string              { return "test_cube.BadSetup" }
func (b *badSetup) Definition() cube.Definition { return b.definition("bad-setup", &badSetupTask{}) }

type (
	badCloseTask struct{ democube.OtherTaskConfig }
	badSetupTask struct{ democube.OtherTaskConfig }
)

func (*badCloseTask) TypeName() string { return "test_cube.BadCloseTask" }
func (*badSetupTask) TypeName() string { return "test_cube.BadSetupTask" }

var targetPattern = regexp.MustCompile(`^(\w+)\((.*)\)$`)

// targetConfig reads the "target" of a case: ConfigA(task_ids=[…], …), suite, …
func targetConfig(t *testing.T, target string, machine *scriptedInfra) cube.BenchmarkConfig {
	t.Helper()
	target = strings.TrimSuffix(target, ".make()")
	suite := cube.NewComposite("suite", &democube.ConfigA{}, &democube.ConfigB{})
	narrowed := &democube.ConfigA{}
	narrowed.TaskIDs = []string{"task-1"}
	switch target {
	case "ConfigA":
		return &democube.ConfigA{}
	case "suite":
		return suite
	case "outer":
		outer := cube.NewComposite("outer", suite, narrowed)
		outer.CompositeVersion, outer.CompositeDescription = "2", "d"
		return outer
	case "ConfigB-only composite":
		return cube.NewComposite("composite", &democube.ConfigB{})
	case "composite of ConfigA twice":
		return cube.NewComposite("composite", &democube.ConfigA{}, &democube.ConfigA{})
	case "composite[bad close, ConfigA]":
		return cube.NewComposite("composite", &badClose{}, &democube.ConfigA{})
	case "composite[ConfigA, bad close, failing setup]":
		return cube.NewComposite("composite", &democube.ConfigA{}, &badClose{}, &badSetup{})
	case "failing setup":
		return &badSetup{}
	}
	m := targetPattern.FindStringSubmatch(target)
	if m == nil || m[1] != "ConfigA" {
		t.Skipf("unknown target %q", target)
	}
	cfg := &democube.ConfigA{}
	for _, arg := range splitArgs(m[2]) {
		setField(t, cfg, arg, machine)
	}
	return cfg
}

// splitArgs splits at commas outside of brackets.
func splitArgs(s string) []string {
	var out []string
	depth, start := 0, 0
	for i, r := range s {
		switch r {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	return append(out, strings.TrimSpace(s[start:]))
}

func bracketed(s string) []string {
	inner := strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	if inner == "" {
		return []string{}
	}
	return splitArgs(inner)
}

func setField(t *testing.T, cfg *democube.ConfigA, arg string, machine *scriptedInfra) {
	t.Helper()
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "task_ids":
		cfg.TaskIDs = bracketed(value)
	case "tool_config":
		tool := democube.NewToolConfig()
		_, greeting, _ := strings.Cut(strings.TrimSuffix(value, ")"), "greeting=")
		tool.Greeting = greeting
		cfg.ToolConfig = tool
	case "seed_generator":
		_, list, _ := strings.Cut(strings.TrimSuffix(value, ")"), "seeds=")
		seeds := &democube.Seeds{List: []int64{}}
		for _, s := range bracketed(list) {
			seeds.List = append(seeds.List, int64(s[0]-'0'))
		}
		cfg.SeedGenerator = seeds
	case "resources":
		for _, r := range bracketed(value) {
			name, status, _ := strings.Cut(r, " ")
			res := cube.Default[infra.ResourceConfig]()
			res.Name = name
			cfg.Resources = append(cfg.Resources, &res)
			if status == "missing" {
				machine.status[name] = infra.NeedsProvisioning
			}
		}
	default:
		t.Fatalf("unknown field %q", name)
	}
}

func TestBenchmarkVectors(t *testing.T) {
	t.Parallel()
	eachCase(t, "benchmark.json", func(t *testing.T, c vcase) {
		log := &democube.Log{}
		reg := registryWith(t, cube.Options{}, log)
		err := reg.Add(&badCloseTask{}, &badSetupTask{},
			&badClose{failingBench{close: errors.New("close failed"), log: log}},
			&badSetup{failingBench{setup: cube.RuntimeErrorf("setup failed"), log: log}})
		if err != nil {
			t.Fatal(err)
		}
		machine := &scriptedInfra{log: log, short: true, status: map[string]infra.ProvisionStatus{}}
		b := bench{t: t, c: c, reg: reg, machine: machine}
		got, err := b.run(targetConfig(t, c.str("target"), machine))
		b.compare(got, err, log)
	})
}

// bench runs the op of one benchmark case.
type bench struct {
	t       *testing.T
	c       vcase
	reg     *cube.Registry
	machine *scriptedInfra
}

func (b *bench) compare(got any, err error, log *democube.Log) {
	b.t.Helper()
	switch b.c.id() {
	case "composite-glob-is-broken": // works here: keys are prefixed
		if diff := cmp.Diff([]string{"bench-b/task-1"}, got); diff != "" || err != nil {
			b.t.Errorf("%v %s", err, diff)
		}
		return
	case "spawn-path-ends-at-composite": // an error here
		if cube.ErrorType(err) != "ValueError" || !strings.Contains(err.Error(), "ends at the composite 'suite'") {
			b.t.Errorf("got %v", err)
		}
		return
	}
	if b.c.list("calls") != nil {
		if diff := cmp.Diff(b.c.strs("calls"), log.Lines()); diff != "" {
			b.t.Errorf("calls (-want +got):\n%s", diff)
		}
	}
	if b.c.has("error") {
		checkError(b.t, b.c.id(), err, b.c.obj("error"))
		return
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if got == nil {
		got = log.Lines()
	}
	v, err := cube.ValueOf(got)
	if err != nil {
		b.t.Fatal(err)
	}
	sameJSON(b.t, b.c.str("op"), v, b.c.value("result"))
}

func (b *bench) run(cfg cube.BenchmarkConfig) (any, error) {
	ctx := b.t.Context()
	switch op := b.c.str("op"); {
	case op == "make then close":
		made, err := b.reg.Make(ctx, cfg, nil)
		if err != nil {
			return nil, err
		}
		return nil, made.Close(ctx)
	case op == "make" || op == "make(infra)":
		var machine cube.Infra
		if op == "make(infra)" {
			machine = b.machine
		}
		_, err := b.reg.Make(ctx, cfg, machine)
		return nil, err
	case strings.HasPrefix(op, "spawn"):
		made, err := b.reg.Make(ctx, cfg, nil)
		if err != nil {
			return nil, err
		}
		if op == "spawn(DemoTaskConfig)" {
			return b.spawn(ctx, made)
		}
		return b.spawnAll(ctx, made)
	}
	sel, err := b.reg.Select(cfg)
	if err != nil {
		return nil, err
	}
	return b.ask(sel)
}

func (b *bench) ask(sel *cube.Selection) (any, error) {
	args := b.c.list("args")
	arg := func(i int) string { return string(args[i].(cube.Str)) }
	switch op := b.c.str("op"); op {
	case "subset_from_glob":
		return b.ids(sel.Glob(arg(0), arg(1)))
	case "named_subset":
		return b.ids(sel.NamedSubset(arg(0)))
	case "named_subsets":
		return sel.NamedSubsets(), nil
	case "subset_from_list":
		return b.ids(sel.Subset(stringsOf(args[0].(cube.List))...))
	case "subset_from_list then config task ids":
		sub, err := sel.Subset(stringsOf(args[0].(cube.List))...)
		if err != nil {
			return nil, err
		}
		return b.rows(sub, func(c cube.TaskConfig) any { return c.TaskID() })
	case "task_ids_in_view", "task_metadata_keys":
		return b.ids(sel, nil)
	case "num_tasks":
		return sel.NumTasks()
	case "benchmark_metadata":
		return sel.Metadata()
	case "task_id_and_seed":
		return b.rows(sel, func(c cube.TaskConfig) any { return []any{c.TaskID(), *c.Common().Seed} })
	case "config_rows":
		return b.rows(sel, func(c cube.TaskConfig) any {
			return []any{pythonName(c), c.TaskID(), *c.Common().SubBenchName, c.TaskMetadata().Base().ID}
		})
	case "get_task_configs":
		return b.rows(sel, func(c cube.TaskConfig) any {
			dump, err := cube.Dump(c)
			if err != nil {
				b.t.Fatal(err)
			}
			dump.Set("task_id", cube.Str(c.TaskID()))
			return dump
		})
	default:
		b.t.Skipf("unknown op %q", op)
		return nil, nil
	}
}

func pythonName(v cube.Typed) string { return v.TypeName()[strings.LastIndex(v.TypeName(), ".")+1:] }

func (b *bench) ids(sel *cube.Selection, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	entries, err := sel.Tasks()
	out := []string{}
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out, err
}

func (b *bench) rows(sel *cube.Selection, row func(cube.TaskConfig) any) (any, error) {
	out := []any{}
	for cfg, err := range sel.TaskConfigs() {
		if err != nil {
			return nil, err
		}
		out = append(out, row(cfg))
	}
	return out, nil
}

func (b *bench) spawn(ctx context.Context, made *cube.Benchmark) (any, error) {
	args := b.c.list("args")
	cfg := &democube.TaskConfig{Target: 3}
	cfg.Metadata = democube.NewMetadata(string(args[0].(cube.Str)))
	if s, ok := args[1].(cube.Str); ok {
		cfg.SubBenchName = new(string(s))
	}
	task, err := made.Spawn(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return []any{task.ID(), b.context(task)}, nil
}

func (b *bench) context(task *cube.Task) cube.Value {
	dump, err := cube.Dump(task.Problem().(cube.Typed))
	if err != nil {
		b.t.Fatal(err)
	}
	v, _ := dump.Get("runtime_context")
	return v
}

func (b *bench) spawnAll(ctx context.Context, made *cube.Benchmark) (any, error) {
	out := []any{}
	for cfg, err := range made.TaskConfigs() {
		if err != nil {
			return nil, err
		}
		task, err := made.Spawn(ctx, cfg)
		if err != nil {
			return nil, err
		}
		out = append(out, []any{cfg.TaskID(), pythonName(task.Problem().(cube.Typed)), task.ID(), b.context(task)})
	}
	return out, nil
}

func TestMetadataLoaderVectors(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	eachCase(t, "metadata_loaders.json", func(t *testing.T, c vcase) {
		got, err := loadMetadata(t, reg, c)
		if c.has("error") {
			checkError(t, c.id(), err, c.obj("error"))
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		v, err := cube.ValueOf(got)
		if err != nil {
			t.Fatal(err)
		}
		sameJSON(t, "result", v, c.value("result"))
	})
}

func loadMetadata(t *testing.T, reg *cube.Registry, c vcase) (any, error) {
	t.Helper()
	data := []byte(c.str("text"))
	var list []cube.Metadata
	var err error
	switch c.str("loader") {
	case "task_metadata_from_json":
		list, err = reg.TaskMetadataFromJSON(data)
	case "task_metadata_from_csv":
		list, err = reg.TaskMetadataFromCSV(data)
	case "benchmark_metadata_from_json":
		return reg.BenchmarkMetadataFromJSON(data)
	case "benchmark_metadata_from_csv":
		return reg.BenchmarkMetadataFromCSV("<PATH>", data)
	default:
		t.Skipf("unknown loader %q", c.str("loader"))
	}
	out := []any{}
	for _, m := range list {
		out = append(out, []any{m.Base().ID, m})
	}
	return out, err
}
