package junit_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/job/junit"
)

var update = flag.Bool("update", false, "write the golden files")

func write(t testing.TB, r *junit.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	checkSchema(t, b.Bytes())
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	golden(t, "states.xml", write(t, &junit.Report{Name: "a job", Suites: []junit.Suite{
		{
			Name: "oracle__tasks", Started: time.Date(2026, 6, 9, 10, 0, 0, 5e8, time.FixedZone("", 7200)),
			Properties: []junit.Property{{Name: "agent", Value: "oracle"}, {Name: "odd", Value: "a\nb\t\"<&>'"}},
			Cases: []junit.Case{
				{Name: "good", Class: "oracle__tasks", Time: 1500 * time.Millisecond, Output: "trial: good__1234567\n"},
				{Name: "half", Class: "oracle__tasks", Time: time.Second, State: junit.Failed, Type: "RewardBelowThreshold", Message: "reward is 0.5, below 1.0"},
				{Name: "bad", Class: "oracle__tasks", State: junit.Errored, Type: "RuntimeError", Message: "colour \x1b[31m, nul \x00, half \xff, no char \uFFFE", Body: "]]> <b>\r\nsecond"},
				{Name: "later", Class: "oracle__tasks", Time: -time.Second, State: junit.Skipped, Message: "pending"},
			},
		},
		{Name: "empty"},
	}}))
}

func TestWriteBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 1<<20)
	text := write(t, &junit.Report{Name: long, Suites: []junit.Suite{{Name: long, Cases: []junit.Case{
		{Name: long, Class: long, State: junit.Errored, Type: long, Message: long, Body: long, Output: long},
	}}}})
	if len(text) > 64<<10 || !strings.Contains(text, "bytes left out)") {
		t.Errorf("%d bytes", len(text))
	}
}

func TestReadJobs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ dir, options string }{{"mixed-oracle", "1"}, {"mixed-oracle", "0.3"}, {"multi-oracle", "1"}, {"multi-oracle", "0.1,speed"}} {
		t.Run(tt.dir+" "+tt.options, func(t *testing.T) {
			t.Parallel()
			at, name, _ := strings.Cut(tt.options, ",")
			passAt, err := strconv.ParseFloat(at, 64)
			if err != nil {
				t.Fatal(err)
			}
			r, err := junit.Read(t.Context(), filepath.Join("../../jobdir/testdata/jobs", tt.dir), junit.Options{PassAt: passAt, Reward: name})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tt.dir+"-"+strings.ReplaceAll(tt.options, ",", "-")+".xml", write(t, r))
		})
	}
}

// Of a job that was killed, what has no result is skipped, and what cannot be
// read is an error.
func TestReadUnfinished(t *testing.T) {
	t.Parallel()
	for _, lock := range []bool{true, false} {
		t.Run(fmt.Sprint("lock ", lock), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "job")
			if err := os.CopyFS(dir, os.DirFS("../../jobdir/testdata/jobs/mixed-oracle")); err != nil {
				t.Fatal(err)
			}
			for _, remove := range []string{"tenth__6fLdomV/result.json", "tenth__B2oVujP"} {
				if err := os.RemoveAll(filepath.Join(dir, remove)); err != nil {
					t.Fatal(err)
				}
			}
			if !lock {
				if err := os.Remove(filepath.Join(dir, "lock.json")); err != nil {
					t.Fatal(err)
				}
			}
			r, err := junit.Read(t.Context(), dir, junit.Options{PassAt: 1})
			if err != nil {
				t.Fatal(err)
			}
			var pending []string
			for _, s := range r.Suites {
				for _, c := range s.Cases {
					if c.State == junit.Skipped {
						pending = append(pending, s.Name+" "+c.Name)
					}
				}
			}
			want := []string{"oracle__mixed tenth", "oracle__mixed tenth #2"}
			if !lock {
				want = []string{"unfinished tenth__6fLdomV", "unfinished pending #2"}
			}
			if !slices.Equal(pending, want) {
				t.Errorf("pending %q, want %q", pending, want)
			}
			write(t, r)
			if err := os.WriteFile(filepath.Join(dir, "third__BrSvs2b", "result.json"), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
			r, err = junit.Read(t.Context(), dir, junit.Options{PassAt: 1})
			if err != nil {
				t.Fatal(err)
			}
			if text := write(t, r); strings.Count(text, `type="UnreadableResult"`) != 1 {
				t.Error("the unreadable result is not named")
			}
		})
	}
	if _, err := junit.Read(t.Context(), t.TempDir(), junit.Options{}); err == nil {
		t.Error("an empty directory is a job")
	}
	if _, err := junit.Read(t.Context(), "nowhere", junit.Options{}); err == nil {
		t.Error("nothing is a job")
	}
}

