package terminus

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

func cases(t *testing.T, file string) []*value.Object {
	t.Helper()
	v, err := value.Decode(vectors.File(t, file))
	if err != nil {
		t.Fatal(err)
	}
	var list []*value.Object
	for _, item := range v.(value.List) {
		list = append(list, item.(*value.Object))
	}
	if len(list) == 0 {
		t.Fatalf("%s: there is no case in it", file)
	}
	t.Logf("%d cases", len(list))
	return list
}

func TestRecordedJSONAnswers(t *testing.T) {
	t.Parallel()
	testAnswers(t, "terminus/json-responses.json", jsonParser{})
}

func TestRecordedXMLAnswers(t *testing.T) {
	t.Parallel()
	testAnswers(t, "terminus/xml-responses.json", xmlParser{})
}

func testAnswers(t *testing.T, file string, p parser) {
	t.Helper()
	for _, c := range cases(t, file) {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			text, want := vectors.Str(c, "response"), vectors.Object(c, "expect")
			got := p.parse(text)
			if diff := cmp.Diff(expected(want), described(got, want)); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", diff, text)
			}
			if !want.Has("salvage") {
				return
			}
			cut, ok := p.salvage(text)
			salvage, wanted := vectors.Get(want, "salvage").(value.Str)
			if ok != wanted || ok && cut != string(salvage) {
				t.Errorf("salvaged %v %q, want %v %q", ok, cut, wanted, salvage)
			}
		})
	}
}

// expected is what a case expects, warnings sorted.
func expected(want *value.Object) map[string]string {
	var warnings []string
	for _, w := range vectors.List(want, "warnings") {
		warnings = append(warnings, string(w.(value.Str)))
	}
	slices.Sort(warnings)
	return map[string]string{
		"commands": value.Repr(vectors.List(want, "commands")), "complete": value.Repr(vectors.Get(want, "task_complete")),
		"error": vectors.Str(want, "error"), "warnings": strings.Join(warnings, " "),
		"analysis": value.Repr(vectors.Get(want, "analysis")), "plan": value.Repr(vectors.Get(want, "plan")),
		"missing": value.Text(vectors.List(want, "missing")),
	}
}

func described(a *answer, want *value.Object) map[string]string {
	commands := value.List{}
	for _, c := range a.commands {
		o := value.NewObject(2)
		o.Set("keystrokes", value.Str(c.keystrokes))
		o.Set("duration", value.Float(c.seconds))
		commands = append(commands, o)
	}
	var warnings []string
	for _, w := range a.warnings {
		warnings = append(warnings, w.code)
	}
	slices.Sort(warnings)
	failure, missing := "", value.List(nil)
	if a.failure != nil {
		failure = a.failure.code
		if names, ok := strings.CutPrefix(a.failure.text, "Missing required fields: "); ok {
			for name := range strings.SplitSeq(names, ", ") {
				missing = append(missing, value.Str(name))
			}
		}
	}
	text := func(v value.Value) string {
		if v == nil {
			v = value.Str("")
		}
		return value.Repr(v)
	}
	return map[string]string{
		"commands": value.Repr(commands), "complete": value.Repr(value.Bool(a.complete)),
		"error": failure, "warnings": strings.Join(warnings, " "),
		"analysis": text(a.analysis), "plan": text(a.plan), "missing": value.Text(missing),
	}
}

func TestRecordedScreens(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t, "terminus/incremental-output.json") {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			var s screenState
			outputs := vectors.List(c, "outputs")
			for i, v := range vectors.List(c, "captures") {
				o := v.(*value.Object)
				got := s.show(capture{full: vectors.Str(o, "full"), visible: vectors.Str(o, "visible")})
				if want := string(outputs[i].(value.Str)); got != want {
					t.Errorf("capture %d: got %q, want %q", i+1, got, want)
				}
			}
		})
	}
}

