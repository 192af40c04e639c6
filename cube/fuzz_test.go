package cube_test

import (
	"errors"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

// FuzzLoad reads documents as every family. What is read can be written, reads
// back, and is written the same; what is not read names its error.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a","arguments":{"x":[1,2.5,null]}}`,
		`{"contents":[{"_type":"cube.core.TextContent","data":"x"}]}`,
		`{"_type":"demo_cube.defs.DemoTaskConfig","metadata":{"id":"t","tags":["a"]},"seed":"7","tool_config":{"_type":"demo_cube.defs.DemoToolConfig"}}`,
		`{"_type":"demo_cube.defs.DemoTask","metadata":{"id":"t"},"tool_config":{"_type":"cube.tool.ToolboxConfig"},"runtime_context":{"a":1}}`,
		`{"_type":"cube.benchmark.CompositeBenchmarkConfig","sub_bench_configs":[{"_type":"demo_cube.defs.ConfigA"}]}`,
		`{"_type":"cube.core.ImageContent","data":"data:image/png;base64,iVBORw0KGgo="}`,
		`{"obs":{"_type":"demo_cube.defs.DemoObservation","note":"n"},"reward":"0.5","info":{"k":1e999}}`,
		`{"_type":5}`, `[]`, `{"_type":"cube.core.Content"}`,
	} {
		f.Add([]byte(seed))
	}
	reg := registry(f, cube.Options{CacheRoot: f.TempDir()})
	families := []string{
		"cube.core.TypedBaseModel", "cube.core.Action", "cube.core.ActionSchema", "cube.core.Content", "cube.core.Observation",
		"cube.core.EnvironmentOutput", "cube.tool.ToolConfig", "cube.task.TaskMetadata", "cube.task.TaskConfig",
		"cube.task.Task", "cube.benchmark.BenchmarkConfig", "cube.benchmark.BenchmarkMetadata", "cube.resource.ResourceConfig",
		"cube.resource.InfraConfig", "cube.container.ContainerBackend", "cube.seed.AbstractSeedGenerator",
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, family := range families {
			v, err := reg.LoadAs(family, data)
			if err != nil {
				if cube.ErrorType(err) == "Exception" {
					t.Fatalf("%s: the error %v has no class", family, err)
				}
				continue
			}
			stable(t, reg, family, v)
		}
	})
}

func stable(t *testing.T, reg *cube.Registry, family string, v cube.Typed) {
	first, err := cube.Marshal(v)
	if err != nil {
		if cube.ErrorType(err) == "ValueError" { // a lone surrogate
			return
		}
		t.Fatalf("%s: writing: %v", family, err)
	}
	again, err := reg.LoadAs(family, first)
	if err != nil {
		if v, ok := errors.AsType[*cube.ValidationError](err); ok && lostToNull(v) {
			return
		}
		t.Fatalf("%s: reading %s: %v", family, first, err)
	}
	second, err := cube.Marshal(again)
	if err != nil {
		t.Fatalf("%s: writing again: %v", family, err)
	}
	if string(first) != string(second) {
		t.Fatalf("%s: a round trip changed\n%s\nto\n%s", family, first, second)
	}
}

// lostToNull tells errors about floats that JSON cannot hold: they are written
// as null, which no float accepts.
func lostToNull(v *cube.ValidationError) bool {
	for _, e := range v.Errors {
		if e.Type != "float_type" {
			return false
		}
	}
	return true
}

// FuzzMetadataFiles reads arbitrary metadata files.
func FuzzMetadataFiles(f *testing.F) {
	f.Add([]byte("id,split,recommended_max_steps,container_config\na,train,5,\"{\"\"image\"\": \"\"i\"\"}\"\nb,,,\n"))
	f.Add([]byte(`[{"id":"a"},{"id":"b","split":"val"}]`))
	f.Add([]byte("name,version,description\nb,1,d\n"))
	reg := registry(f, cube.Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, load := range []func([]byte) ([]cube.Metadata, error){reg.TaskMetadataFromJSON, reg.TaskMetadataFromCSV} {
			tasks, err := load(data)
			if err != nil {
				continue
			}
			seen := map[string]bool{}
			for _, m := range tasks {
				if seen[m.Base().ID] {
					t.Fatalf("id %q is there twice", m.Base().ID)
				}
				seen[m.Base().ID] = true
			}
		}
		_, _ = reg.BenchmarkMetadataFromCSV("f.csv", data)
	})
}

// FuzzToolCall reads arbitrary tool calls of models.
func FuzzToolCall(f *testing.F) {
	f.Add([]byte(`{"id":"c","function":{"name":"f","arguments":"{\"a\":1}"}}`))
	reg := registry(f, cube.Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := reg.LoadAs("cube.core.Action", data)
		if err != nil {
			return
		}
		dump, err := cube.Dump(v)
		if err != nil {
			t.Fatal(err)
		}
		a, err := cube.ActionFromToolCall(dump)
		if err != nil {
			return
		}
		if name, _ := dump.Get("name"); cube.Str(a.Name) != name {
			t.Fatalf("name %q became %q", name, a.Name)
		}
	})
}
