package jobcli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// TestGatewayWords: the flag takes the modes and no other word, and has the command's own
// mode where it is not given.
func TestGatewayWords(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]trial.GatewayMode{"auto": trial.GatewayAuto, "on": trial.GatewayOn, "off": trial.GatewayOff, "": trial.GatewayOff} {
		f, err := parse(trial.GatewayOff, typed)
		if err != nil || f.Gateway != want {
			t.Errorf("%q: got %q, %v", typed, f.Gateway, err)
		}
	}
	for _, typed := range []string{"yes", "ON", "o"} {
		if _, err := parse(trial.GatewayAuto, typed); err == nil || !strings.Contains(err.Error(), "auto, on") {
			t.Errorf("%q: %v", typed, err)
		}
	}
}

// parse reads --model-gateway, if it is given, and what else is typed.
func parse(otherwise trial.GatewayMode, gateway string, more ...string) (*jobcli.ModelFlags, error) {
	f := &jobcli.ModelFlags{}
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	jobcli.DefineModel(fs, f)
	jobcli.DefineGateway(fs, f, otherwise)
	jobcli.DefineBudgets(fs, f)
	if gateway != "" {
		more = append(more, "--model-gateway", gateway)
	}
	return f, fs.Parse(more)
}

// TestModelsOfCommandsAreChecked: what every trial would find wrong with the model of
// commands is found before anything runs, as a mistake in the command line.
func TestModelsOfCommandsAreChecked(t *testing.T) {
	t.Parallel()
	const local = "http://127.0.0.1:1/v1"
	for name, c := range map[string]struct {
		agent, model string
		settings     []string // pairs
		key          bool
		gateway      string
		flags        []string
		says         string // empty for nothing wrong
	}{
		"no key":                        {"command", "openai/m", nil, false, "auto", nil, ""},
		"no key, on":                    {"command", "openai/m", nil, false, "on", nil, "there is no key: set OPENAI_API_KEY"},
		"no key, on, python":            {"python", "anthropic/m", nil, false, "on", nil, "there is no key: set ANTHROPIC_API_KEY"},
		"no key, off":                   {"command", "openai/m", nil, false, "off", nil, ""},
		"a key, on":                     {"command", "openai/m", nil, true, "on", nil, ""},
		"no key, on, a replay":          {"command", "openai/m", nil, false, "on", []string{"--replay-models", "."}, ""},
		"no key, on, a server":          {"command", "local/m", []string{"api_base", local}, false, "on", nil, ""},
		"unknown, on":                   {"command", "nobody/m", nil, true, "on", nil, `provider "nobody"`},
		"unknown":                       {"command", "nobody/m", nil, true, "auto", nil, ""},
		"no model, on":                  {"command", "", nil, true, "on", nil, ""},
		"another agent, on":             {"oracle", "openai/m", nil, false, "on", nil, ""},
		"a budget":                      {"command", "openai/m", nil, true, "auto", []string{"--budget-tokens", "10"}, ""},
		"a budget, on":                  {"command", "openai/m", nil, true, "on", []string{"--budget-tokens-per-trial", "10"}, ""},
		"a budget, no key":              {"command", "openai/m", nil, false, "auto", []string{"--budget-tokens", "10"}, "there is no key: set OPENAI_API_KEY"},
		"a budget, no key, a replay":    {"command", "openai/m", nil, false, "auto", []string{"--budget-tokens", "10", "--replay-models", "."}, ""},
		"a budget, off":                 {"command", "openai/m", nil, true, "off", []string{"--budget-tokens", "10"}, "a budget is for agents that call models through prog"},
		"a budget, no model":            {"command", "", nil, true, "auto", []string{"--budget-tokens", "10"}, "a budget is for agents"},
		"a budget, another agent":       {"oracle", "openai/m", nil, true, "auto", []string{"--budget-tokens", "10"}, "a budget is for agents"},
		"dollars, unpriced":             {"command", "local/m", []string{"api_base", local}, true, "auto", []string{"--budget-usd", "1"}, "the prices of model local/m are not known"},
		"dollars, unpriced, of a trial": {"python", "local/m", []string{"api_base", local}, true, "on", []string{"--budget-usd-per-trial", "1"}, "the prices of model local/m are not known"},
		"dollars, priced":               {"command", "local/m", []string{"api_base", local, "model_info", "prices"}, true, "auto", []string{"--budget-usd", "1"}, ""},
		"dollars, known":                {"command", "anthropic/claude-sonnet-4-5", nil, true, "auto", []string{"--budget-usd", "1"}, ""},
		"no such setting":               {"command", "openai/m", []string{"api_bas", local}, true, "auto", nil, "api_base"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &jobcli.Flags{}
			model, err := parse(trial.GatewayAuto, c.gateway, c.flags...)
			if err != nil {
				t.Fatal(err)
			}
			f.Model = *model
			p := &jobcli.Program{Name: "prog", Agents: agents.All(), Now: time.Now, Lookup: func(name string) (string, bool) {
				return "key", c.key && strings.HasSuffix(name, "_API_KEY")
			}}
			cfg := jobdir.NewConfig(time.Now())
			cfg.JobsDir, cfg.JobName = t.TempDir(), "job"
			cfg.Agents = []jobdir.AgentConfig{agentOf(t, c.agent, c.model, c.settings)}
			err = p.CheckAgents(cfg, f, false)
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v with exit code %d, want %q and %d", err, exitcode.Of(err), c.says, exitcode.Usage)
			}
			if _, err := os.Stat(filepath.Join(cfg.JobsDir, "job")); err == nil {
				t.Error("the job was begun")
			}
		})
	}
}

func agentOf(t *testing.T, name, model string, settings []string) jobdir.AgentConfig {
	t.Helper()
	a := jobdir.NewAgentConfig()
	a.Name, a.Kwargs = &name, value.NewObject(4)
	if model != "" {
		a.ModelName = &model
	}
	switch name {
	case "command":
		a.Kwargs.Set("run", value.Str("true"))
	case "python":
		a.Kwargs.Set("dir", value.Str(t.TempDir()))
	}
	for i := 0; i < len(settings); i += 2 {
		var v value.Value = value.Str(settings[i+1])
		if settings[i+1] == "prices" {
			prices := value.NewObject(2)
			prices.Set("input_cost_per_token", value.Float(0.001))
			prices.Set("output_cost_per_token", value.Float(0.002))
			v = prices
		}
		a.Kwargs.Set(settings[i], v)
	}
	return a
}
