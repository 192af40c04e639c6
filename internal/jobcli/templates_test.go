package jobcli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/jobdir"
)

// TestVariablesThatAreNotSet: a variable of the agent or the verifier that takes its value
// from one of this machine that is not set is a mistake in the command line, which names
// both and how to go on.
func TestVariablesThatAreNotSet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		says string // behind the flag; empty for nothing wrong
	}{
		"text":                 {"plain", ""},
		"set":                  {"${SET}", ""},
		"set to nothing":       {"${EMPTY}", ""},
		"not set":              {"${MISSING}", " X_KEY=${MISSING}: environment variable MISSING is not set on this machine"},
		"not set, a default":   {"${MISSING:-x}", ""},
		"not set, no text":     {"${MISSING:-}", ""},
		"part of a text":       {"a ${MISSING}", ""},
		"a dollar and no more": {"$MISSING", ""},
	} {
		for _, flag := range []string{"--ae", "--ve"} {
			p := &jobcli.Program{Name: "prog", Agents: agents.All(), Now: time.Now, Lookup: func(name string) (string, bool) {
				return map[string]string{"SET": "x"}[name], name == "SET" || name == "EMPTY"
			}}
			a, v := jobdir.NewAgentConfig(), jobdir.VerifierConfig{}
			if a.Name = new("oracle"); flag == "--ae" {
				a.Env.Set("X_KEY", c.text)
			} else {
				v.Env.Set("X_KEY", c.text)
			}
			err := p.CheckTemplates([]jobdir.AgentConfig{jobdir.NewAgentConfig(), a}, v)
			if c.says == "" {
				if err != nil {
					t.Errorf("%s, %s: %v", name, flag, err)
				}
				continue
			}
			if err == nil || exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), flag+c.says) {
				t.Errorf("%s, %s: %v", name, flag, err)
			}
			cfg := jobdir.NewConfig(time.Now())
			cfg.JobsDir, cfg.JobName, cfg.Agents, cfg.Verifier = t.TempDir(), "job", []jobdir.AgentConfig{a}, v
			if whole := p.CheckAgents(cfg, &jobcli.Flags{}, false); whole == nil || whole.Error() != err.Error() {
				t.Errorf("%s, %s: as a job: %v", name, flag, whole)
			}
		}
	}
}
