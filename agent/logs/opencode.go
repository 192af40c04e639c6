package logs

import (
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// OpenCode reads what opencode printed, opencode.txt: a step is what stands
// between its start and its finish. One that was not finished is left out.
func OpenCode(d *Dir, in Input) (*Converted, error) { return readOpencode(d, in, "opencode"), nil }

// Kilo reads what Kilo CLI printed, which is opencode's format.
func Kilo(d *Dir, in Input) (*Converted, error) { return readOpencode(d, in, "kilo"), nil }

func readOpencode(d *Dir, in Input, agent string) *Converted {
	l := opencodeLog{in: in}
	for r := range d.Records(agent + ".txt") {
		l.event(r)
	}
	l.out.Style = atif.Compact
	if len(l.steps) == 0 {
		return &l.out
	}
	first := l.said
	if first == nil && in.Instruction != "" {
		first = &atif.Step{Source: atif.User, Message: atif.Text(in.Instruction)}
	}
	if first != nil {
		l.steps = append([]atif.Step{*first}, l.steps...)
	}
	l.out.InputTokens, l.out.CachedTokens, l.out.OutputTokens = positive(l.input), positive(l.cached), positive(l.output)
	if l.cost > 0 {
		l.out.CostUSD = &l.cost
	}
	l.out.Trajectory = &atif.Trajectory{
		SchemaVersion: "ATIF-v1.6",
		SessionID:     optional(l.session),
		Agent:         atif.AgentInfo{Name: agent, Version: in.version(), ModelName: optional(in.Model)},
		Steps:         number(l.steps),
		FinalMetrics: &atif.FinalMetrics{
			PromptTokens: l.out.InputTokens, CachedTokens: l.out.CachedTokens, CompletionTokens: l.out.OutputTokens,
			CostUSD: l.out.CostUSD, Steps: stepCount(l.steps),
		},
	}
	return &l.out
}

// positive is nil for none.
func positive(n value.Int) *value.Int {
	if n.Sign() <= 0 {
		return nil
	}
	return &n
}

type opencodeLog struct {
	in                    Input
	out                   Converted
	session               string
	said                  *atif.Step // by the user
	steps                 []atif.Step
	open                  *opencodeStep
	input, cached, output value.Int
	cost                  float64
}

// opencodeStep is a step that has begun.
type opencodeStep struct {
	step           atif.Step
	texts, thought []string
}

func (l *opencodeLog) event(r *value.Object) {
	l.session = either(l.session, text(r, "sessionID"))
	part := object(r, "part")
	switch kind := text(r, "type"); {
	case kind == "user" && l.said == nil:
		l.said = &atif.Step{Timestamp: isoMillis(r, "timestamp"), Source: atif.User, Message: atif.Text(geminiText(at(r, "parts")))}
	case kind == "error":
		said := either(text(r, "error", "data", "message"), either(text(r, "error", "message"), text(r, "error", "name")))
		l.out.Failure = withStatus(said, at(r, "error", "data", "statusCode"))
	case kind == "step_start":
		l.open = &opencodeStep{step: atif.Step{Timestamp: isoMillis(r, "timestamp"), Source: atif.Agent, ModelName: optional(l.in.Model)}}
	case l.open == nil:
	case kind == "text":
		l.open.texts = append(l.open.texts, text(part, "text"))
	case kind == "reasoning":
		l.open.thought = append(l.open.thought, text(part, "text"))
	case kind == "tool_use":
		l.open.call(part)
	case kind == "step_finish":
		l.finish(part)
	}
}

func (s *opencodeStep) call(part *value.Object) {
	id := text(part, "callID")
	s.step.ToolCalls = append(s.step.ToolCalls, atif.ToolCall{ID: id, FunctionName: text(part, "tool"), Arguments: object(part, "state", "input")})
	output := at(part, "state", "output")
	if value.IsNull(output) {
		output = at(part, "state", "error")
	}
	if value.IsNull(output) {
		return
	}
	content := string(value.Text(output))
	if !isText(output) {
		content = dumps(output)
	}
	if s.step.Observation == nil {
		s.step.Observation = &atif.Observation{}
	}
	s.step.Observation.Results = append(s.step.Observation.Results, atif.Result{SourceCallID: &id, Content: new(atif.Text(content))})
}

// finish ends a step; its input is given without what was cached.
func (l *opencodeLog) finish(part *value.Object) {
	s := l.open.step
	s.Message = atif.Text(either(strings.Join(l.open.texts, "\n"), "(tool use)"))
	s.ReasoningContent = optional(strings.Join(l.open.thought, "\n"))
	cached, output := count(part, "tokens", "cache", "read"), count(part, "tokens", "output")
	input := count(part, "tokens", "input").Add(cached)
	s.Metrics = &atif.Metrics{PromptTokens: &input, CompletionTokens: &output, CachedTokens: positive(cached)}
	if cost := amount(part, "cost"); cost != nil && *cost > 0 {
		s.Metrics.CostUSD = cost
		l.cost += *cost
	}
	extra := &value.Object{}
	if n := count(part, "tokens", "reasoning"); n.Sign() > 0 {
		extra.Set("reasoning_tokens", n)
	}
	if n := count(part, "tokens", "cache", "write"); n.Sign() > 0 {
		extra.Set("cache_write_tokens", n)
	}
	if extra.Len() > 0 {
		s.Metrics.Extra = extra
	}
	l.input, l.cached, l.output = l.input.Add(input), l.cached.Add(cached), l.output.Add(output)
	l.steps, l.open = append(l.steps, s), nil
}
