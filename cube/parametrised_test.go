package cube_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
)

// family is as many benchmarks as there are languages.
type family struct {
	cube.BenchmarkConfigBase
	Language string `json:"language"`
}

var definedFamilies atomic.Int64

func (*family) TypeName() string            { return "test_cube.Family" }
func (*family) Definition() cube.Definition { panic("never called") }
func (f *family) DefinitionKey() string     { return f.Language }

func (f *family) Define() (cube.Definition, error) {
	definedFamilies.Add(1)
	if f.Language == "" {
		return cube.Definition{}, cube.ValueErrorf("no language")
	}
	return cube.Definition{
		Metadata:   &cube.BenchmarkMetadata{Name: "family-" + f.Language, Version: "1", Description: "d"},
		Tasks:      []cube.Metadata{democube.NewMetadata("hello-" + f.Language)},
		TaskConfig: &familyTask{},
	}, nil
}

type familyTask struct{ democube.TaskConfig }

func (*familyTask) TypeName() string { return "family_cube.Task" }

func taskIDs(t *testing.T, reg *cube.Registry, cfg cube.BenchmarkConfig) []string {
	t.Helper()
	sel, err := reg.Select(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for c, err := range sel.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.TaskID())
	}
	return ids
}

func TestParametrisedBenchmarks(t *testing.T) {
	reg := registry(t, cube.Options{CacheRoot: "/c"})
	if err := reg.Add(&family{}, &familyTask{}); err != nil {
		t.Fatal(err)
	}
	definedFamilies.Store(0)
	var wg sync.WaitGroup
	for range 8 {
		for _, language := range []string{"go", "c"} {
			wg.Go(func() { _, _ = reg.Select(&family{Language: language}) })
		}
	}
	wg.Wait()
	equal(t, "tasks", taskIDs(t, reg, &family{Language: "go"}), []string{"hello-go"})
	equal(t, "tasks", taskIDs(t, reg, &family{Language: "c"}), []string{"hello-c"})
	both := cube.NewComposite("both", &family{Language: "go"}, &family{Language: "c"})
	equal(t, "composite", taskIDs(t, reg, both), []string{"family-go/hello-go", "family-c/hello-c"})
	if n := definedFamilies.Load(); n < 2 || n > 16 {
		t.Errorf("defined %d times", n)
	}

	again, err := cube.Load[cube.BenchmarkConfig](reg, []byte(marshal(t, both)))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "composite that was read", taskIDs(t, reg, again), taskIDs(t, reg, both))

	_, err = reg.Select(cube.NewComposite("same", &family{Language: "go"}, &family{Language: "go"}))
	wantMessage(t, err, "found duplicates: ['family-go']")
	_, err = reg.Select(&family{})
	wantMessage(t, err, "no language")
	_, err = cube.NewRegistry(cube.Options{}).Select(&family{Language: "go"})
	wantMessage(t, err, "is not registered")
	equal(t, "directory", reg.ExecutionCacheDir(&familyTask{}), "/c/family_cube/tasks_execution_info")
}

func TestParametrisedBenchmarksSpawn(t *testing.T) {
	t.Parallel()
	reg := registry(t, cube.Options{})
	if err := reg.Add(&family{}, &familyTask{}); err != nil {
		t.Fatal(err)
	}
	bench, err := reg.Make(t.Context(), cube.NewComposite("both", &family{Language: "go"}, &family{Language: "c"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for cfg, err := range bench.TaskConfigs() {
		if err != nil {
			t.Fatal(err)
		}
		task, err := bench.Spawn(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.ID())
		if err := task.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(ids, []string{"hello-go", "hello-c"}) {
		t.Errorf("got %v", ids)
	}
}
