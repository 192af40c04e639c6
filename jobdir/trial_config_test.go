package jobdir_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
)

// TestEnvKeepsSilent prints environments in every way that logs do.
func TestEnvKeepsSilent(t *testing.T) {
	t.Parallel()
	env := jobdir.EnvOf("API_KEY", "sk-secret")
	c := jobdir.AgentConfig{Env: env}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "env", env, "agent", c)
	for _, text := range []string{fmt.Sprint(env), fmt.Sprintf("%+v %#v %s", env, env, env), fmt.Sprintf("%+v", c), log.String()} {
		if strings.Contains(text, "sk-secret") {
			t.Errorf("the value is in %q", text)
		}
	}
}

func TestConfigEqual(t *testing.T) {
	t.Parallel()
	parse := func(text string) jobdir.TrialConfig {
		c, _, err := jobdir.ParseTrialConfig([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	base := `{"task":{"path":"t"},"agent":{"name":"a","env":{"API_KEY":"abcdefghijkl","A":"1"},"kwargs":{"x":1,"y":[true]}}%s}`
	a := parse(fmt.Sprintf(base, ""))
	for _, tt := range []struct {
		text  string
		equal bool
	}{
		{fmt.Sprintf(base, `,"trial_name":"n","job_id":"00000000-0000-4000-8000-000000000001"`), true},
		{`{"task":{"path":"./t/"},"agent":{"name":"a","env":{"A":"1","API_KEY":"abcd****jkl"},"kwargs":{"y":[1.0],"x":1.0}}}`, true},
		{fmt.Sprintf(base, `,"timeout_multiplier":2`), false},
		{fmt.Sprintf(base, `,"trials_dir":"x"`), false},
		{`{"task":{"path":"t"},"agent":{"name":"a"}}`, false},
	} {
		b := parse(tt.text)
		if got := a.Equal(b, nil); got != tt.equal {
			t.Errorf("%s: equal = %v", tt.text, got)
		}
		if again := parse(string(b.AppendJSON(nil, nil))); !again.Equal(b, nil) {
			t.Errorf("%s: not equal after writing and reading", tt.text)
		}
	}
}

func TestParseConfigErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{`{`, "line 1"},
		{`{}`, "task: Field required"},
		{`{"task":{"path":"t"},"job_id":5}`, "job_id: UUID input should be a string"},
		{`{"task":{"path":"t"},"job_id":"x"}`, "job_id: Input should be a valid UUID"},
		{`{"task":{"path":"t"},"environment":{"mounts":[{"type":"tmpfs","source":"a","target":"b","read_only":false}]}}`, "environment.mounts.0.type: Input should be 'bind', 'volume' or 'image'"},
		{`{"task":{"path":"t"},"environment":{"mounts":[{"type":"tmpfs","source":"a","target":"b","read_only":false}]}}`, "environment.mounts.0.read_only: Input should be True"},
		{`{"task":{"path":"t"},"artifacts":[5]}`, "artifacts.0.str: Input should be a valid string"},
		{`{"task":{"path":"t"},"agent":{"extra_allowed_hosts":["*.*"]}}`, "agent.extra_allowed_hosts: Value error, allowed_hosts wildcard entries must use a leading '*.' prefix."},
	} {
		_, _, err := jobdir.ParseTrialConfig([]byte(tt.text))
		var invalid *schema.Errors
		message := fmt.Sprint(err)
		if errors.As(err, &invalid) {
			message = strings.Join(invalid.Brief(), "\n")
		}
		if err == nil || !strings.Contains(message, tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.text, message, tt.want)
		}
	}
}

func TestParseConfigReport(t *testing.T) {
	t.Parallel()
	_, report, err := jobdir.ParseTrialConfig([]byte(`{"task":{"path":"t","bogus":1},"more":2,"environment":{"suppress_override_warnings":true,"mounts_json":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, loc := range report.Unknown {
		got = append(got, loc.String())
	}
	if want := "task.bogus more"; strings.Join(got, " ") != want {
		t.Errorf("unknown keys: got %q, want %q", got, want)
	}
}

func TestParseResultErrors(t *testing.T) {
	t.Parallel()
	_, err := jobdir.ParseTrialResult([]byte(`{"task_name":1,"task_id":{},"verifier_result":{"rewards":{"a":[],"b":"x"}},"exception_info":{"occurred_at":"soon"}}`))
	var invalid *schema.Errors
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	message := strings.Join(invalid.Brief(), "\n")
	for _, want := range []string{
		"task_name: Input should be a valid string", "trial_name: Field required", "task_id.LocalTaskId.path: Field required",
		"verifier_result.rewards.a.float: Input should be a valid number", "verifier_result.rewards.b.int: Input should be a valid integer, unable to parse string as an integer",
		"exception_info.exception_type: Field required", "exception_info.occurred_at: Input should be a valid datetime",
	} {
		if !strings.Contains(message, want) {
			t.Errorf("missing %q in\n%s", want, message)
		}
	}
}

func TestURI(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/jobs/a__x": "file:///jobs/a__x", "/a b/é~.-_": "file:///a%20b/%C3%A9~.-_", "/a%b#c": "file:///a%25b%23c",
	} {
		if got := jobdir.URI(dir); got != want {
			t.Errorf("URI(%q) = %s, want %s", dir, got, want)
		}
	}
}

func TestSplitModel(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{"a/b/c": "b/c of a", "bare": "bare", "": "none", "/x": "x of "} {
		got := "none"
		if m := jobdir.SplitModel(model); m != nil {
			got = m.Name
			if m.Provider != nil {
				got += " of " + *m.Provider
			}
		}
		if got != want {
			t.Errorf("SplitModel(%q): got %s, want %s", model, got, want)
		}
	}
}

func TestTaskKinds(t *testing.T) {
	t.Parallel()
	path, url, name := "p", "https://h/r.git", "org/a/b"
	for _, tt := range []struct {
		task jobdir.TaskConfig
		want jobdir.TaskID
	}{
		{jobdir.TaskConfig{Path: &path}, jobdir.TaskID{Kind: jobdir.LocalTask, Path: "p"}},
		{jobdir.TaskConfig{Path: &path, GitURL: &url}, jobdir.TaskID{Kind: jobdir.GitTask, GitURL: url, Path: "p"}},
		{jobdir.TaskConfig{Name: &name}, jobdir.TaskID{Kind: jobdir.PackageTask, Org: "org", Name: "a/b"}},
	} {
		if got := tt.task.ID(); got != tt.want {
			t.Errorf("got %+v, want %+v", got, tt.want)
		}
	}
}

func TestNewConfigIsDefault(t *testing.T) {
	t.Parallel()
	path := "t"
	c := jobdir.NewTrialConfig(jobdir.TaskConfig{Path: &path})
	parsed, _, err := jobdir.ParseTrialConfig([]byte(`{"task":{"path":"t"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(c.AppendJSON(nil, nil)), string(parsed.AppendJSON(nil, nil)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	id := uuid.MustParse("00000000-0000-4000-8000-000000000001")
	c.JobID = &id
	if !strings.Contains(string(c.AppendJSON(nil, nil)), `"job_id": "00000000-0000-4000-8000-000000000001"`) {
		t.Error("the job id is not written")
	}
}
