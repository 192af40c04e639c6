package schema_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

type step struct {
	Name    string
	Retries int
	User    string
	Limit   *float64
	Env     schema.Map[string]
	Mode    string
}

func stepFields(f *schema.Fields) step {
	return step{
		Name:    schema.Required(f, "name", schema.Str),
		Retries: schema.Default(f, "retries", 3, schema.AtLeast(0, schema.SmallInt)),
		User:    schema.Default(f, "user", "", decodeUser),
		Limit:   schema.Optional(f, "limit", schema.Float),
		Env:     schema.Default(f, "env", schema.Map[string]{}, schema.Dict(schema.Str)),
		Mode:    schema.Default(f, "mode", "mean", schema.Enum("mean", "final")),
	}
}

func decodeUser(c *schema.Cursor, v value.Value) (string, bool) {
	return schema.Union(
		schema.As("str", schema.Str, func(s string) string { return s }),
		schema.As("int", schema.Int, value.Int.String),
	)(c, v)
}

func decode(t *testing.T, text string) value.Value {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestModel(t *testing.T) {
	t.Parallel()
	doc := decode(t, `{"name":"a","retries":"2","user":1.0,"limit":1,"env":{"B":"x","A":"y"},"other":{"deep":1}}`)
	got, report, err := schema.Validate(doc, schema.Model("Step", stepFields))
	if err != nil {
		t.Fatal(err)
	}
	if got.Name != "a" || got.Retries != 2 || got.User != "1" || *got.Limit != 1 || got.Mode != "mean" {
		t.Errorf("decoded %+v", got)
	}
	var order []string
	for k, v := range got.Env.All() {
		order = append(order, k+"="+v)
	}
	if diff := cmp.Diff([]string{"B=x", "A=y"}, order); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.Location{{"other"}}, report.Unknown); diff != "" {
		t.Errorf("unknown keys (-want +got):\n%s", diff)
	}
}

