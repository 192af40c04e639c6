package metadatafile_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/proctor-run/proctor/cube/internal/metadatafile"
	"github.com/proctor-run/proctor/value"
)

func TestFind(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"both.json": {Data: []byte("j")}, "both.csv": {Data: []byte("c")}, "table.csv": {Data: []byte("c")}}
	for name, want := range map[string]string{"both": "both.json", "table": "table.csv"} {
		if _, file, err := metadatafile.Find(files, name); err != nil || file != want {
			t.Errorf("%s: found %q, %v", name, file, err)
		}
	}
	for _, in := range []fs.FS{files, nil} {
		if _, _, err := metadatafile.Find(in, "none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("found what is not there: %v", err)
		}
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		read       func([]byte) (value.List, error)
		want       string // "": refused
	}{
		{"array", `[{"id": "a"}]`, metadatafile.TasksFromJSON, "[{'id': 'a'}]"},
		{"object", `{"x": {"id": "a"}, "y": {"id": "b"}}`, metadatafile.TasksFromJSON, "[{'id': 'a'}, {'id': 'b'}]"},
		{"text", `"a"`, metadatafile.TasksFromJSON, ""},
		{"table", "id,recommended_max_steps,container_config\na,7,\"{\"\"image\"\": \"\"i\"\"}\"\nb,,\n", metadatafile.TasksFromCSV,
			"[{'id': 'a', 'recommended_max_steps': 7, 'container_config': {'image': 'i'}}, {'id': 'b'}]"},
		{"empty table", "", metadatafile.TasksFromCSV, "[]"},
		{"cell that is no int", "id,recommended_max_steps\na,many\n", metadatafile.TasksFromCSV, ""},
	} {
		got, err := tt.read([]byte(tt.text))
		if (err == nil) != (tt.want != "") || err == nil && value.Repr(got) != tt.want {
			t.Errorf("%s: got %s, %v", tt.name, value.Repr(got), err)
		}
	}
}

func TestBenchmark(t *testing.T) {
	t.Parallel()
	got, err := metadatafile.BenchmarkFromCSV("b.csv", []byte("name,num_tasks,tags\nwords,2,\"[\"\"a\"\"]\"\n"))
	if err != nil || value.Repr(got) != "{'name': 'words', 'num_tasks': 2, 'tags': ['a']}" {
		t.Errorf("got %s, %v", value.Repr(got), err)
	}
	for text, want := range map[string]string{
		"name\n":       "benchmark_metadata CSV 'b.csv' has no data rows",
		"name\na\nb\n": "benchmark_metadata CSV 'b.csv' must have exactly one data row, found more",
	} {
		if _, err := metadatafile.BenchmarkFromCSV("b.csv", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
