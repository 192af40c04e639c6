package job

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// TestKwargVectors: how "key=value" is read, for settings and for variables.
func TestKwargVectors(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "skills/kwargs.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range v.(value.List) {
		c := item.(*value.Object)
		var args []string
		for _, a := range vectors.List(c, "args") {
			args = append(args, string(a.(value.Str)))
		}
		got, err := mergeKwargs(nil, args)
		if wantsError(t, c, "error_contains", err) {
			continue
		}
		env, envErr := mergeEnv(jobdir.Env{}, args)
		if err != nil || wantsError(t, c, "env_error_contains", envErr) {
			t.Errorf("%q: %v, %v", args, err, envErr)
			continue
		}
		if diff := cmp.Diff(shown(vectors.Object(c, "kwargs")), shown(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
		variables := &value.Object{}
		for name, text := range env.All() {
			variables.Set(name, value.Str(text))
		}
		if diff := cmp.Diff(shown(vectors.Object(c, "env")), shown(variables)); diff != "" {
			t.Errorf("%q as variables (-want +got):\n%s", args, diff)
		}
	}
}

// wantsError reports whether a case asks for an error, and checks it.
func wantsError(t *testing.T, c *value.Object, key string, err error) bool {
	t.Helper()
	want := vectors.Str(c, key)
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got error %v, want one with %q", key, err, want)
	}
	return want != ""
}

// shown is an object as the cases have it: what JSON cannot hold is text there.
func shown(o *value.Object) string {
	out := &value.Object{}
	if o != nil {
		for k, v := range o.All() {
			if f, ok := v.(value.Float); ok && math.IsNaN(float64(f)) {
				v = value.Str("<float NaN>")
			}
			out.Set(k, v)
		}
	}
	return string(value.AppendDumps(nil, out, value.DumpsOptions{}))
}
