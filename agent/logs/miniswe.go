package logs

import (
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// MiniSWEAgent reads the trajectory of mini-swe-agent in its own format,
// mini-swe-agent.trajectory.json.
func MiniSWEAgent(d *Dir, in Input) (*Converted, error) {
	l := miniLog{in: in}
	l.out.Style = atif.ASCII
	doc := d.Document("mini-swe-agent.trajectory.json")
	if doc == nil {
		return &l.out, nil
	}
	info := object(doc, "info")
	l.model = either(text(info, "config", "model", "model_name"), in.Model)
	messages := list(doc, "messages")
	for _, m := range messages {
		if text(m, "role") == "assistant" {
			l.completion = l.completion.Add(miniTokens(miniUsage(m), "completion_tokens", "output_tokens"))
		}
	}
	if cost := amount(info, "model_stats", "instance_cost"); cost != nil {
		l.cost = *cost
	}
	for i, m := range messages {
		l.message(i, m)
	}
	if len(l.steps) > 0 {
		l.finish(doc, info)
	}
	return &l.out, nil
}

type miniLog struct {
	in                    Input
	out                   Converted
	model                 string
	completion            value.Int // of all answers
	cost                  float64
	steps                 []atif.Step
	answered              int // the number of the last step of the agent, from 1
	input, cached, output value.Int
	reasoning             value.Int
}

// message adds a message: what the agent is told after the task is what it
// observes.
func (l *miniLog) message(i int, m value.Value) {
	said := geminiText(at(m, "content"))
	switch role := text(m, "role"); {
	case role == "system":
		l.steps = append(l.steps, atif.Step{Source: atif.System, Message: atif.Text(said)})
	case role == "user" && i == 1:
		l.steps = append(l.steps, atif.Step{Source: atif.User, Message: atif.Text(said)})
	case role == "assistant":
		l.answer(m, said)
	case (role == "user" || role == "tool") && l.answered > 0:
		s := &l.steps[l.answered-1]
		if s.Observation == nil {
			s.Observation = &atif.Observation{}
		}
		s.Observation.Results = append(s.Observation.Results, atif.Result{Content: new(atif.Text(said))})
	}
}

func (l *miniLog) answer(m value.Value, said string) {
	s := atif.Step{
		Timestamp: isoSeconds(m, "extra", "timestamp"), Source: atif.Agent, ModelName: optional(l.model),
		Message: atif.Text(said), ReasoningContent: optional(said), Metrics: l.metrics(miniUsage(m)),
	}
	for _, c := range list(m, "tool_calls") {
		raw := at(c, "function", "arguments")
		arguments := object(raw)
		if arguments == nil {
			arguments = object(decode(text(raw)))
		}
		if arguments == nil {
			arguments = value.NewObject(1)
			arguments.Set("input", orNull(raw))
		}
		s.ToolCalls = append(s.ToolCalls, atif.ToolCall{ID: text(c, "id"), FunctionName: text(c, "function", "name"), Arguments: arguments})
	}
	l.steps = append(l.steps, s)
	l.answered = len(l.steps)
}

// miniUsage is what a provider said of an answer, of either of its interfaces.
func miniUsage(m value.Value) *value.Object {
	if u := object(m, "extra", "response", "usage"); u != nil {
		return u
	}
	return object(m, "usage")
}

func miniTokens(usage *value.Object, names ...string) value.Int {
	for _, name := range names {
		if usage.Has(name) {
			return count(usage, name)
		}
	}
	return value.Int{}
}

// metrics are the tokens of an answer and its share of the cost, by completion
// tokens.
func (l *miniLog) metrics(usage *value.Object) *atif.Metrics {
	if usage == nil {
		return nil
	}
	input, output := miniTokens(usage, "prompt_tokens", "input_tokens"), miniTokens(usage, "completion_tokens", "output_tokens")
	cached := count(usage, "prompt_tokens_details", "cached_tokens").Add(count(usage, "input_tokens_details", "cached_tokens"))
	l.input, l.output, l.cached = l.input.Add(input), l.output.Add(output), l.cached.Add(cached)
	l.reasoning = l.reasoning.Add(count(usage, "completion_tokens_details", "reasoning_tokens")).Add(count(usage, "output_tokens_details", "reasoning_tokens"))
	m := &atif.Metrics{PromptTokens: &input, CompletionTokens: &output, CachedTokens: positive(cached)}
	all, _ := l.completion.Float64()
	if mine, _ := output.Float64(); l.cost > 0 && all > 0 && mine > 0 {
		m.CostUSD = new(mine / all * l.cost)
	}
	extra := &value.Object{}
	for _, key := range []string{"prompt_tokens_details", "completion_tokens_details"} {
		if v := at(usage, key); !value.IsNull(v) {
			extra.Set(key, v)
		}
	}
	if extra.Len() > 0 {
		m.Extra = extra
	}
	return m
}

func (l *miniLog) finish(doc, info *value.Object) {
	l.out.InputTokens, l.out.CachedTokens, l.out.OutputTokens, l.out.CostUSD = &l.input, &l.cached, &l.output, &l.cost
	final := &atif.FinalMetrics{PromptTokens: &l.input, CompletionTokens: &l.output, CachedTokens: &l.cached}
	if l.cost > 0 {
		final.CostUSD = &l.cost
	}
	if l.reasoning.Sign() > 0 {
		final.Extra = value.NewObject(1)
		final.Extra.Set("total_reasoning_tokens", l.reasoning)
	}
	extra := value.NewObject(2)
	extra.Set("original_format", orNull(at(doc, "trajectory_format")))
	extra.Set("agent_config", orNull(at(info, "config", "agent")))
	l.out.Trajectory = &atif.Trajectory{
		SessionID:    optional(l.in.Session),
		Agent:        atif.AgentInfo{Name: "mini-swe-agent", Version: either(text(info, "mini_version"), l.in.version()), ModelName: optional(l.model), Extra: extra},
		Steps:        number(l.steps),
		Notes:        new("Converted from mini-swe-agent trajectory format to ATIF"),
		FinalMetrics: final,
	}
}
