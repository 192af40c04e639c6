package cube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/internal/metadatafile"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/guarded"
)

// BenchmarkMetadata describes a benchmark (CUBE, section 6.1).
type BenchmarkMetadata struct {
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Description  string   `json:"description"`
	Authors      []string `json:"authors" default:"[]"`
	License      string   `json:"license" default:""`
	Requirements *Object  `json:"requirements" default:"{}"`
	NumTasks     int      `json:"num_tasks" default:"0"` // of the whole benchmark
	Tags         []string `json:"tags" default:"[]"`
	// ResetIsolation is how far a reset goes; empty when it is not known.
	ResetIsolation string `json:"reset_isolation" cube:"nullable" enum:"snapshot,restart,app_level,new_instance"`
	// NamedSubsets are pairs of a metadata field and a glob pattern.
	NamedSubsets Map[[2]string] `json:"named_subsets" default:"{}"`
}

// TypeName is the name of the type in documents.
func (*BenchmarkMetadata) TypeName() string { return "cube.benchmark.BenchmarkMetadata" }

// BenchmarkConfig is a selection of a benchmark's tasks and how to run them, as
// data. Embed [BenchmarkConfigBase] and write Definition:
//
//	type Config struct{ cube.BenchmarkConfigBase }
//
//	func (*Config) TypeName() string { return "my_cube.benchmark.Config" }
//
//	func (*Config) Definition() cube.Definition {
//		return cube.Definition{Metadata: …, Tasks: …, TaskConfig: &TaskConfig{}}
//	}
//
// What a benchmark can do besides is told at [Installer], [Uninstaller],
// [TaskConfigurer], [CachePlacer] and [Parametrised].
// [Registry.Select] turns a config into the tasks it selects.
type BenchmarkConfig interface {
	Typed
	// Definition says what the benchmark consists of. It is called once, when
	// the type is registered, and does not depend on the fields; where it
	// should, the config is [Parametrised].
	Definition() Definition
	// Base comes with the embedded BenchmarkConfigBase.
	Base() *BenchmarkConfigBase
}

// Parametrised is the optional ability of a benchmark config whose definition
// follows from its own fields, a directory of tasks or a language for example:
// one Go type is then as many benchmarks as there are keys, side by side in one
// registry and in one composite. Its Definition is not called. The cache
// directory of its tasks is not that of one benchmark: it is named after the
// task config's TypeName, unless that is an [ExecutionCachePlacer].
type Parametrised interface {
	// DefinitionKey returns the same text for configs of the type that have the
	// same definition.
	DefinitionKey() string
	// Define returns the definition. It is called when a config with a new key
	// is selected, and its errors are those of [Registry.Select].
	Define() (Definition, error)
}

// TaskConfigurer is the optional ability of a benchmark config to put its own
// options into the task configs (get_task_configs of the reference): what a
// worker in another process needs to know must be in them.
type TaskConfigurer interface {
	// ConfigureTask changes a config that has its metadata, tool config and
	// seed. It is called for every config that [Selection.TaskConfigs] yields.
	ConfigureTask(cfg TaskConfig) error
}

// BenchmarkConfigBase holds the data of a benchmark config.
type BenchmarkConfigBase struct {
	TaskIDs          []string         `json:"task_ids" cube:"nullable"` // nil: all tasks
	Resources        []infra.Resource `json:"resources" default:"[]"`
	ContainerBackend ContainerBackend `json:"container_backend"`
	ToolConfig       ToolConfig       `json:"tool_config"` // nil: the cube's default
	SeedGenerator    SeedGenerator    `json:"seed_generator"`
}

// Base returns b.
func (b *BenchmarkConfigBase) Base() *BenchmarkConfigBase { return b }

// Definition is what a benchmark consists of.
type Definition struct {
	// Metadata describes the benchmark; nil takes benchmark_metadata.json, or
	// .csv, of Files.
	Metadata *BenchmarkMetadata
	// Tasks in order; nil takes task_metadata.json, or .csv, of Files.
	Tasks []Metadata
	// Files holds metadata files, often an embed.FS.
	Files fs.FS
	// TaskConfig names the type of the task configs by a value, usually
	// &TaskConfig{}. Configs are new values of the type with the defaults of
	// its tags. One benchmark has one type.
	TaskConfig TaskConfig
	// Runtime makes what lives as long as the running benchmark; nil when there
	// is nothing to set up.
	Runtime func() Runtime

	byID map[string]Metadata
}

// Runtime is the live part of a benchmark: servers, clients, shared data.
type Runtime interface {
	// Setup starts what the tasks share and notes in s what they need to know.
	// When it returns an error it has cleaned up after itself.
	Setup(ctx context.Context, s *Setup) error
	// Close stops it. It is called once.
	Close(ctx context.Context) error
}

// Installer is the optional ability of a benchmark config to prepare a machine:
// it stores one execution info per task. Doing it again changes nothing.
type Installer interface {
	Install(ctx context.Context, c *Cache) error
}

// Uninstaller is the optional ability to remove what Installer did.
type Uninstaller interface {
	Uninstall(ctx context.Context, c *Cache) error
}

