package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

func decoded(t *testing.T, file string) value.Value {
	t.Helper()
	v, err := value.Decode(vectors.File(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCoerce: null stands for no value everywhere but in the coercion itself.
func TestCoerce(t *testing.T) {
	t.Parallel()
	cases := decoded(t, "agents/coerce.json").(value.List)
	if len(cases) == 0 {
		t.Fatal("there is no case")
	}
	for i, item := range cases {
		c := item.(*value.Object)
		s, given := described(c), vectors.Get(c, "value")
		s.Name = "k"
		t.Run(fmt.Sprintf("%d %s %s", i, s.Kind, value.Repr(given)), func(t *testing.T) {
			t.Parallel()
			wantErr := vectors.Str(c, "error_type")
			got, want := s.coerce(given)
			if wantErr != "" && want == "" {
				t.Errorf("got %s, want %s", value.Repr(got), wantErr)
			}
			text, set, err := s.Value(given, nil)
			switch {
			case value.IsNull(given):
				if set || err != nil {
					t.Errorf("got %q, %v, want no value", text, err)
				}
			case wantErr != "":
				if exception.TypeOf(err) != wantErr || !strings.Contains(err.Error(), vectors.Str(c, "error_contains")) {
					t.Errorf("got %q, %v, want %s", text, err, wantErr)
				}
			case err != nil || !set:
				t.Error(set, err)
			case !same(got, vectors.Get(c, "result")):
				t.Errorf("got %s, want %s", value.Repr(got), value.Repr(vectors.Get(c, "result")))
			}
		})
	}
}

func same(a, b value.Value) bool {
	return value.TypeName(a) == value.TypeName(b) && value.Repr(a) == value.Repr(b)
}

// described reads a descriptor of the reference.
func described(o *value.Object) Setting {
	s := Setting{
		Name: vectors.Str(o, "kwarg"), Flag: vectors.Str(o, "cli"), Format: vectors.Str(o, "format"), Env: vectors.Str(o, "env"),
		Kind: Kind(vectors.Str(o, "type")), Default: vectors.Get(o, "default"), HostEnv: vectors.Str(o, "env_fallback"),
		True: vectors.Str(o, "bool_true"), False: vectors.Str(o, "bool_false"),
	}
	if s.Format != "" {
		s.Flag = ""
	}
	for _, c := range vectors.List(o, "choices") {
		s.Choices = append(s.Choices, string(c.(value.Str)))
	}
	return s
}

// quoted are the flags of the reference that reach the program as something else than
// what was asked for, and ours.
var quoted = map[string]string{
	"--effort high --quiet -c model=gpt --text two words": "--effort high --quiet -c model=gpt --text 'two words'",
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o := decoded(t, "agents/flags.json").(*value.Object)
	var all []Setting
	for _, list := range []string{"flags", "env_vars"} {
		for _, d := range vectors.List(o, list) {
			all = append(all, described(d.(*value.Object)))
		}
	}
	for _, s := range all {
		if err := s.Check(); err != nil {
			t.Error(err)
		}
	}
	cases, differ := vectors.List(o, "cases"), 0
	if len(cases) == 0 || len(all) == 0 {
		t.Fatal("there is no case")
	}
	for i, item := range cases {
		c := item.(*value.Object)
		host := func(name string) (string, bool) {
			v, there := vectors.Object(c, "host_env").Get(name)
			s, _ := v.(value.Str)
			return string(s), there
		}
		words, env, values, err := Flags(all, vectors.Object(c, "kwargs"), host)
		if want := vectors.Str(c, "error_type"); want != "" || err != nil {
			if exception.TypeOf(err) != want {
				t.Errorf("case %d: got error %v, want %q", i, err, want)
			}
			continue
		}
		want := vectors.Str(c, "flags")
		if ours, ok := quoted[want]; ok {
			want = ours
			differ++
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("case %d: got flags %s, want %s", i, got, want)
		}
		var wantEnv []string
		for key, v := range vectors.Object(c, "env").All() {
			wantEnv = append(wantEnv, key+"="+string(v.(value.Str)))
		}
		if diff := cmp.Diff(wantEnv, env); diff != "" {
			t.Errorf("case %d: variables (-want +got):\n%s", i, diff)
		}
		for _, s := range all {
			given, _ := vectors.Object(c, "kwargs").Get(s.Name)
			text, set, err := s.Value(given, host)
			if got, there := values[s.Name]; err != nil || set != there || got != text {
				t.Errorf("case %d: %s is %q, %v, and alone %q, %v, %v", i, s.Name, got, there, text, set, err)
			}
		}
	}
	if differ != len(quoted) {
		t.Errorf("%d cases are quoted, want %d", differ, len(quoted))
	}
}

// TestHostile: whatever a value holds, it stays one word, and what no program can be
// given is refused.
func TestHostile(t *testing.T) {
	t.Parallel()
	text := Setting{Name: "t", Flag: "--t", Env: "T"}
	in := Setting{Name: "f", Format: "-c  a={value} {value}"}
	given := value.NewObject(2)
	for v, want := range map[string][]string{
		"$(reboot)":       {"--t", "'$(reboot)'", "-c", "'a=$(reboot)'", "'$(reboot)'"},
		"a'b\n; c":        {"--t", "'a'\"'\"'b\n; c'", "-c", "'a=a'\"'\"'b\n; c'", "'a'\"'\"'b\n; c'"},
		"":                {"--t", "''", "-c", "a=", "''"},
		"{value} {value}": {"--t", "'{value} {value}'", "-c", "'a={value} {value}'", "'{value} {value}'"},
		"--effort=high":   {"--t", "--effort=high", "-c", "a=--effort=high", "--effort=high"},
		"nul\x00":         nil,
		"\xed\xa0\x80":    nil,
		string(long(1)):   nil,
	} {
		given.Set("t", value.Str(v))
		given.Set("f", value.Str(v))
		words, env, values, err := Flags([]Setting{text, in}, given, nil)
		if want == nil {
			if exception.TypeOf(err) != exception.ValueError || len(err.Error()) > 200 {
				t.Errorf("%.20q: got %v", v, err)
			}
			continue
		}
		if err != nil || !slices.Equal(words, want) || !slices.Equal(env, []string{"T=" + v}) || values["t"] != v {
			t.Errorf("%q: got %q, %q, %q, %v", v, words, env, values, err)
		}
	}
	given.Set("t", value.Str(long(0)))
	given.Delete("f")
	if _, _, values, err := Flags([]Setting{text, in}, given, nil); err != nil || len(values) != 1 {
		t.Errorf("the longest text: %d values, %v", len(values), err)
	}
}

func long(more int) []byte { return []byte(strings.Repeat("x", MaxText+more)) }

func TestValue(t *testing.T) {
	t.Parallel()
	host := func(name string) (string, bool) { return "HOST", name == "H" }
	for name, c := range map[string]struct {
		s     Setting
		given value.Value
		want  string
		set   bool
	}{
		"nothing":               {Setting{}, nil, "", false},
		"another variable":      {Setting{HostEnv: "I", Default: value.Str("d")}, nil, "d", true},
		"variable":              {Setting{HostEnv: "H", Default: value.Str("d")}, nil, "HOST", true},
		"given":                 {Setting{HostEnv: "H"}, value.Str(""), "", true},
		"null":                  {Setting{HostEnv: "H", Default: value.Str("d")}, value.Null{}, "", false},
		"null by default":       {Setting{Default: value.Null{}}, nil, "", false},
		"choice of a variable":  {Setting{Kind: Enum, Choices: []string{"xHost", "Host"}, HostEnv: "H"}, nil, "Host", true},
		"default of a bool":     {Setting{Kind: Bool, Default: value.Bool(false)}, nil, "false", true},
		"words of a bool":       {Setting{Kind: Bool, True: "on", False: "off"}, value.Str("No"), "off", true},
		"bool in a format":      {Setting{Kind: Bool, Format: "x={value}"}, value.Bool(true), "true", true},
		"large number":          {Setting{Kind: Int}, value.Float(1e22), "10000000000000000000000", true},
		"number of other signs": {Setting{Kind: Int}, value.Str("\u0663 "), "3", true},
	} {
		text, set, err := c.s.Value(c.given, host)
		if text != c.want || set != c.set || err != nil {
			t.Errorf("%s: got %q, %v, %v", name, text, set, err)
		}
	}
	for _, v := range []value.Value{value.Float(1.5), nan(), value.List{}, &value.Object{}} {
		if text, _, err := (Setting{Name: "n", Kind: Int}).Value(v, nil); exception.TypeOf(err) != exception.ValueError {
			t.Errorf("%s: got %q, %v", value.Repr(v), text, err)
		}
	}
	_, _, err := Setting{Name: "n", Kind: Int, HostEnv: "H"}.Value(nil, host)
	if want := "Invalid value for 'n': 'HOST' of the variable H, want a whole number"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func nan() value.Float {
	f, _ := value.FloatLiteral("nan")
	return f
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := Setting{Name: "reasoning-effort_2", Flag: "--effort", Kind: Enum, Choices: []string{"low"}, Default: value.Str("low"), HostEnv: "E"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	bad := map[string]func(*Setting){
		"letters":         func(s *Setting) { s.Name = "a b" },
		"must be str":     func(s *Setting) { s.Kind = "float" },
		"be choices":      func(s *Setting) { s.Choices = nil },
		"nowhere else":    func(s *Setting) { s.Kind = Text },
		"type bool":       func(s *Setting) { s.True = "1" },
		"a format":        func(s *Setting) { s.Format = "x" },
		"begins with -":   func(s *Setting) { s.Flag = "effort" },
		"one word":        func(s *Setting) { s.Flag = "-c model" },
		"lacks {value}":   func(s *Setting) { s.Flag, s.Format = "", "-c" },
		"variables must":  func(s *Setting) { s.Env = "1A" },
		"variables":       func(s *Setting) { s.HostEnv = "A=B" },
		"its default":     func(s *Setting) { s.Default = value.Str("high") },
		"default: Invali": func(s *Setting) { s.Kind, s.Choices = Int, nil },
	}
	for _, want := range slices.Sorted(maps.Keys(bad)) {
		s := good
		bad[want](&s)
		if err := s.Check(); exception.TypeOf(err) != exception.ValueError || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
