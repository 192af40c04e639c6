package secret_test

import (
	"os"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

func lookup(env map[string]string) harbor.Lookup {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

func TestWhatIsASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := "-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----"
	for _, c := range []struct {
		name, variable, value string
		host                  map[string]string
		marked                []string
		want                  string // "" for none
	}{
		{name: "by its name", variable: "DB_PASSWORD", value: "hunter2hunter2", want: "hunter2hunter2"},
		{name: "a header", variable: "X-Auth", value: "hunter2hunter2", want: "hunter2hunter2"},
		{name: "too short", variable: "DB_PASSWORD", value: "hunter2"},
		{name: "an author", variable: "GIT_AUTHOR_NAME", value: "Jane Doe Smith"},
		{name: "a tokenizer", variable: "tokenizer", value: "cl100k_base"},
		{name: "a number", variable: "TOKENS", value: "123456789"},
		{name: "a file that is there", variable: "KEY_FILE", value: dir},
		{name: "an ordinary variable", variable: "GREETING", value: "hello world"},
		{name: "by its form", variable: "FOO", value: "sk-or-abc", want: "sk-or-abc"},
		{name: "a token of the web", variable: "FOO", value: "eyJhbGciOi.eyJzdWIi.c2ln", want: "eyJhbGciOi.eyJzdWIi.c2ln"},
		{name: "a key in PEM", variable: "FOO", value: key, want: key},
		{name: "the password of a URL", variable: "DATABASE", value: "postgres://me:hunter2hunter2@db/x", want: "hunter2hunter2"},
		{name: "a header in a command", variable: "run", value: `curl -H "Authorization: Bearer abcd1234.efgh" x`, want: "abcd1234.efgh"},
		{name: "an assignment in a command", variable: "run", value: "API_KEY=hunter2hunter2 agent", want: "hunter2hunter2"},
		{name: "a variable in a command", variable: "run", value: `API_KEY=$SOME_KEY agent`},
		{name: "a known form in a command", variable: "run", value: "agent ghp_0123456789abcdef", want: "ghp_0123456789abcdef"},
		{name: "a package in a command", variable: "run", value: "pip install sk-learn-contrib-long-name"},
		{name: "a template", variable: "FOO", value: "${BAR}", host: map[string]string{"BAR": "what is it"}, want: "what is it"},
		{name: "a default", variable: "FOO_KEY", value: "${BAR:-hunter2hunter2}", want: "hunter2hunter2"},
		{name: "a template of a model", variable: "FOO", value: "${THE_MODEL}", host: map[string]string{"THE_MODEL": "big-model-1"}},
		{name: "a template of a URL with a password", variable: "FOO", value: "${THE_URL}", host: map[string]string{"THE_URL": "https://u:hunter2hunter2@h"}, want: "hunter2hunter2"},
		{name: "a template of the model's own name", variable: "FOO", value: "${BAR}", host: map[string]string{"BAR": "anthropic"}},
		{name: "the name of the model", variable: "FOO_KEY", value: "anthropic"},
		{name: "marked", variable: "GREETING", value: "hello world", marked: []string{"GREETING"}, want: "hello world"},
		{name: "marked, of this machine", variable: "X", value: "y", host: map[string]string{"BAR": "what is it"}, marked: []string{"BAR"}, want: "what is it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			source := secret.Source{Lookup: lookup(c.host), Names: c.marked}
			kwargs := value.NewObject(1)
			kwargs.Set("list", value.List{objectOf(c.variable, c.value)})
			for where, change := range map[string]func(*jobdir.TrialConfig){
				"agent env":          func(cfg *jobdir.TrialConfig) { cfg.Agent.Env.Set(c.variable, c.value) },
				"verifier env":       func(cfg *jobdir.TrialConfig) { cfg.Verifier.Env.Set(c.variable, c.value) },
				"environment env":    func(cfg *jobdir.TrialConfig) { cfg.Environment.Env.Set(c.variable, c.value) },
				"agent kwargs":       func(cfg *jobdir.TrialConfig) { cfg.Agent.Kwargs = kwargs },
				"environment kwargs": func(cfg *jobdir.TrialConfig) { cfg.Environment.Kwargs = kwargs },
			} {
				cfg := jobdir.NewTrialConfig(jobdir.TaskConfig{})
				cfg.Agent.ModelName = new("anthropic/big")
				change(&cfg)
				check(t, where, source.OfTrial(cfg, nil), c.want)
				job := jobdir.Config{Agents: []jobdir.AgentConfig{cfg.Agent}, Environment: cfg.Environment, Verifier: cfg.Verifier}
				check(t, "job, "+where, source.OfJob(job), c.want)
			}
		})
	}
}

func objectOf(name, text string) *value.Object {
	o := value.NewObject(1)
	o.Set(name, value.Str(text))
	return o
}

func check(t *testing.T, where string, got []redact.Secret, want string) {
	t.Helper()
	found := slices.ContainsFunc(got, func(s redact.Secret) bool { return s.Value == want })
	if want == "" && len(got) > 0 || want != "" && (!found || len(got) != 1) {
		t.Errorf("%s: found %q, want %q", where, got, want)
	}
}

func TestOfProcess(t *testing.T) {
	t.Parallel()
	env := map[string]string{"OPENAI_API_KEY": "hunter2hunter2", "SSH_AUTH_SOCK": os.TempDir(), "EDITOR": "sensible-editor"}
	var environ []string
	for name, v := range env {
		environ = append(environ, name+"="+v)
	}
	got := secret.Source{Lookup: lookup(env), Environ: environ}.OfProcess()
	if len(got) != 1 || got[0] != (redact.Secret{Name: "OPENAI_API_KEY", Value: "hunter2hunter2"}) {
		t.Errorf("found %q", got)
	}
}

func TestOfTask(t *testing.T) {
	t.Parallel()
	var task harbor.Task
	task.Config.Environment.Env.Set("POSTGRES_PASSWORD", "postgres")
	task.Config.Solution.Env.Set("ACCESS_KEY", "hunter2hunter2")
	task.Config.Verifier.Env.Set("JUDGE", "${JUDGE_ONE}")
	task.Config.Environment.MCPServers = []harbor.MCPServer{{Name: "tools", Args: []string{"--header", "X-Api-Key: abcdef123456"}}}
	got := secret.Source{Lookup: lookup(map[string]string{"JUDGE_ONE": "judge 12 judge"})}.OfTrial(jobdir.NewTrialConfig(jobdir.TaskConfig{}), &task)
	want := []redact.Secret{{Name: "JUDGE_ONE", Value: "judge 12 judge"}, {Name: "ACCESS_KEY", Value: "hunter2hunter2"}, {Name: "X-Api-Key", Value: "abcdef123456"}}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
