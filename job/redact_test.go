package job_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// What a job of two agents is given as literal values that no file may hold.
const (
	firstKey  = "first/key+value"
	secondKey = "second/key+value"
	formKey   = "sk-literal-0123456789"
)

// markedJob is a job with literal secrets whose second trial fails.
func markedJob(t *testing.T, seen *[]string) *harness {
	t.Helper()
	h := newHarness(t, writeDataset(t, "a"), fake.Config{
		Before: fake.FailAt(fake.OpCreate, 2, nil),
		Rules: []fake.Rule{fake.On("the-agent", func(_ context.Context, p *fake.Process) (int, error) {
			*seen = append(*seen, p.Env["FOO"]+" "+p.Command.Shell)
			return 0, nil
		}), grant("1")},
	})
	h.cfg.NConcurrentTrials = 1
	h.cfg.Agents = nil
	for _, key := range []string{firstKey, secondKey} {
		settings := value.NewObject(1)
		settings.Set("run", value.Str("api_key="+key+" the-agent"))
		h.cfg.Agents = append(h.cfg.Agents, jobdir.AgentConfig{Name: new("command"), Kwargs: settings, Env: jobdir.EnvOf("FOO", formKey)})
	}
	return h
}

func host(pairs map[string]string) harbor.Lookup {
	return func(name string) (string, bool) { v, ok := pairs[name]; return v, ok }
}

func TestLiteralSecretsAreInNoFileAndGivenAgain(t *testing.T) {
	t.Parallel()
	var seen []string
	h := markedJob(t, &seen)
	h.run(t)
	for path, text := range dirTexts(t, h.dir()) {
		for _, s := range []string{firstKey, secondKey, formKey} {
			if strings.Contains(text, s) {
				t.Errorf("%q is in %s", s, path)
			}
		}
	}
	o := resumeOptions()
	o.Errored = true
	o.Lookup = host(map[string]string{"API_KEY_2": secondKey})
	h.runner.Trials.Lookup = o.Lookup
	r, _ := h.resume(t, h.dir(), o)
	want := []string{
		"redacted in config.json, taken from the environment: agents[1].kwargs.run",
		"agents[0].env.FOO is redacted in config.json and not set in the environment: trials would get the redacted text; set FOO to its value",
	}
	if len(r.Warnings) < 2 || !slices.Equal(r.Warnings[:2], want) {
		t.Errorf("warnings %q, want %q first", r.Warnings, want)
	}
	if want := []string{
		formKey + " api_key=" + firstKey + " the-agent", "[REDACTED:FOO] api_key=" + secondKey + " the-agent",
	}; !slices.Equal(seen, want) {
		t.Errorf("the agents got %q, want %q", seen, want)
	}
	checkWhole(t, h.dir(), 2)
}

func TestRunAgainWithTheSameLiteralSecrets(t *testing.T) {
	t.Parallel()
	var seen []string
	h := markedJob(t, &seen)
	h.run(t)
	p, err := job.Prepare(h.cfg, resumeOptions().PrepareOptions)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Existing) != 2 {
		t.Errorf("%d trials are known again, want 2", len(p.Existing))
	}
}

func TestOrphansAreScanned(t *testing.T) {
	t.Parallel()
	var seen []string
	h := markedJob(t, &seen)
	h.run(t)
	stray := filepath.Join(h.dir(), "stray")
	if err := os.Mkdir(stray, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(stray, "log"), []byte("key "+formKey), 0o644); err != nil {
		t.Fatal(err)
	}
	o := resumeOptions()
	o.Lookup = host(map[string]string{"FOO": formKey})
	h.runner.Trials.Lookup = o.Lookup
	r, _ := h.resume(t, h.dir(), o)
	data, err := os.ReadFile(filepath.Join(r.OrphansDir, "stray", "log"))
	if err != nil || string(data) != "key [REDACTED:FOO]" {
		t.Errorf("the orphan has %q, %v", data, err)
	}
}