// element is what the schema says of an element: its attributes, those that it
// must have, and its children in order; "*" behind one means any number.
type element struct {
	attributes, required, children []string
	number                         []string // attributes that are numbers
}

// The schema of Jenkins for JUnit 10, as far as the report uses it.
var schema = map[string]element{
	"testsuites": {[]string{"name", "time", "tests", "failures", "disabled", "errors"}, nil, []string{"testsuite*"}, []string{"time", "tests", "failures", "errors"}},
	"testsuite": {
		[]string{"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url", "version"},
		[]string{"name", "tests"}, []string{"properties", "testcase*", "system-out", "system-err"}, []string{"tests", "failures", "errors", "time", "skipped"},
	},
	"properties": {nil, nil, []string{"property*"}, nil},
	"property":   {[]string{"name", "value"}, []string{"name", "value"}, nil, nil},
	"testcase":   {[]string{"classname", "name", "time", "group"}, []string{"name"}, []string{"skipped", "error", "failure", "system-out", "system-err"}, []string{"time"}},
	"skipped":    {[]string{"type", "message"}, nil, nil, nil},
	"error":      {[]string{"type", "message"}, nil, nil, nil},
	"failure":    {[]string{"type", "message"}, nil, nil, nil},
	"system-out": {},
}

// checkSchema checks a document against the schema, its counts against its
// cases, and its characters against XML 1.0.
func checkSchema(t testing.TB, data []byte) {
	t.Helper()
	if !utf8.Valid(data) || regexp.MustCompile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]").Match(data) {
		t.Error("characters that XML cannot have")
	}
	type open struct {
		name  string
		child int // position among the schema's children
		count map[string]int
		attrs map[string]string
	}
	stack := []*open{}
	dec := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("no XML: %v\n%s", err, data)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			rule, known := schema[name]
			if !known {
				t.Fatalf("unknown element %s", name)
			}
			o := &open{name: name, count: map[string]int{}, attrs: map[string]string{}}
			for _, a := range token.Attr {
				o.attrs[a.Name.Local] = a.Value
				if !slices.Contains(rule.attributes, a.Name.Local) {
					t.Errorf("%s must not have attribute %s", name, a.Name.Local)
				}
				if _, err := strconv.ParseFloat(a.Value, 64); slices.Contains(rule.number, a.Name.Local) && err != nil {
					t.Errorf("%s of %s is not a number: %q", a.Name.Local, name, a.Value)
				}
			}
			for _, a := range rule.required {
				if _, ok := o.attrs[a]; !ok {
					t.Errorf("%s needs attribute %s", name, a)
				}
			}
			if at := o.attrs["timestamp"]; at != "" {
				if _, err := time.Parse("2006-01-02T15:04:05", at); err != nil {
					t.Error(err)
				}
			}
			if len(stack) == 0 && name != "testsuites" {
				t.Errorf("the root is %s", name)
			}
			for i, parent := range stack {
				if i == len(stack)-1 {
					children := schema[parent.name].children
					for parent.child < len(children) && strings.TrimSuffix(children[parent.child], "*") != name {
						parent.child++
					}
					if parent.child == len(children) {
						t.Fatalf("%s has no place in %s, or not there", name, parent.name)
					}
					if !strings.HasSuffix(children[parent.child], "*") {
						parent.child++
					}
				}
				parent.count[name]++
			}
			stack = append(stack, o)
		case xml.EndElement:
			o := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for attr, child := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"} {
				if text, ok := o.attrs[attr]; ok && text != strconv.Itoa(o.count[child]) {
					t.Errorf("%s: %s is %s, and there are %d", o.name, attr, text, o.count[child])
				}
			}
			if o.name == "testcase" && o.count["failure"]+o.count["error"]+o.count["skipped"] > 1 {
				t.Error("a test case has several outcomes")
			}
		}
	}
}

// Whatever tasks and agents put into names and messages, the file is XML.
func FuzzWrite(f *testing.F) {
	f.Add("a", "b\x00\x1b", "]]>\xff", uint8(1))
	f.Add("&#0;", "<!--", "\uFFFE\uFFFF\U0010FFFF", uint8(2))
	f.Fuzz(func(t *testing.T, name, message, body string, state uint8) {
		write(t, &junit.Report{Name: name, Suites: []junit.Suite{{
			Name: name, Properties: []junit.Property{{Name: "p", Value: body}},
			Cases: []junit.Case{{Name: message, Class: name, State: junit.State(state % 4), Type: name, Message: message, Body: body, Output: body}},
		}}})
	})
}
