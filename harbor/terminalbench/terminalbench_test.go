package terminalbench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/harbor/terminalbench"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/value"
)

type mapperCase struct {
	Name      string
	Input     map[string]string
	Overrides struct {
		CPUs      *int `json:"cpus"`
		MemoryMB  *int `json:"memory_mb"`
		StorageMB *int `json:"storage_mb"`
		GPUs      *int `json:"gpus"`
	}
	Output map[string]*struct{ Content, Mode string } // nil is an empty directory
	// Printed holds single lines; of long error texts the first three.
	Printed []string
	Failed  [][2]string
}

func TestMapperVectors(t *testing.T) {
	t.Parallel()
	var cases []mapperCase
	if err := json.Unmarshal(vectors.File(t, "tasks/tb-mapper.json"), &cases); err != nil {
		t.Fatal(err)
	}
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			source := filepath.Join(tmp, "src", "my-task")
			plant(t, source, tt.Input)
			var printed []string
			res, err := terminalbench.Map(t.Context(), filepath.Dir(source), filepath.Join(tmp, "out"), terminalbench.Options{
				CPUs: tt.Overrides.CPUs, MemoryMB: tt.Overrides.MemoryMB, StorageMB: tt.Overrides.StorageMB, GPUs: tt.Overrides.GPUs,
				Print: func(line string) { printed = append(printed, strings.ReplaceAll(line, tmp, "<tmp>")) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(res.Failed) != len(tt.Failed) || len(res.Mapped)+len(res.Failed) != 1 {
				t.Errorf("mapped %v, failed %v; want failures %v", res.Mapped, res.Failed, tt.Failed)
			}
			if diff := cmp.Diff(tt.Printed, withoutLinks(printed)); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
			checkTree(t, filepath.Join(tmp, "out", "my-task"), tt)
			if len(tt.Failed) == 0 {
				if _, err := harbor.Load(filepath.Join(tmp, "out", "my-task"), harbor.LoadOptions{}); err != nil {
					t.Errorf("loading the result: %v", err)
				}
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

// withoutLinks splits what was printed into lines and drops those that point
// to documentation, which the vectors leave out.
func withoutLinks(printed []string) []string {
	lines := []string{}
	for line := range strings.SplitSeq(strings.Join(printed, "\n"), "\n") {
		if line != "" && !strings.HasPrefix(line, "    For further information") {
			lines = append(lines, line)
		}
	}
	return lines
}

func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func checkTree(t *testing.T, dir string, tt mapperCase) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for name, file := range tt.Output {
		want[name] = ""
		if file != nil {
			want[name] = file.Mode + " " + comparison(t, name, file.Content)
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) && path == dir {
			return filepath.SkipAll
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if children, err := os.ReadDir(path); err != nil || len(children) > 0 {
				return err
			}
			got[filepath.ToSlash(rel)+"/"] = ""
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		got[filepath.ToSlash(rel)] = fmt.Sprintf("%o %s", info.Mode().Perm(), comparison(t, rel, string(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

// comparison is what must be equal: for YAML the values, else the text.
func comparison(t *testing.T, name, text string) string {
	t.Helper()
	if filepath.Ext(name) != ".yaml" {
		return text
	}
	doc, err := yaml11.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
	return value.Repr(doc)
}

func TestSources(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	task := map[string]string{"task.yaml": "instruction: hi", "docker-compose.yaml": "services: {}", "run-tests.sh": "true"}
	plant(t, filepath.Join(tmp, "src", "b"), task)
	plant(t, filepath.Join(tmp, "src", "a"), task)
	plant(t, filepath.Join(tmp, "src", "no-task"), map[string]string{"x": ""})

	res, err := terminalbench.Map(t.Context(), filepath.Join(tmp, "src"), filepath.Join(tmp, "many"), terminalbench.Options{})
	if diff := cmp.Diff(terminalbench.Result{Mapped: []string{"a", "b"}}, res); diff != "" || err != nil {
		t.Errorf("a directory of tasks: %v (-want +got):\n%s", err, diff)
	}
	res, err = terminalbench.Map(t.Context(), filepath.Join(tmp, "src", "b"), filepath.Join(tmp, "one"), terminalbench.Options{})
	if diff := cmp.Diff(terminalbench.Result{Mapped: []string{"b"}}, res); diff != "" || err != nil {
		t.Errorf("one task: %v (-want +got):\n%s", err, diff)
	}
	res, err = terminalbench.Map(t.Context(), filepath.Join(tmp, "src", "b"), filepath.Join(tmp, "one"), terminalbench.Options{})
	if err != nil || len(res.Failed) != 1 || res.Failed[0].Err.Error() != "Task directory already exists: "+filepath.Join(tmp, "one", "b") {
		t.Errorf("the same again: %+v, %v", res, err)
	}
	if _, err := terminalbench.Map(t.Context(), filepath.Join(tmp, "none"), tmp, terminalbench.Options{}); err == nil || err.Error() != "Invalid source directory: "+filepath.Join(tmp, "none") {
		t.Errorf("no source: %v", err)
	}
}

func TestLineEndsAndShapes(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	plant(t, filepath.Join(tmp, "src", "t"), map[string]string{
		"task.yaml":           "instruction: hi\r\n",
		"docker-compose.yaml": "services:\r\n  client:\r\n    build: .\r\n    environment: {A: 2024-01-02, B: yes}\r\n",
		"Dockerfile":          "FROM x\r\nRUN y",
		"run-tests.sh":        "#!/bin/sh\r\ntrue\r\n",
		"solution.sh":         "kept\r\n",
	})
	res, err := terminalbench.Map(t.Context(), filepath.Join(tmp, "src"), filepath.Join(tmp, "out"), terminalbench.Options{})
	if err != nil || len(res.Failed) > 0 {
		t.Fatal(res, err)
	}
	for name, want := range map[string]string{
		"environment/Dockerfile": "FROM x\nRUN y\n\n# Mapped from docker-compose.yaml\nENV TEST_DIR=/tests\nENV A=2024-01-02\nENV B=True\n",
		"solution/solve.sh":      "kept\r\n",
	} {
		if got, err := os.ReadFile(filepath.Join(tmp, "out", "t", name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Of a task that fails nothing is there, and what was there stays.
func TestAtomic(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	good := map[string]string{"task.yaml": "instruction: hi", "docker-compose.yaml": "services: {}", "run-tests.sh": "true"}
	plant(t, filepath.Join(tmp, "src", "good"), good)
	plant(t, filepath.Join(tmp, "src", "bad"), map[string]string{"task.yaml": "instruction: hi", "docker-compose.yaml": "services: {}"})
	plant(t, filepath.Join(tmp, "src", "there"), good)
	plant(t, filepath.Join(tmp, "out", "there"), map[string]string{"mine": ""})
	res, err := terminalbench.Map(t.Context(), filepath.Join(tmp, "src"), filepath.Join(tmp, "out"), terminalbench.Options{Atomic: true})
	if err != nil || len(res.Failed) != 2 || !slices.Equal(res.Mapped, []string{"good"}) {
		t.Fatalf("%+v, %v", res, err)
	}
	var left []string
	for _, dir := range []string{"out", "out/there"} {
		entries, err := os.ReadDir(filepath.Join(tmp, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, dir+"/"+e.Name())
		}
	}
	if want := []string{"out/good", "out/there", "out/there/mine"}; !slices.Equal(left, want) {
		t.Errorf("there is %q, want %q", left, want)
	}
	if _, err := harbor.Load(filepath.Join(tmp, "out", "good"), harbor.LoadOptions{}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res, err = terminalbench.Map(ctx, filepath.Join(tmp, "src"), filepath.Join(tmp, "other"), terminalbench.Options{Atomic: true})
	if !errors.Is(err, context.Canceled) || len(res.Mapped) > 0 {
		t.Errorf("cancelled: %+v, %v", res, err)
	}
}

// A task must not reach files beside it, by links or by build contexts.
func TestNothingOutsideTheTaskIsRead(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	plant(t, filepath.Join(tmp, "secret"), map[string]string{"key": "s3cret"})
	compose := "services:\n  client: {build: ../../secret}\n  side: {build: ../../secret}\n  root: {build: %s}\n"
	plant(t, filepath.Join(tmp, "src", "contexts"), map[string]string{
		"task.yaml": "instruction: hi", "run-tests.sh": "true", "docker-compose.yaml": fmt.Sprintf(compose, filepath.Join(tmp, "secret")),
	})
	plant(t, filepath.Join(tmp, "src", "links"), map[string]string{
		"task.yaml": "instruction: hi", "run-tests.sh": "true", "docker-compose.yaml": "services: {}",
	})
	if err := os.Symlink("../../secret/key", filepath.Join(tmp, "src", "links", "data")); err != nil {
		t.Fatal(err)
	}
	res, err := terminalbench.Map(t.Context(), filepath.Join(tmp, "src"), filepath.Join(tmp, "out"), terminalbench.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Failed) != 1 || res.Failed[0].Task != "links" {
		t.Errorf("failures: %v", res.Failed)
	}
	err = filepath.WalkDir(filepath.Join(tmp, "out"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if data, _ := os.ReadFile(path); strings.Contains(string(data), "s3cret") {
				t.Errorf("%s holds what lies outside the task", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
