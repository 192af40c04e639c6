package logs

import (
	"strings"
	"time"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// Pi reads what the pi coding agent prints in its JSON mode, pi.txt: every message
// once more when it has ended, with what it cost.
func Pi(d *Dir, in Input) (*Converted, error) {
	l := piLog{calls: map[string]int{}}
	l.out.Style = atif.Compact
	session := ""
	for r := range d.Records("pi.txt") {
		switch text(r, "type") {
		case "session":
			session = text(r, "id")
		case "message_end":
			l.message(object(r, "message"))
		}
	}
	if len(l.steps) == 0 {
		return &l.out, nil
	}
	final := &atif.FinalMetrics{Steps: stepCount(l.steps)}
	if l.metered {
		l.out.InputTokens, l.out.CachedTokens, l.out.OutputTokens, l.out.CostUSD = &l.input, &l.cached, &l.output, &l.cost
		final.PromptTokens, final.CachedTokens, final.CompletionTokens, final.CostUSD = &l.input, &l.cached, &l.output, &l.cost
	}
	l.out.Trajectory = &atif.Trajectory{
		SessionID:    optional(session),
		Agent:        atif.AgentInfo{Name: "pi", Version: in.version(), ModelName: optional(l.model)},
		Steps:        number(l.steps),
		FinalMetrics: final,
	}
	return &l.out, nil
}

type piLog struct {
	out                   Converted
	steps                 []atif.Step
	calls                 map[string]int // the step of a call, by the call's id
	model                 string
	metered               bool // an answer had tokens
	input, cached, output value.Int
	cost                  float64
}

func (l *piLog) message(m *value.Object) {
	switch text(m, "role") {
	case "user":
		l.steps = append(l.steps, atif.Step{Timestamp: milliseconds(m), Source: atif.User, Message: atif.Text(joined(list(m, "content"), "text"))})
	case "assistant":
		l.answer(m)
	case "toolResult":
		l.result(m)
	}
}

func (l *piLog) answer(m *value.Object) {
	model := text(m, "model")
	if provider := text(m, "provider"); provider != "" && model != "" {
		model = provider + "/" + model
	}
	if l.model == "" {
		l.model = model
	}
	s := atif.Step{
		Timestamp: milliseconds(m), Source: atif.Agent, ModelName: optional(model),
		Message:          atif.Text(joined(list(m, "content"), "text")),
		ReasoningContent: optional(joined(list(m, "content"), "thinking")),
		Metrics:          l.metrics(object(m, "usage")),
	}
	for _, part := range list(m, "content") {
		if text(part, "type") == "toolCall" {
			id := text(part, "id")
			l.calls[id] = len(l.steps)
			s.ToolCalls = append(s.ToolCalls, atif.ToolCall{ID: id, FunctionName: text(part, "name"), Arguments: object(part, "arguments")})
		}
	}
	// The exit code of a run that a refused key ended is 0.
	l.out.Failure = ""
	if text(m, "stopReason") == "error" {
		l.out.Failure = text(m, "errorMessage")
		s.Extra = value.NewObject(1)
		s.Extra.Set("error", value.Str(l.out.Failure))
	}
	l.steps = append(l.steps, s)
}

// metrics are the tokens of one answer; its input is given without what was
// cached. An answer that never came has none.
func (l *piLog) metrics(usage *value.Object) *atif.Metrics {
	if count(usage, "totalTokens").Sign() == 0 {
		return nil
	}
	cached := count(usage, "cacheRead")
	input := count(usage, "input").Add(cached).Add(count(usage, "cacheWrite"))
	output := count(usage, "output")
	cost := amount(usage, "cost", "total")
	l.metered = true
	l.input, l.cached, l.output = l.input.Add(input), l.cached.Add(cached), l.output.Add(output)
	if cost != nil {
		l.cost += *cost
	}
	return &atif.Metrics{PromptTokens: &input, CachedTokens: &cached, CompletionTokens: &output, CostUSD: cost}
}

func (l *piLog) result(m *value.Object) {
	id := text(m, "toolCallId")
	i, known := l.calls[id]
	if !known {
		return
	}
	s := &l.steps[i]
	if s.Observation == nil {
		s.Observation = &atif.Observation{}
	}
	r := atif.Result{SourceCallID: &id, Content: new(atif.Text(joined(list(m, "content"), "text")))}
	if at(m, "isError") == value.Bool(true) {
		r.Extra = value.NewObject(1)
		r.Extra.Set("is_error", value.Bool(true))
	}
	s.Observation.Results = append(s.Observation.Results, r)
}

// joined is the text of the parts of one type, which hold it under its name.
func joined(parts value.List, kind string) string {
	var texts []string
	for _, p := range parts {
		if s := text(p, kind); s != "" && text(p, "type") == kind {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n\n")
}

// milliseconds is a time in milliseconds since 1970.
func milliseconds(m *value.Object) *string {
	n, ok := at(m, "timestamp").(value.Int)
	if !ok {
		return nil
	}
	ms, _ := n.Int64()
	s := time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
	if !atif.ValidTimestamp(s) {
		return nil
	}
	return &s
}
