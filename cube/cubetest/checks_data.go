package cubetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
)

// checkRegistered: the config's type is registered, its JSON reads back equal
// through its family, and no field of the cube's data is left out of JSON by
// accident.
func checkRegistered(_ context.Context, c *conformance) error {
	r, err := c.registry()
	if err != nil {
		return err
	}
	if _, err := r.Select(c.Config); err != nil {
		return err
	}
	if err := roundTrip[cube.BenchmarkConfig](r, c.Config); err != nil {
		return fmt.Errorf("benchmark config: %w", err)
	}
	return untaggedConfig(c.Config)
}

// untaggedConfig is untagged for a config and, in a composite, for its parts.
func untaggedConfig(cfg cube.BenchmarkConfig) error {
	errs := []error{untagged(cfg)}
	if composite, ok := cfg.(*cube.CompositeBenchmarkConfig); ok {
		for _, part := range composite.SubBenchConfigs {
			errs = append(errs, untaggedConfig(part))
		}
	}
	return errors.Join(errs...)
}

// roundTrip writes a value, reads it as T, its family, and compares the texts.
func roundTrip[T cube.Typed](r *cube.Registry, v T) error {
	_, err := reread(r, v)
	return err
}

func reread[T cube.Typed](r *cube.Registry, v T) (T, error) {
	var zero T
	first, err := cube.Marshal(v)
	if err != nil {
		return zero, fmt.Errorf("writing: %w", err)
	}
	again, err := cube.Load[T](r, first)
	if err != nil {
		return zero, fmt.Errorf("reading what was written: %w", err)
	}
	second, err := cube.Marshal(again)
	if err != nil {
		return zero, fmt.Errorf("writing again: %w", err)
	}
	if !bytes.Equal(first, second) {
		return zero, fmt.Errorf("a round trip changed the text:\n%s\n%s", first, second)
	}
	return again, nil
}

// untagged reports exported fields that never reach JSON: without a json tag,
// data would be lost on the way to a worker.
func untagged(v cube.Typed) error {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return untaggedIn(t)
}

func untaggedIn(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var errs []error
	for i := range t.NumField() {
		f := t.Field(i)
		_, tagged := f.Tag.Lookup("json")
		switch {
		case tagged || !f.IsExported():
		case f.Anonymous:
			errs = append(errs, untaggedIn(f.Type))
		default:
			errs = append(errs, fmt.Errorf("field %s of %s has no json tag: it is lost when the value is sent to a worker (use json:\"-\" if intended)", f.Name, t))
		}
	}
	return errors.Join(errs...)
}

// checkTaskConfigs: every task config survives a round trip and makes its task
// in a process that has only the types.
func checkTaskConfigs(ctx context.Context, c *conformance) error {
	seen := map[string]bool{}
	return c.withConfig(ctx, func(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
		if err := c.checkTaskConfig(ctx, b, cfg); err != nil {
			return err
		}
		key := cfg.TaskID()
		if seed := cfg.Common().Seed; seed != nil {
			key = fmt.Sprintf("%s with seed %d", key, *seed)
		}
		if seen[key] {
			return fmt.Errorf("there are two task configs of %s", key)
		}
		seen[key] = true
		return c.leftovers()
	})
}

func (c *conformance) checkTaskConfig(ctx context.Context, b *cube.Benchmark, cfg cube.TaskConfig) error {
	if cfg.TaskMetadata() == nil || cfg.TaskMetadata().Base().ID == "" {
		return errors.New("no metadata, or an empty id")
	}
	for _, v := range []cube.Typed{cfg, cfg.TaskMetadata()} {
		if err := untagged(v); err != nil {
			return err
		}
	}
	worker, err := c.registry()
	if err != nil {
		return err
	}
	again, err := reread[cube.TaskConfig](worker, cfg)
	if err != nil {
		return err
	}
	if again.TaskID() != cfg.TaskID() {
		return fmt.Errorf("a round trip changed the task id to %q", again.TaskID())
	}
	task, err := worker.MakeTask(ctx, again, contextOf(b, cfg), c.watch.backend(backendOf(b, cfg)))
	if err != nil {
		return fmt.Errorf("making the task in a fresh process: %w", err)
	}
	if got, want := task.ID(), cfg.TaskMetadata().Base().ID; got != want {
		err = fmt.Errorf("its task has the id %q, not the native id %q", got, want)
	}
	return errors.Join(err, task.Close(ctx))
}

// leafOf returns the benchmark that a config belongs to.
func leafOf(b *cube.Benchmark, cfg cube.TaskConfig) *cube.Benchmark {
	if leaf, err := b.Leaf(cfg); err == nil {
		return leaf
	}
	return b
}

func contextOf(b *cube.Benchmark, cfg cube.TaskConfig) cube.RuntimeContext {
	return leafOf(b, cfg).RuntimeContext()
}

func backendOf(b *cube.Benchmark, cfg cube.TaskConfig) cube.ContainerBackend {
	return leafOf(b, cfg).Selection().Config().Base().ContainerBackend
}

// checkInstall: installing twice changes nothing, uninstalling removes, and a
// task that is not installed says what to do about it.
func checkInstall(ctx context.Context, c *conformance) error {
	r, err := c.registry()
	if err != nil {
		return err
	}
	sel, err := r.Select(c.Config)
	if err != nil {
		return err
	}
	for _, time := range []string{"first", "second"} {
		if err := sel.Install(ctx); err != nil {
			return fmt.Errorf("%s Install: %w", time, err)
		}
	}
	if err := sel.Uninstall(ctx); err != nil {
		return fmt.Errorf("uninstalling: %w", err)
	}
	if err := c.notInstalled(sel, r); err != nil {
		return err
	}
	if err := sel.Install(ctx); err != nil {
		return fmt.Errorf("installing again after Uninstall: %w", err)
	}
	return nil
}

// notInstalled asks for the execution infos of tasks that have none.
func (c *conformance) notInstalled(sel *cube.Selection, r *cube.Registry) error {
	for cfg, err := range sel.TaskConfigs() {
		if err != nil {
			return err
		}
		_, err := cube.ExecutionInfoData(cfg)
		if err == nil {
			return fmt.Errorf("task %q: Uninstall left its execution info in %s", cfg.TaskID(), r.ExecutionCacheDir(cfg))
		}
		if cube.ErrorType(err) != exception.RuntimeError {
			return fmt.Errorf("task %q: the error for a task that is not installed has class %s, not RuntimeError: %w", cfg.TaskID(), cube.ErrorType(err), err)
		}
	}
	return nil
}
