// Package tools has the agent that calls a language model with the actions of a task
// as the model's tools: what the model calls is done, what came of it is its next
// message.
//
// It plays tasks that are stepped, and works in a sandbox with a shell of its own.
// Both ways are one conversation, see player. Section numbers refer to Harbor's agents.
package tools

import (
	"io"
	"slices"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

const (
	agentName    = "tools"
	agentVersion = "1.0.0"
)

// The settings of this agent, besides those of every agent that calls a model.
const (
	promptSetting    = "system_prompt"
	outputSetting    = "max_output_tokens"
	budgetSetting    = "max_tokens"
	imagesSetting    = "keep_images"
	reasoningSetting = "interleaved_thinking"
)

// Entry is the agent's entry of the registry.
func Entry() agent.Entry {
	return agent.Entry{
		Name:    agentName,
		Summary: "calls a model with the actions of the task as its tools, on any task",

		CallsModel: true,
		Settings: append(agent.ModelSettings(),
			agent.Setting{Name: promptSetting, Summary: "the system prompt, in place of the agent's own", Text: true},
			agent.Setting{Name: outputSetting, Summary: "how many tokens one answer may have; the provider's own limit unless given"},
			agent.Setting{Name: budgetSetting, Summary: "how many tokens all calls together may use, prompts and answers; the agent stops when they are used up, and its work is verified"},
			agent.Setting{Name: imagesSetting, Summary: "how many of the newest images the model is shown again with each call; 10 unless given"},
			agent.Setting{Name: reasoningSetting, Summary: "`true` sends what the model thought back to it"},
			agent.Setting{Name: agent.MaxStepsSetting, Summary: "how many turns the agent has at most; 10,000, or what the task recommends, unless given"},
		),
		Check: func(c agent.Config) error {
			_, err := readOptions(c)
			return err
		},
		Sandboxed: func(c agent.Config) (agent.Agent, error) { return newSandboxed(c, clock.Or(nil)) },
		Stepped:   func(c agent.Config) (cube.Agent, error) { return newStepped(c, clock.Or(nil)) },
	}
}

// options are the settings, read.
type options struct {
	// sampling is a request without messages.
	sampling   llm.Request
	system     string
	budget     int64 // 0 for none
	keepImages int
	maxSteps   int
}

const (
	defaultImages   = 10
	defaultMaxSteps = 10_000
	// maxSetting bounds what may be asked for.
	maxSetting = 1 << 40
)

const defaultPrompt = `You are working on the task that the first message describes, by calling the tools that you have. Each result shows what came of a call.
Nobody is there to answer questions: decide for yourself what is unclear. Go step by step, and look at what a call brought before you rely on it.
When the task is done and you have checked that it is, end it with the tool that does so, or, where there is none, by an answer without a call.`

func readOptions(c agent.Config) (options, error) {
	o := options{system: defaultPrompt, keepImages: defaultImages, maxSteps: defaultMaxSteps}
	var err error
	if o.sampling, err = c.Sampling(); err != nil {
		return o, err
	}
	if v := c.Setting(promptSetting); !value.IsNull(v) {
		o.system = c.Text(promptSetting)
	}
	if o.sampling.MaxOutput, err = c.Whole(outputSetting, 1, maxSetting, 0); err != nil {
		return o, err
	}
	if o.budget, err = c.Whole(budgetSetting, 1, maxSetting, 0); err != nil {
		return o, err
	}
	images, err := c.Whole(imagesSetting, 0, maxSetting, defaultImages)
	if err != nil {
		return o, err
	}
	o.keepImages = int(images)
	if o.sampling.SendReasoning, err = c.Flag(reasoningSetting, false); err != nil {
		return o, err
	}
	steps, err := c.MaxSteps()
	if steps > 0 {
		o.maxSteps = steps
	}
	return o, err
}

// place is where a player's files go.
type place struct {
	dir    string // empty for nowhere
	limit  int64  // of the trajectory, and of all images together, in bytes
	redact func(io.Writer) io.WriteCloser
}

func newStepped(c agent.Config, now func() time.Time) (*player, error) {
	o, model, err := open(c)
	if err != nil {
		return nil, err
	}
	return newPlayer(o, model, place{c.LogDir, c.OutputLimit, c.Redact}, now), nil
}

func open(c agent.Config) (options, llm.Model, error) {
	o, err := readOptions(c)
	if err != nil {
		return o, nil, err
	}
	model, err := c.OpenModel()
	if err != nil {
		return o, nil, err
	}
	return o, model, nil
}

// toolSpecs tells the model of the actions.
func toolSpecs(actions []cube.ActionSchema) []llm.ToolSpec {
	specs := make([]llm.ToolSpec, len(actions))
	for i, a := range actions {
		specs[i] = llm.ToolSpec{Name: a.Name, Description: a.Description, Parameters: a.Parameters}
		if a.Parameters.Len() == 0 { // an empty object is no schema of type object
			specs[i].Parameters = nil
		}
	}
	return specs
}

// findAction returns the action of a name, nil where it is not offered.
func findAction(actions []cube.ActionSchema, name string) *cube.ActionSchema {
	i := slices.IndexFunc(actions, func(a cube.ActionSchema) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	return &actions[i]
}
