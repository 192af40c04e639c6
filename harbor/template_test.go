package harbor_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/harbor"
)

func hostOf(env map[string]string) harbor.Lookup {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func TestTemplateVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		HostEnv   map[string]string `json:"host_env"`
		Templates []struct {
			Value      string
			IsTemplate bool `json:"is_template"`
			Required   [][2]*string
			Resolved   string
			Error      string
		}
		Serialize []struct{ Key, Value, Serialized string }
	}
	vector(t, "tasks/env-templates.json", &file)
	host := hostOf(file.HostEnv)
	for _, tt := range file.Templates {
		parsed, ok := harbor.ParseTemplate(tt.Value)
		if ok != tt.IsTemplate {
			t.Errorf("%q: is a template: %v", tt.Value, ok)
		}
		var required [][2]*string
		if ok {
			pair := [2]*string{&parsed.Name}
			if parsed.HasDefault {
				pair[1] = &parsed.Default
			}
			required = append(required, pair)
		}
		if diff := cmp.Diff(tt.Required, required, cmp.Transformer("empty", func(l [][2]*string) [][2]*string {
			return append([][2]*string{}, l...)
		})); diff != "" && (len(tt.Required) > 0 || len(required) > 0) {
			t.Errorf("%q needs (-want +got):\n%s", tt.Value, diff)
		}
		got, err := harbor.ResolveTemplate(tt.Value, host)
		if (err == nil) != (tt.Error == "") || (err != nil && err.Error() != tt.Error) || got != tt.Resolved {
			t.Errorf("%q resolves to %q, %v; want %q, %q", tt.Value, got, err, tt.Resolved, tt.Error)
		}
	}
	for _, tt := range file.Serialize {
		if got := harbor.RedactEnv(tt.Key, tt.Value, host); got != tt.Serialized {
			t.Errorf("%s=%s is written %q, want %q", tt.Key, tt.Value, got, tt.Serialized)
		}
	}
	t.Logf("%d templates, %d redactions", len(file.Templates), len(file.Serialize))
}

func TestRedactionIsIdempotent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"API_KEY", "PLAIN", "my_token"}).Draw(t, "name")
		value := rapid.String().Draw(t, "value")
		host := hostOf(map[string]string{"API_KEY": rapid.SampledFrom([]string{"", value}).Draw(t, "host")})
		once := harbor.RedactEnv(name, value, host)
		if twice := harbor.RedactEnv(name, once, host); twice != once {
			t.Errorf("%s=%q: %q, then %q", name, value, once, twice)
		}
	})
}

func TestMissingVariables(t *testing.T) {
	t.Parallel()
	var env harbor.Env
	env.Set("A", "${HAVE}")
	env.Set("B", "${LACK}")
	env.Set("C", "${LACK}")
	env.Set("D", "${OTHER:-x}")
	env.Set("E", "literal ${LACK2}")
	host := hostOf(map[string]string{"HAVE": ""})
	if diff := cmp.Diff([]string{"LACK"}, harbor.MissingVariables(env, host)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := harbor.ResolveEnv(env, host); err == nil {
		t.Error("a missing variable is no error")
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"${A}", "${A:-b}", "${A:-${B}}", "pre${A}", "${A\nB}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := harbor.ResolveTemplate(value, hostOf(nil))
		if _, ok := harbor.ParseTemplate(value); !ok && (err != nil || got != value) {
			t.Errorf("literal %q became %q, %v", value, got, err)
		}
	})
}

func TestRedactEnv(t *testing.T) {
	t.Parallel()
	host := func(name string) (string, bool) { return "from-host-value", name == "HOST_KEY" }
	for _, tt := range []struct{ name, value, want string }{
		{"PLAIN", "visible-value", "visible-value"},
		{"API_KEY", "abcdefghijkl", "abcd****jkl"},
		{"api_key", "abcdefghijkl", "abcd****jkl"},
		{"MONKEYS", "abcdefghijkl", "abcd****jkl"},
		{"AUTH", "123456789", "1234****789"},
		{"AUTH", "12345678", "****"},
		{"AUTH", "", "****"},
		{"SECRET", "ééééééééé", "éééé****ééé"},
		{"TOKEN", "${TOKEN}", "${TOKEN}"},
		{"TOKEN", "${OTHER:-default value}", "${OTHER:-default value}"},
		{"TOKEN", "${OTHER}-and-more", "${OT****ore"},
		{"TOKEN", "x${OTHER}-and-more", "x${O****ore"},
		{"TOKEN", "${A:b}----------", "${A:****---"},
		{"HOST_KEY", "from-host-value", "${HOST_KEY}"},
		{"HOST_KEY", "another-value", "anot****lue"},
	} {
		got := harbor.RedactEnv(tt.name, tt.value, host)
		if got != tt.want {
			t.Errorf("%s=%s: got %s, want %s", tt.name, tt.value, got, tt.want)
		}
		if again := harbor.RedactEnv(tt.name, got, host); again != got {
			t.Errorf("%s=%s: redacted again it is %s", tt.name, got, again)
		}
	}
}
