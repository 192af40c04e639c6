package cubecli_test

import (
	"context"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cubecli"
)

// stored is a cube whose tasks need execution infos: each is the answer of a
// task. elsewhere, when set, is where it keeps them; downloads counts what its
// installer did.
type stored struct {
	elsewhere string
	downloads *int
}

func (s stored) benchmark() *storedBenchmark { return &storedBenchmark{stored: s} }

func (s stored) register(r *cube.Registry) error {
	return r.Add(&storedConfig{}, s.benchmark())
}

// cube has the types of guess, too.
func (s stored) cube() cubecli.Cube {
	return cubecli.Cube{
		Name: "stored", Agent: solve,
		Register: func(r *cube.Registry) error {
			if err := (guess{}).register(r); err != nil {
				return err
			}
			return s.register(r)
		},
		Config: func(cube.ContainerBackend) cube.BenchmarkConfig { return s.benchmark() },
	}
}

// both is a composite of a cube without and one with something to install.
func (s stored) both() cubecli.Cube {
	c := s.cube()
	c.Name = "both"
	c.Config = func(cube.ContainerBackend) cube.BenchmarkConfig {
		return cube.NewComposite("both", guess{}.benchmark(), s.benchmark())
	}
	return c
}

type storedConfig struct {
	cube.TaskConfigBase[*numberMetadata]
}

func (*storedConfig) TypeName() string { return "stored.task.TaskConfig" }

func (c *storedConfig) Make(ctx context.Context, rc cube.RuntimeContext, b cube.ContainerBackend) (*cube.Task, error) {
	if _, err := cube.ExecutionInfoObject(c); err != nil {
		return nil, err
	}
	return c.Build(ctx, rc, b, &guessProblem{}, &guessToolConfig{})
}

type storedBenchmark struct {
	cube.BenchmarkConfigBase
	stored stored
}

func (*storedBenchmark) TypeName() string { return "stored.benchmark.Config" }

func (*storedBenchmark) Definition() cube.Definition {
	return cube.Definition{
		Metadata: &cube.BenchmarkMetadata{Name: "stored", Version: "1", Description: "Numbers that are installed."},
		Tasks:    numbers(), TaskConfig: &storedConfig{},
	}
}

func (c *storedBenchmark) CacheDir(root string) string {
	if c.stored.elsewhere != "" || root == "" {
		return c.stored.elsewhere
	}
	return root + "/stored"
}

func (c *storedBenchmark) Install(_ context.Context, cache *cube.Cache) error {
	for _, m := range numbers() {
		id := m.Base().ID
		if cache.Has(id) {
			continue
		}
		if c.stored.downloads != nil {
			*c.stored.downloads++
		}
		if err := cache.StoreObject(id, cube.Pairs("answer", m.(*numberMetadata).Number)); err != nil {
			return err
		}
	}
	return nil
}

func (*storedBenchmark) Uninstall(_ context.Context, cache *cube.Cache) error { return cache.Clear() }
