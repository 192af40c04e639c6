// Package trajectories reads, writes and exports what agents did, step by step.
package trajectories

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/value"
)

// Tools counts how often each tool was used in a trajectory file.
func Tools(file string) (map[string]int, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t, err := atif.Parse(data)
	if bad, ok := errors.AsType[*atif.Invalid](err); ok {
		return nil, fmt.Errorf("%s is no trajectory: %s", file, bad.Problems[0])
	}
	if err != nil {
		return nil, err
	}
	used := map[string]int{}
	for _, step := range t.Steps {
		for _, call := range step.ToolCalls {
			used[call.FunctionName]++
		}
	}
	return used, nil
}

// Lookup writes the trajectory of an agent that asked a tool once and then
// answered, as an agent of yours might, in one of the layouts of Harbor's agents.
func Lookup(file string, style atif.Style, question, query string, found []string, answer string, tokens int64) error {
	arguments := value.NewObject(1)
	arguments.Set("query", value.Str(query))
	var parts []atif.Part
	for _, f := range found {
		parts = append(parts, atif.Part{Type: atif.TextPart, Text: &f})
	}
	spent := new(value.NewInt(tokens))
	t := atif.Trajectory{
		SchemaVersion: atif.Version,
		Agent:         atif.AgentInfo{Name: "answerer", Version: "1.0.0"},
		Steps: []atif.Step{
			{ID: 1, Source: atif.System, Message: atif.Text("Look it up.")},
			{ID: 2, Source: atif.User, Message: atif.Text(question)},
			{
				ID: 3, Source: atif.Agent,
				ToolCalls:   []atif.ToolCall{{ID: "1", FunctionName: "search", Arguments: arguments}},
				Observation: &atif.Observation{Results: []atif.Result{{SourceCallID: new("1"), Content: &atif.Content{Parts: parts}}}},
			},
			{ID: 4, Source: atif.Agent, Message: atif.Text(answer), Metrics: &atif.Metrics{CompletionTokens: spent}},
		},
		FinalMetrics: &atif.FinalMetrics{CompletionTokens: spent},
	}
	if _, err := atif.Decode(t.Object()); err != nil {
		return err
	}
	return os.WriteFile(file, t.Append(nil, style), 0o600)
}

// Price makes a trajectory of what Codex CLI logged and says what that cost at
// prices of one's own, in US dollars per million tokens.
func Price(dir, model string, input, output float64) (*atif.Trajectory, float64, error) {
	c, err := logs.Read("codex", logs.Codex, logs.Input{Dir: dir, Model: model, Prices: func(string) (logs.Price, bool) {
		return logs.Price{Input: input / 1e6, Output: output / 1e6}, true
	}})
	if err != nil {
		return nil, 0, err
	}
	if c.Trajectory == nil || c.CostUSD == nil {
		return nil, 0, fmt.Errorf("there is no session in %s", dir)
	}
	return c.Trajectory, *c.CostUSD, nil
}

// Solved collects the last conversation of every trial below a directory that
// earned a reward.
func Solved(dir string) ([]traces.Row, error) {
	trials, err := traces.Find(dir, true)
	if err != nil {
		return nil, err
	}
	var rows []traces.Row
	for _, t := range trials {
		err := traces.Read(t, traces.Options{Last: true, Keep: traces.Success}, func(r traces.Row) error {
			rows = append(rows, r)
			return nil
		})
		bad, unsupported := errors.AsType[*traces.UnsupportedError](err)
		switch {
		case unsupported:
			fmt.Fprintf(os.Stderr, "%s is left out: agent %s leaves no trajectory\n", filepath.Base(t), bad.Agent)
			continue
		case errors.Is(err, traces.ErrImages):
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
