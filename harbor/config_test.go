package harbor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// vector reads one JSON vector file into v.
func vector(t testing.TB, name string, v any) {
	t.Helper()
	if err := json.Unmarshal(vectors.File(t, name), v); err != nil {
		t.Fatalf("reading vectors %s: %v", name, err)
	}
}

// compact spells raw JSON as AppendPydantic does, keeping key order and number
// text.
func compact(t testing.TB, raw []byte) string {
	t.Helper()
	v, err := value.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(value.AppendPydantic(nil, v, 0))
}

type configCase struct {
	Name      string
	TOML      string
	OK        bool
	JSON      json.RawMessage
	Errors    []vectorError
	TOMLError string   `json:"toml_error"`
	Warnings  []string `json:"warnings"`

	TOMLOut      *string `json:"toml_out"`
	TOMLOutError string  `json:"toml_out_error"`
}

type vectorError struct {
	Loc  []any
	Type string
	Msg  string
}

func TestTaskConfigVectors(t *testing.T) {
	t.Parallel()
	var cases []configCase
	vector(t, "tasks/task-config.json", &cases)
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			cfg, report, err := harbor.ParseConfig([]byte(tt.TOML))
			checkConfigError(t, tt, err)
			if diff := cmp.Diff(tt.Warnings, warnings(report)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if !tt.OK {
				return
			}
			got := string(value.AppendPydantic(nil, cfg.JSON(), 0))
			if diff := cmp.Diff(compact(t, tt.JSON), got); diff != "" {
				t.Errorf("JSON (-want +got):\n%s", diff)
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

func warnings(r schema.Report) []string {
	var out []string
	for _, w := range r.Warnings {
		out = append(out, w.Text)
	}
	return out
}

func checkConfigError(t *testing.T, tt configCase, err error) {
	t.Helper()
	switch {
	case tt.OK:
		if err != nil {
			t.Fatalf("got error %v", err)
		}
	case tt.TOMLError != "":
		if tomlErr, ok := errors.AsType[*toml.Error](err); !ok || tomlErr.Error() != tt.TOMLError {
			t.Fatalf("got error %v, want %s", err, tt.TOMLError)
		}
	default:
		if diff := cmp.Diff(tt.Errors, errorList(err)); diff != "" {
			t.Fatalf("errors (-want +got):\n%s", diff)
		}
		heading := fmt.Sprintf("%d validation error", len(tt.Errors))
		if !strings.HasPrefix(err.Error(), heading) || !strings.Contains(err.Error(), " for TaskConfig\n") {
			t.Errorf("text %q", err.Error())
		}
	}
}

func errorList(err error) []vectorError {
	list, ok := errors.AsType[*schema.Errors](err)
	if !ok {
		return nil
	}
	var out []vectorError
	for _, e := range list.List {
		loc := []any{}
		for _, elem := range e.Loc {
			if i, isInt := elem.(int); isInt {
				elem = float64(i)
			}
			loc = append(loc, elem)
		}
		out = append(out, vectorError{Loc: loc, Type: e.Type, Msg: e.Msg})
	}
	return out
}

// coercionTargets says, for each kind of field in the vectors, how a TOML
// literal is put into a task.toml and where it ends up in the dump.
var coercionTargets = map[string]struct {
	toml string
	path []any
}{
	"int (environment.cpus)":               {"environment.cpus = %s", []any{"environment", "cpus"}},
	"float (verifier.timeout_sec)":         {"verifier.timeout_sec = %s", []any{"verifier", "timeout_sec"}},
	"str (environment.docker_image)":       {"environment.docker_image = %s", []any{"environment", "docker_image"}},
	"str|int (agent.user)":                 {"agent.user = %s", []any{"agent", "user"}},
	"bool (environment.allow_internet)":    {"environment.allow_internet = %s", []any{"environment", "network_mode"}},
	"float|dict (steps.min_reward)":        {"[[steps]]\nname = \"a\"\nmin_reward = %s", []any{"steps", 0, "min_reward"}},
	"list[str] (environment.gpu_types)":    {"environment.gpu_types = %s", []any{"environment", "gpu_types"}},
	"dict[str,str] (solution.env)":         {"solution.env = %s", []any{"solution", "env"}},
	"model (agent)":                        {"agent = %s", []any{"agent"}},
	"artifact item":                        {"artifacts = [%s]", []any{"artifacts", 0}},
	"model list (environment.mcp_servers)": {"environment.mcp_servers = %s", []any{"environment", "mcp_servers"}},
	"any (metadata)":                       {"metadata = %s", []any{"metadata"}},
}

func TestCoercionVectors(t *testing.T) {
	t.Parallel()
	var kinds map[string][]struct {
		TOML       string
		Result     *string
		ErrorTypes []string `json:"error_types"`
	}
	vector(t, "tasks/coercions.json", &kinds)
	count := 0
	for kind, cases := range kinds {
		target, ok := coercionTargets[kind]
		if !ok {
			t.Errorf("unknown kind of field %q", kind)
			continue
		}
		for _, tt := range cases {
			count++
			cfg, _, err := harbor.ParseConfig(fmt.Appendf(nil, target.toml+"\n", tt.TOML))
			if tt.Result == nil {
				var got []string
				for _, e := range errorList(err) {
					got = append(got, e.Type)
				}
				if diff := cmp.Diff(tt.ErrorTypes, got); diff != "" {
					t.Errorf("%s = %s: error types (-want +got):\n%s", kind, tt.TOML, diff)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s = %s: %v", kind, tt.TOML, err)
				continue
			}
			got := value.Repr(at(cfg.JSON(), target.path))
			if got != *tt.Result {
				t.Errorf("%s = %s: %s, want %s", kind, tt.TOML, got, *tt.Result)
			}
		}
	}
	t.Logf("%d cases", count)
}

func at(v value.Value, path []any) value.Value {
	for _, elem := range path {
		switch elem := elem.(type) {
		case string:
			v, _ = v.(*value.Object).Get(elem)
		case int:
			v = v.(value.List)[elem]
		}
	}
	return v
}

func TestUnknownKeysAreReported(t *testing.T) {
	t.Parallel()
	text := "foo = 1\nversion = \"1.0\"\n[agent]\nbar = 2\n[environment]\nbaz = 3\nmemory = \"1G\"\nallow_internet = true\n" +
		"[metadata]\nfree = 1\n[[steps]]\nname = \"a\"\n[steps.verifier]\nqux = 4\n[zzz]\na = 1\n"
	_, report, err := harbor.ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, loc := range report.Unknown {
		got = append(got, loc.String())
	}
	want := []string{"agent.bar", "environment.baz", "steps.0.verifier.qux", "foo", "zzz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unknown keys (-want +got):\n%s", diff)
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{
		"version = \"1.0\"\n[environment]\nmemory = \"1.5g\"\nallow_internet = false\n",
		"[[steps]]\nname = \"a\"\nmin_reward = {x = 1}\n[steps.verifier.environment]\ntpu = {type = \"v\", topology = \"2x2\"}\n",
		"artifacts = [\"/a\", {source = \"/b\"}]\n[agent]\nuser = 1.0\nallowed_hosts = [\"*.a.com\"]\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, _, err := harbor.ParseConfig(data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without text")
			}
			return
		}
		value.AppendPydantic(nil, cfg.JSON(), 4)
	})
}