// Files that a Definition is completed from.
const (
	benchmarkMetadataFile = "benchmark_metadata"
	taskMetadataFile      = "task_metadata"
)

// definitionKey identifies a benchmark: by its type and, when it is
// [Parametrised], by its own key.
type definitionKey struct {
	typ reflect.Type
	key string
}

// define checks and keeps the definition of a type that is registered.
func (r *Registry) define(cfg BenchmarkConfig) error {
	switch cfg.(type) {
	case *CompositeBenchmarkConfig, Parametrised:
		return nil
	}
	key := definitionKey{typ: reflect.TypeOf(cfg).Elem()}
	if r.defs[key] != nil {
		return nil
	}
	def := cfg.Definition()
	if err := r.complete(&def, typed.ClassName(cfg)); err != nil {
		return err
	}
	if err := r.own(def.TaskConfig, def.Metadata.Name, r.benchmarkDir(cfg, def.Metadata.Name)); err != nil {
		return err
	}
	r.defs[key] = &def
	return nil
}

// definition returns the definition of a benchmark.
func (r *Registry) definition(cfg BenchmarkConfig) (*Definition, error) {
	key := definitionKey{typ: reflect.TypeOf(cfg).Elem()}
	if !r.types.Has(cfg) {
		return nil, TypeErrorf("%T is not registered", cfg)
	}
	p, parametrised := cfg.(Parametrised)
	if parametrised {
		key.key = p.DefinitionKey()
	}
	r.mu.Lock()
	known := r.defs[key]
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if !parametrised {
		return nil, TypeErrorf("%T is not registered", cfg)
	}
	var def Definition
	err := guarded.Call("Define", func() (err error) {
		def, err = p.Define()
		return err
	})
	if err == nil {
		err = r.complete(&def, typed.ClassName(cfg))
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.defs[key]; known != nil { // another goroutine was first
		return known, nil
	}
	r.defs[key] = &def
	return &def, nil
}

// complete completes and checks a benchmark's definition (CUBE, section 6.2).
func (r *Registry) complete(def *Definition, name string) error {
	if err := r.completeMetadata(def, name); err != nil {
		return err
	}
	if err := r.completeTasks(def, name); err != nil {
		return err
	}
	if def.TaskConfig == nil {
		return TypeErrorf("Concrete benchmark config class %s must define 'task_config_class' as a ClassVar subclass of TaskConfig, not None.", name)
	}
	if !r.types.Has(def.TaskConfig) {
		return TypeErrorf("%T is not registered: add it with the benchmark", def.TaskConfig)
	}
	return nil
}

func (r *Registry) completeMetadata(def *Definition, name string) error {
	if def.Metadata != nil {
		return nil
	}
	data, file, err := metadatafile.Find(def.Files, benchmarkMetadataFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return TypeErrorf("Concrete benchmark config class %s must define 'benchmark_metadata' as a ClassVar, declare it as a @property, or ship 'benchmark_metadata.json' / '.csv' next to the module.", name)
	case err != nil:
		return err
	case filepath.Ext(file) == ".csv":
		def.Metadata, err = r.BenchmarkMetadataFromCSV(file, data)
	default:
		def.Metadata, err = r.BenchmarkMetadataFromJSON(data)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return nil
}

func (r *Registry) completeTasks(def *Definition, name string) error {
	if def.Tasks == nil {
		data, file, err := metadatafile.Find(def.Files, taskMetadataFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return TypeErrorf("%s must declare 'task_metadata' as a ClassVar, declare it as a @property, or ship 'task_metadata.json' / '.csv' next to the module.", name)
		case err != nil:
			return err
		case filepath.Ext(file) == ".csv":
			def.Tasks, err = r.TaskMetadataFromCSV(data)
		default:
			def.Tasks, err = r.TaskMetadataFromJSON(data)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
	}
	def.byID = make(map[string]Metadata, len(def.Tasks))
	for i, m := range def.Tasks {
		base := baseOf(m)
		if base == nil {
			return TypeErrorf("task %d of %s is nil", i, name)
		}
		if def.byID[base.ID] != nil {
			return TypeErrorf("task id %s of %s is there twice", quote(base.ID), name)
		}
		if !r.types.Has(m) {
			return TypeErrorf("%T is not registered: add it with the benchmark", m)
		}
		def.byID[base.ID] = m
	}
	return nil
}

// own notes the benchmark that the task configs of a type belong to, and in
// which directory its data lies.
func (r *Registry) own(c TaskConfig, benchmark, dir string) error {
	t, own := reflect.TypeOf(c).Elem(), owner{benchmark, dir}
	if known := r.owners[t]; known != (owner{}) && known != own {
		return TypeErrorf("%s is already owned by benchmark at %s; cannot reassign to %s. Each BenchmarkConfig must declare its own TaskConfig subclass.",
			typed.ClassName(c), cmp.Or(known.dir, known.benchmark), cmp.Or(dir, benchmark))
	}
	r.owners[t] = own
	return nil
}