func TestRecordedTruncation(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t, "terminus/truncate.json") {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			if got, want := truncate(vectors.Str(c, "input"), vectors.Int(c, "max_bytes")), vectors.Str(c, "output"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestRecordedKeys(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t, "terminus/send-keys.json") {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			var keys []string
			for _, k := range vectors.List(c, "keys") {
				keys = append(keys, string(k.(value.Str)))
			}
			if r := vectors.Object(c, "key_repeat"); r != nil {
				keys = []string{strings.Repeat(vectors.Str(r, "char"), vectors.Int(r, "count"))}
			}
			var got, want value.List
			for _, command := range sendCommands(keys...) {
				if c.Has("commands") {
					got = append(got, value.Str(command))
				} else {
					got = append(got, value.NewInt(int64(len(command))))
				}
			}
			if want = vectors.List(c, "commands"); want == nil {
				want = vectors.List(c, "command_lengths")
			}
			if value.Repr(got) != value.Repr(want) {
				t.Errorf("got %s, want %s", value.Repr(got), value.Repr(want))
			}
		})
	}
}

func TestRecordedFrontMatter(t *testing.T) {
	t.Parallel()
	for _, c := range cases(t, "skills/frontmatter.json") {
		t.Run(vectors.Str(c, "name"), func(t *testing.T) {
			t.Parallel()
			got, ok := frontMatter(vectors.Str(c, "content"))
			want := vectors.Object(c, "result")
			if ok != (want != nil) || ok && (got != skill{vectors.Str(want, "name"), vectors.Str(want, "description")}) {
				t.Errorf("got %v %q, want %s", ok, got, value.Repr(want))
			}
		})
	}
}

func TestRecordedSkillsSections(t *testing.T) {
	t.Parallel()
	var list []struct {
		Name    string
		Files   map[string]string
		Section *string
	}
	if err := json.Unmarshal(vectors.File(t, "skills/terminus-section.json"), &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var files []skillFile
			for path, content := range c.Files {
				files = append(files, skillFile{path, content})
			}
			slices.SortFunc(files, func(a, b skillFile) int { return strings.Compare(a.path, b.path) })
			want := ""
			if c.Section != nil {
				want = *c.Section
			}
			if got := skillsSection(files); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Logf("%d cases", len(list))
}

func FuzzJSONAnswer(f *testing.F) { fuzz(f, jsonParser{}) }

func FuzzXMLAnswer(f *testing.F) { fuzz(f, xmlParser{}) }

// fuzz holds what callers rely on of any answer.
func fuzz(f *testing.F, p parser) {
	f.Helper()
	f.Add(`{"analysis":"a","plan":"p","commands":[{"keystrokes":"ls\n","duration":1e999}]}`)
	f.Add(`{"analysis":{},"plan":[[]],"commands":[{"keystrokes":"\ud800\u0000","duration":NaN}],"task_complete":{}}`)
	f.Add("<response><commands><keystrokes duration='inf'/><x/><x /></commands><task_complete>true</task_complete></response>")
	f.Fuzz(func(t *testing.T, text string) {
		a := p.parse(text)
		if (a.feedback() == "") != (a.failure == nil && len(a.warnings) == 0) {
			t.Errorf("feedback %q of %v, %v", a.feedback(), a.failure, a.warnings)
		}
		if a.failure != nil && len(a.commands) > 0 {
			t.Errorf("there are commands in an answer that failed: %v", a.failure)
		}
		if utf8.ValidString(text) && !utf8.ValidString(a.feedback()+a.message()) {
			t.Errorf("no text: %q, %q", a.feedback(), a.message())
		}
		for _, c := range a.commands {
			if !usableSeconds(c.seconds) || typable(c.keystrokes) != c.keystrokes {
				t.Errorf("command %+v", c)
			}
			for _, shell := range sendCommands(c.keystrokes) {
				if len(shell) > maxSendKeys+1 || strings.ContainsRune(shell, 0) {
					t.Errorf("a command of %d bytes", len(shell))
				}
			}
		}
		if cut, ok := p.salvage(text); ok && (!strings.HasPrefix(text, cut) || p.parse(cut).failure != nil) {
			t.Errorf("salvaged %q", cut)
		}
	})
}
