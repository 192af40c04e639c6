package harbor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/value"
)

// rewritten reads a task.toml, writes it, and checks that the result reads as
// the same configuration.
func rewritten(t *testing.T, text string) string {
	t.Helper()
	cfg, _, err := harbor.ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := cfg.TOML()
	again, _, err := harbor.ParseConfig(out)
	if err != nil {
		t.Fatalf("what was written does not read: %v\n%s", err, out)
	}
	sorted := value.DumpsOptions{Indent: 1, SortKeys: true} // sub-tables come last, so metadata changes its order
	want, got := value.AppendDumps(nil, withoutInfinity(cfg), sorted), value.AppendDumps(nil, again.JSON(), sorted)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("written and read again (-want +got):\n%s", diff)
	}
	return string(out)
}

// withoutInfinity dumps a configuration without what metadata cannot keep.
func withoutInfinity(cfg harbor.Config) *value.Object {
	doc := cfg.JSON()
	metadata, _ := doc.Get("metadata")
	out := &value.Object{}
	for k, v := range metadata.(*value.Object).All() {
		if f, ok := v.(value.Float); !ok || value.FloatRepr(float64(f)) != "inf" {
			out.Set(k, v)
		}
	}
	doc.Set("metadata", out)
	return doc
}

func TestRewriteVectors(t *testing.T) {
	t.Parallel()
	var cases []configCase
	vector(t, "tasks/task-config.json", &cases)
	n := 0
	for _, tt := range cases {
		if tt.TOMLOut == nil && tt.TOMLOutError == "" {
			continue
		}
		n++
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			got := rewritten(t, tt.TOML)
			if tt.TOMLOut == nil {
				return // the reference cannot write it; it only must read back
			}
			if diff := cmp.Diff(*tt.TOMLOut, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Logf("%d documents", n)
}

func TestWriterVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		Strings []struct {
			Value, Written string
			Roundtrips     *bool
		}
		Floats    []struct{ Value, Written string }
		Documents []struct{ Name, Input, Output string }
	}
	vector(t, "tasks/toml-writer.json", &file)
	exact := 0
	for _, tt := range file.Strings {
		got := toml.QuoteString(tt.Value)
		if tt.Roundtrips != nil && *tt.Roundtrips {
			exact++
			if got != tt.Written {
				t.Errorf("%q is written %s, want %s", tt.Value, got, tt.Written)
			}
		}
		doc, err := toml.Decode("a = " + got)
		if err != nil {
			t.Errorf("%q is written %s: %v", tt.Value, got, err)
			continue
		}
		if v, _ := doc.Get("a"); v != value.Str(tt.Value) {
			t.Errorf("%q is written %s and reads as %v", tt.Value, got, v)
		}
	}
	for _, tt := range file.Floats {
		f, err := value.ParseFloat(tt.Value)
		if err != nil {
			t.Fatal(err)
		}
		doc := &value.Object{}
		doc.Set("f", f)
		if got := toml.Encode(doc); got != "f = "+tt.Written+"\n" {
			t.Errorf("%s is written %q", tt.Value, got)
		}
	}
	for _, tt := range file.Documents {
		if diff := cmp.Diff(tt.Output, rewritten(t, tt.Input)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.Name, diff)
		}
	}
	t.Logf("%d strings, %d of them byte by byte, %d floats, %d documents", len(file.Strings), exact, len(file.Floats), len(file.Documents))
}

func TestWriterMakesValidTOML(t *testing.T) {
	t.Parallel()
	got := rewritten(t, "artifacts = [\"/a\", {source = \"/b\", exclude = [\"*.o\"]}]\n[metadata]\n\"\" = [[{a = 1}], \"\\u0000\\\\x41\"]\n\"a\\nb\" = 1\n")
	want := "schema_version = \"1.3\"\nartifacts = [ \"/a\", {source = \"/b\", exclude = [ \"*.o\",]},]\n\n[metadata]\n" +
		"\"\" = [ [ {a = 1},], \"\\u0000\\\\x41\",]\n\"a\\nb\" = 1\n\n"
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzWriter(f *testing.F) {
	f.Add("[metadata]\na = [[1, {b = \"\\u0001\"}]]\n[metadata.\"x y\"]\n[[metadata.t]]\n[metadata.t.u]\nz = 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, _, err := harbor.ParseConfig([]byte(text))
		if err != nil {
			return
		}
		if _, _, err := harbor.ParseConfig(cfg.TOML()); err != nil {
			t.Errorf("%q is written as\n%s\nwhich does not read: %v", text, cfg.TOML(), err)
		}
	})
}
