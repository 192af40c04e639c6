package cube_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/internal/democube"
	"github.com/proctor-run/proctor/cube/shell"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// vcase is one case of a vector file.
type vcase struct{ *cube.Object }

func (c vcase) id() string { return c.str("id") }

func (c vcase) value(key string) cube.Value {
	v, _ := c.Get(key)
	return v
}

// has reports whether the key is there and not null.
func (c vcase) has(key string) bool { return !value.IsNull(c.value(key)) }

func (c vcase) str(key string) string {
	s, _ := c.value(key).(cube.Str)
	return string(s)
}

func (c vcase) num(key string) int {
	n, _ := c.value(key).(cube.Int)
	i, _ := n.Int64()
	return int(i)
}

func (c vcase) flag(key string) bool {
	b, _ := c.value(key).(cube.Bool)
	return bool(b)
}

func (c vcase) obj(key string) vcase {
	o, _ := c.value(key).(*cube.Object)
	if o == nil {
		o = value.NewObject(0)
	}
	return vcase{o}
}

func (c vcase) list(key string) cube.List {
	l, _ := c.value(key).(cube.List)
	return l
}

func (c vcase) strs(key string) []string { return stringsOf(c.list(key)) }

func stringsOf(l cube.List) []string {
	out := []string{}
	for _, v := range l {
		s, _ := v.(cube.Str)
		out = append(out, string(s))
	}
	return out
}

// eachCase runs every case of a vector file as a subtest.
func eachCase(t *testing.T, file string, f func(t *testing.T, c vcase)) {
	t.Helper()
	v, err := value.Decode(vectors.File(t, "cube/"+file))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	cases := vcase{v.(*cube.Object)}.list("cases")
	if len(cases) == 0 {
		t.Fatalf("%s has no cases", file)
	}
	for _, item := range cases {
		c := vcase{item.(*cube.Object)}
		t.Run(c.id(), func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
	t.Logf("%s: %d cases", file, len(cases))
}

func compact(v cube.Value) string { return string(value.AppendPydantic(nil, v, 0)) }

// sameJSON compares values by their compact text.
func sameJSON(t *testing.T, what string, got, want cube.Value) {
	t.Helper()
	if diff := cmp.Diff(compact(want), compact(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func marshal(t *testing.T, v cube.Typed) string {
	t.Helper()
	data, err := cube.Marshal(v)
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	return string(data)
}

func registry(t testing.TB, opts cube.Options) *cube.Registry {
	t.Helper()
	return registryWith(t, opts, nil)
}

func registryWith(t testing.TB, opts cube.Options, log *democube.Log) *cube.Registry {
	t.Helper()
	r := cube.NewRegistry(opts)
	if err := errors.Join(democube.Register(r, log), shell.Register(r)); err != nil {
		t.Fatal(err)
	}
	return r
}

// lenient are the cases of which only the failure is fixed.
var lenient = []string{
	"unknown-module", "unknown-class", "type-not-string", "type-null",
	"type-names-abstract-itself", "type-without-dot", "type-empty",
}

// checkError compares an error with a recorded one.
func checkError(t *testing.T, id string, err error, want vcase) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", compact(want.Object))
	}
	if slices.Contains(lenient, id) {
		checkTypedLoad(t, err)
		return
	}
	if want.str("kind") == "ValidationError" {
		checkValidation(t, err, want)
		return
	}
	if got := innermostType(err); got != want.str("kind") {
		t.Errorf("error %v has class %s, want %s", err, got, want.str("kind"))
	}
	if msg := want.str("message"); msg != "<any>" && !hasMessage(err, msg) {
		t.Errorf("error\n got %q\nwant %q", err, msg)
	}
}

func checkTypedLoad(t *testing.T, err error) {
	t.Helper()
	if _, ok := errors.AsType[*cube.ValidationError](err); !ok {
		t.Errorf("%v is not a typed-load error", err)
	}
}

func checkValidation(t *testing.T, err error, want vcase) {
	t.Helper()
	got, ok := errors.AsType[*cube.ValidationError](err)
	if !ok {
		t.Fatalf("%v is not a validation error", err)
	}
	wants := want.list("errors")
	if len(got.Errors) != len(wants) {
		t.Fatalf("%d errors, want %d: %v", len(got.Errors), len(wants), got)
	}
	for i, item := range wants {
		w := vcase{item.(*cube.Object)}
		if diff := cmp.Diff(w.strs("loc"), append([]string{}, got.Errors[i].Loc...)); diff != "" {
			t.Errorf("location of error %d (-want +got):\n%s", i, diff)
		}
		if text, ok := strings.CutPrefix(w.str("msg"), "Value error, "); ok && !strings.Contains(got.Errors[i].Msg, text) {
			t.Errorf("message %q does not contain %q", got.Errors[i].Msg, text)
		}
	}
}

// innermostType is the class of the deepest error that has one.
func innermostType(err error) string {
	kind := cube.ErrorType(err)
	for ; err != nil; err = errors.Unwrap(err) {
		//nolint:errorlint // each error of the chain in its turn
		if v, ok := err.(*cube.ValidationError); ok && len(v.Errors) == 1 && v.Errors[0].Err != nil {
			return innermostType(v.Errors[0].Err)
		}
		if n, ok := err.(interface{ ErrorType() string }); ok {
			kind = n.ErrorType()
		}
	}
	return kind
}

// hasMessage looks for an error in the chain with exactly this text.
func hasMessage(err error, msg string) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if err.Error() == msg {
			return true
		}
	}
	return false
}
