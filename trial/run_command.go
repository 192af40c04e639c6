package trial

import (
	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// CommandAgent is the name of the agent that is given as shell text.
const CommandAgent = "command"

// CommandTexts are the settings of [CommandAgent]. Each is text, also where it
// looks like a number or a word of JSON.
func CommandTexts() []string { return []string{"install", "run", "version"} }

func newCommandAgent(cfg jobdir.AgentConfig, vars []string) (agent.Agent, error) {
	c := agent.Command{Env: vars}
	if cfg.ModelName != nil {
		c.Model = *cfg.ModelName
	}
	for key, dst := range map[string]*string{"install": &c.Install, "run": &c.Command, "version": &c.Version} {
		if cfg.Kwargs == nil {
			break
		}
		v, ok := cfg.Kwargs.Get(key)
		if !ok {
			continue
		}
		text, isText := v.(value.Str)
		if !isText {
			return nil, exception.Errorf(exception.ValueError, "agent command: setting %s is %s, want text: put it in quotes", key, value.Repr(v))
		}
		*dst = string(text)
	}
	return agent.NewCommand(c)
}
