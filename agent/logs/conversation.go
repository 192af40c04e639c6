package logs

import (
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// conversation collects the steps of a log whose answers say what they used, and in
// which results name their calls.
type conversation struct {
	steps                 []atif.Step
	calls                 map[string]int // steps by the id of a call
	session, model        string
	version               string
	metered               bool // an answer said what it used
	input, cached, output value.Int
	cost                  float64
}

// user adds what the user said, unless it is nothing.
func (c *conversation) user(at *string, said string) {
	if said != "" {
		c.steps = append(c.steps, atif.Step{Timestamp: at, Source: atif.User, Message: atif.Text(said)})
	}
}

// agent adds a step of the agent's; what follows is called by it.
func (c *conversation) agent(s atif.Step) {
	s.Source = atif.Agent
	c.steps = append(c.steps, s)
	if s.ModelName != nil && c.model == "" {
		c.model = *s.ModelName
	}
}

// call adds a call to the last step, which must be the agent's. Arguments that are no
// object, nor the text of one, stand in one.
func (c *conversation) call(id, name string, raw value.Value) {
	arguments, ok := raw.(*value.Object)
	if s, isText := raw.(value.Str); isText {
		arguments, ok = decode(string(s)).(*value.Object)
	}
	if !ok {
		arguments = value.NewObject(1)
		arguments.Set("input", orNull(raw))
	}
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	i := len(c.steps) - 1
	c.calls[id] = i
	c.steps[i].ToolCalls = append(c.steps[i].ToolCalls, atif.ToolCall{ID: id, FunctionName: name, Arguments: arguments})
}

// result attaches what a call gave; the first counts, and one without a call is left out.
func (c *conversation) result(id, content string, failed bool) {
	i, known := c.calls[id]
	if !known {
		return
	}
	delete(c.calls, id)
	r := atif.Result{SourceCallID: &id, Content: new(atif.Text(content))}
	if failed {
		r.Extra = value.NewObject(1)
		r.Extra.Set("is_error", value.Bool(true))
	}
	s := &c.steps[i]
	if s.Observation == nil {
		s.Observation = &atif.Observation{}
	}
	s.Observation.Results = append(s.Observation.Results, r)
}

// usage is what an answer used: the input with what was cached, and dollars, nil or 0
// where they are not known. An answer that never came has none.
func (c *conversation) usage(input, cached, output value.Int, cost *float64) *atif.Metrics {
	if input.Sign() == 0 && output.Sign() == 0 {
		return nil
	}
	c.metered = true
	c.input, c.cached, c.output = c.input.Add(input), c.cached.Add(cached), c.output.Add(output)
	m := &atif.Metrics{PromptTokens: &input, CachedTokens: &cached, CompletionTokens: &output}
	if cost != nil && *cost > 0 {
		m.CostUSD = cost
		c.cost += *cost
	}
	return m
}

// told puts in front what the user said, for logs that do not have it.
func (c *conversation) told(instruction string) {
	if instruction == "" || len(c.steps) == 0 {
		return
	}
	for i := range c.steps {
		if c.steps[i].Source == atif.User {
			return
		}
	}
	c.steps = append([]atif.Step{{Source: atif.User, Message: atif.Text(instruction)}}, c.steps...)
}

// finish makes the trajectory and the totals. cost is what the agent says of the whole
// run, 0 where it says nothing; what the answers say comes after it, then prices.
func (c *conversation) finish(out *Converted, agent string, in Input, cost float64) {
	out.Style = atif.Unicode
	c.told(in.Instruction)
	if len(c.steps) == 0 {
		return
	}
	final := &atif.FinalMetrics{Steps: stepCount(c.steps)}
	if c.metered {
		if cost <= 0 {
			cost = c.cost
		}
		in.Model = either(in.Model, c.model)
		if out.CostUSD = in.cost(c.input, c.cached, c.output); cost > 0 {
			out.CostUSD = &cost
		}
		out.InputTokens, out.CachedTokens, out.OutputTokens = &c.input, &c.cached, &c.output
		final.PromptTokens, final.CachedTokens, final.CompletionTokens, final.CostUSD = &c.input, &c.cached, &c.output, out.CostUSD
	}
	out.Trajectory = &atif.Trajectory{
		SessionID:    optional(c.session),
		Agent:        atif.AgentInfo{Name: agent, Version: either(c.version, in.version()), ModelName: optional(either(c.model, in.Model))},
		Steps:        number(c.steps),
		FinalMetrics: final,
	}
}