func TestErrorsAreCollectedInFieldOrder(t *testing.T) {
	t.Parallel()
	doc := decode(t, `{"mode":"MEAN","retries":-1,"user":1.5,"limit":"x","env":{"API_KEY":5,"B":"ok"}}`)
	_, _, err := schema.Validate(doc, schema.Model("Step", stepFields))
	list, ok := errors.AsType[*schema.Errors](err)
	if !ok {
		t.Fatalf("error is %T: %v", err, err)
	}
	var got []string
	for _, e := range list.List {
		got = append(got, e.Loc.String()+" "+e.Type)
	}
	want := []string{
		"name missing", "retries greater_than_equal", "user.str string_type", "user.int int_from_float",
		"limit float_parsing", "env.API_KEY string_type", "mode enum",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(err.Error(), "7 validation errors for Step\nname\n  Field required [type=missing, input_value=") {
		t.Errorf("text starts %q", err.Error())
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, doc, want string }{
		{"one error", `{"name":5}`, `1 validation error for Step
name
  Input should be a valid string [type=string_type, input_value=5, input_type=int]
    For further information visit https://errors.pydantic.dev/2.13/v/string_type`},
		{"no table", `[1]`, `1 validation error for Step
  Input should be a valid dictionary or instance of Step [type=model_type, input_value=[1], input_type=list]
    For further information visit https://errors.pydantic.dev/2.13/v/model_type`},
		{"long input is cut", `{"name":["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"]}`, `1 validation error for Step
name
  Input should be a valid string [type=string_type, input_value=['aaaaaaaaaaaaaaaaaaaaaaa...bbbbbbbbbbbbbbbbbbbbbb'], input_type=list]
    For further information visit https://errors.pydantic.dev/2.13/v/string_type`},
		{"secrets are masked", `{"name":{"API_KEY":"s3cret"}}`, `1 validation error for Step
name
  Input should be a valid string [type=string_type, input_value={'API_KEY': '****'}, input_type=dict]
    For further information visit https://errors.pydantic.dev/2.13/v/string_type`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := schema.Validate(decode(t, tt.doc), schema.Model("Step", stepFields))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnionPrefersTheExactBranch(t *testing.T) {
	t.Parallel()
	number := schema.Union(
		schema.As("float", schema.Float, func(f float64) string { return fmt.Sprintf("float %v", f) }),
		schema.As("int", schema.Int, func(n value.Int) string { return "int " + n.String() }),
		schema.As("bool", schema.Bool, func(b bool) string { return fmt.Sprintf("bool %v", b) }),
	)
	for doc, want := range map[string]string{
		"1": "int 1", "1.0": "float 1", "true": "bool true", `"7"`: "float 7", "1e400": "float +Inf",
	} {
		got, _, err := schema.Validate(decode(t, doc), number)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", doc, got, err, want)
		}
	}
}

func TestRulesRunAroundTheFields(t *testing.T) {
	t.Parallel()
	rename := func(c *schema.Cursor, v value.Value) (value.Value, error) {
		obj, ok := v.(*value.Object)
		if !ok || !obj.Has("title") {
			return v, nil
		}
		c.Warn("title is old")
		title, _ := obj.Get("title")
		out := &value.Object{}
		out.Set("name", title)
		return out, nil
	}
	check := func(s step) (step, error) {
		if s.Name == "bad" {
			return s, errors.New("name is bad")
		}
		return s, nil
	}
	d := schema.List(schema.Before(rename, schema.After(schema.Model("Step", stepFields), check)))
	got, report, err := schema.Validate(decode(t, `[{"title":"t"}]`), d)
	if err != nil || got[0].Name != "t" || len(report.Warnings) != 1 || report.Warnings[0].Loc.String() != "0" {
		t.Errorf("%+v, %+v, %v", got, report, err)
	}
	_, _, err = schema.Validate(decode(t, `[{"name":"bad"}]`), d)
	list, ok := errors.AsType[*schema.Errors](err)
	if !ok || list.List[0].Loc.String() != "0" || list.List[0].Msg != "Value error, name is bad" {
		t.Errorf("error %v", err)
	}
}

func TestTemporalsFitNowhereButAnywhere(t *testing.T) {
	t.Parallel()
	date, err := schema.Date(2024, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = schema.Validate[string](date, schema.Str)
	if err == nil || !strings.Contains(err.Error(), "input_value=datetime.date(2024, 1, 2), input_type=date]") {
		t.Errorf("date as string: %v", err)
	}
	obj := &value.Object{}
	obj.Set("d", value.List{date})
	got, _, err := schema.Validate(value.Value(obj), schema.Object)
	if err != nil || value.Repr(got) != "{'d': ['2024-01-02']}" {
		t.Errorf("free table: %v, %v", got, err)
	}
}

func TestFloatText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		" 1.5\t": 1.5, "1_000": 1000, "1_e5": 1e5, "-inf": math.Inf(-1), ".5": .5, "1.": 1,
	} {
		got, _, err := schema.Validate[float64](value.Str(text), schema.Float)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "_1", "1__0", " 1_000 ", "0x10", "1,5", "one"} {
		if got, _, err := schema.Validate[float64](value.Str(text), schema.Float); err == nil {
			t.Errorf("%q is accepted as %v", text, got)
		}
	}
}

func TestCleanPath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": ".", "./": ".", "/": "/", "//": "//", "///a": "/a", "//two/x": "//two/x", "/..": "/..",
		"./out//jobs/./x/": "out/jobs/x", "../a/../b/": "../a/../b", "~/t": "~/t",
	} {
		if got := schema.CleanPath(in); got != want {
			t.Errorf("CleanPath(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzValidate(f *testing.F) {
	for _, seed := range []string{`{"name":"a"}`, `{"user":[],"env":{"a":1}}`, `{"limit":"1_0","mode":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := value.Decode([]byte(text))
		if err != nil {
			return
		}
		if _, _, err := schema.Validate(doc, schema.Model("Step", stepFields)); err != nil && err.Error() == "" {
			t.Error("an error without text")
		}
	})
}

func ExampleValidate() {
	doc, _ := value.Decode([]byte(`{"name": "build", "retries": "many"}`))
	_, _, err := schema.Validate(doc, schema.Model("Step", stepFields))
	if list, ok := errors.AsType[*schema.Errors](err); ok {
		fmt.Println(strings.Join(list.Brief(), "\n"))
	}
	// Output:
	// retries: Input should be a valid integer, unable to parse string as an integer
}

func TestClosed(t *testing.T) {
	t.Parallel()
	closed := schema.Closed("Step", func(f *schema.Fields) string { return schema.Required(f, "name", schema.Str) })
	if got, report, err := schema.Validate(decode(t, `{"name":"a"}`), closed); err != nil || got != "a" || report.Unknown != nil {
		t.Errorf("got %q, %v, %v", got, report, err)
	}
	// Unknown keys come last, and rules are not asked then.
	ruled := schema.After(closed, func(string) (string, error) { return "", errors.New("asked") })
	_, _, err := schema.Validate(decode(t, `{"b":[],"name":1,"c":2}`), schema.List(ruled))
	if err == nil {
		t.Fatal("a table is no list")
	}
	_, _, err = schema.Validate(decode(t, `[{"b":[],"name":"x","c":2},{"name":1,"d":null}]`), schema.List(ruled))
	bad, ok := errors.AsType[*schema.Errors](err)
	if !ok {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"0.b: Extra inputs are not permitted", "0.c: Extra inputs are not permitted",
		"1.name: Input should be a valid string", "1.d: Extra inputs are not permitted",
	}, bad.Brief()); diff != "" {
		t.Error(diff)
	}
	if e := bad.List[1]; e.Type != "extra_forbidden" || value.Repr(e.Input) != "2" {
		t.Errorf("%+v", e)
	}
}

// TestPlainText: what people read has no word of the library whose texts are recorded,
// names every place, shows plain values, and hides those under names of credentials.
func TestPlainText(t *testing.T) {
	t.Parallel()
	model := schema.Model("M", func(f *schema.Fields) int {
		schema.Optional(f, "key", schema.SmallInt)
		schema.Optional(f, "table", schema.Dict(schema.Str))
		return schema.Required(f, "n", schema.SmallInt)
	})
	for doc, want := range map[string]string{
		`{"n":"x"}`:                   "n: should be a valid integer, unable to parse string as an integer (it is 'x')",
		`3`:                           "should be a table of keys and values (it is 3)",
		`{}`:                          "n: it is required",
		`{"n":[1]}`:                   "n: should be a valid integer",
		`{"n":1,"key":"sk-12345678"}`: "key: should be a valid integer, unable to parse string as an integer (it is '****')",
		`{"table":[],"n":1.5}`:        "2 problems\n  table: should be a table of keys and values\n  n: should be a valid integer, got a number with a fractional part (it is 1.5)",
	} {
		_, _, err := schema.Validate(decode(t, doc), model)
		bad, ok := errors.AsType[*schema.Errors](err)
		if !ok {
			t.Fatalf("%s: %v", doc, err)
		}
		if got := bad.PlainText(); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", doc, got, want)
		}
	}
}

// TestUnionPlaces has unions below others: their branches' errors and unknown
// keys are named by their whole path.
func TestUnionPlaces(t *testing.T) {
	t.Parallel()
	model := schema.Model("M", func(f *schema.Fields) int { return schema.Required(f, "n", schema.SmallInt) })
	inner := schema.Union(schema.As("int", schema.SmallInt, func(n int) int { return n }), schema.As("M", model, func(n int) int { return n }))
	outer := schema.Union(schema.As("str", schema.Str, func(string) []int { return nil }), schema.As("list", schema.List(inner), func(l []int) []int { return l }))
	doc := schema.Dict(outer)
	_, report, err := schema.Validate(decode(t, `{"a":[1,{"n":2,"x":3}]}`), doc)
	if err != nil || len(report.Unknown) != 1 || report.Unknown[0].String() != "a.1.x" {
		t.Errorf("got %v, %v", report.Unknown, err)
	}
	_, _, err = schema.Validate(decode(t, `{"a":[1,{"n":"q"}]}`), doc)
	bad, ok := errors.AsType[*schema.Errors](err)
	if !ok {
		t.Fatal(err)
	}
	var got []string
	for _, e := range bad.List {
		got = append(got, e.Loc.String())
	}
	if diff := cmp.Diff([]string{"a.str", "a.list.1.int", "a.list.1.M.n"}, got); diff != "" {
		t.Error(diff)
	}
}
