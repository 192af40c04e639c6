package traces

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// TestConversations exports the recorded trials.
func TestConversations(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t, "conversations.json") {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			dir, o := lay(t, c)
			rows := read(t, dir, o)
			if diff := cmp.Diff(lines(vectors.List(c, "rows")), lines(rows)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			checkShareGPT(t, dir, o, c)
			o.Keep = Failure
			if vectors.Bool(c, "is_success") {
				o.Keep = Success
			}
			if diff := cmp.Diff(lines(rows), lines(read(t, dir, o))); diff != "" {
				t.Errorf("with filter %s:\n%s", o.Keep, diff)
			}
			o.Keep = map[Filter]Filter{Success: Failure, Failure: Success}[o.Keep]
			if got := read(t, dir, o); got != nil {
				t.Errorf("with filter %s there are %d rows", o.Keep, len(got))
			}
		})
	}
}

func checkShareGPT(t *testing.T, dir string, o Options, c *value.Object) {
	t.Helper()
	want, recorded := c.Get("sharegpt")
	if !recorded || value.IsNull(want) {
		return
	}
	o.ShareGPT = true
	var got value.List
	for _, row := range read(t, dir, o) {
		got = append(got, vectors.Get(row.(*value.Object), "conversations_sharegpt"))
	}
	if diff := cmp.Diff(lines(want.(value.List)), lines(got)); diff != "" {
		t.Errorf("ShareGPT (-want +got):\n%s", diff)
	}
}

// TestSubagents exports trajectories of subagents.
func TestSubagents(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t, "subagents.json") {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			dir, o := lay(t, c)
			o.Subagents = true
			got := map[string]value.List{}
			for _, r := range read(t, dir, o) {
				row := r.(*value.Object)
				source := vectors.Str(row, "trace_source")
				row.Delete("trace_source")
				got[source] = append(got[source], row)
			}
			if got[mainSource] == nil {
				t.Error("the main trajectory has no row")
			}
			delete(got, mainSource)
			want := vectors.Object(c, "subagents")
			if want.Len() == 0 || want.Len() != len(got) {
				t.Errorf("rows of %d subagents, want %d", len(got), want.Len())
			}
			for key, rows := range want.All() {
				if diff := cmp.Diff(lines(rows.(value.List)), lines(got[key])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

func cases(t *testing.T, file string) []*value.Object {
	t.Helper()
	v, err := value.Decode(vectors.File(t, "traces/"+file))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := v.(value.List)
	if len(list) == 0 {
		t.Fatalf("%s: there is no case in it", file)
	}
	out := make([]*value.Object, len(list))
	for i, item := range list {
		out[i] = item.(*value.Object)
	}
	return out
}

// lay writes the files of a case; options that are not known fail.
func lay(t *testing.T, c *value.Object) (dir string, o Options) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), vectors.Str(c, "trial_dir_name"))
	for name, content := range vectors.Object(c, "files").All() {
		text, isText := content.(value.Str)
		data := []byte(text)
		if !isText {
			data = value.AppendDumps(nil, content, value.DumpsOptions{})
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, v := range vectors.Object(c, "options").All() {
		switch {
		case name == "episodes" && v == value.Str("last"):
			o.Last = true
		case name == "include_instruction":
			o.Instruction = bool(v.(value.Bool))
		case name == "include_verifier_output":
			o.VerifierOutput = bool(v.(value.Bool))
		case name == "embed_tools_in_conversation":
			o.WithoutTools = !bool(v.(value.Bool))
		default:
			t.Fatalf("option %s=%v is not known", name, v)
		}
	}
	return dir, o
}

func read(t *testing.T, dir string, o Options) value.List {
	t.Helper()
	var rows value.List
	if err := Read(dir, o, func(r Row) error { rows = append(rows, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

func lines(list value.List) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, string(value.AppendDumps(nil, v, value.DumpsOptions{})))
	}
	return out
}
