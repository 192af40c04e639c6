package logs

import (
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// Goose reads what goose printed as JSON, goose.txt. It says only how many tokens
// it used in all, which count as input. The plain text of older versions is not
// read.
func Goose(d *Dir, in Input) (*Converted, error) {
	l := gooseLog{}
	l.out.Style = atif.ASCII
	var total *value.Int
	for r := range d.Records("goose.txt") {
		switch text(r, "type") {
		case "message":
			l.message(object(r, "message"))
		case "error":
			l.flush()
			failure := text(r, "error")
			l.out.Failure = failure
			l.steps = append(l.steps, atif.Step{Source: atif.Agent, Message: atif.Text("[error] " + failure)})
		case "complete":
			if at(r, "total_tokens") != nil {
				total = new(count(r, "total_tokens"))
			}
		}
	}
	l.flush()
	if len(l.steps) == 0 {
		return &l.out, nil
	}
	final := &atif.FinalMetrics{Steps: stepCount(l.steps)}
	if total != nil {
		l.out.InputTokens = total
		final.Extra = value.NewObject(1)
		final.Extra.Set("total_tokens", *total)
	}
	l.out.Trajectory = &atif.Trajectory{
		SchemaVersion: "ATIF-v1.2",
		SessionID:     optional(in.Session),
		Agent:         atif.AgentInfo{Name: "goose", Version: either(in.Version, "stable"), ModelName: optional(in.Model)},
		Steps:         number(l.steps),
		FinalMetrics:  final,
	}
	return &l.out, nil
}

type gooseLog struct {
	out   Converted
	steps []atif.Step
	open  *gooseAnswer
}

// gooseAnswer is a message of the agent, which comes in pieces of one id.
type gooseAnswer struct {
	id            string
	said, thought strings.Builder
	calls         []atif.ToolCall
	called        map[string]bool // the ids of calls
	results       []atif.Result
}

// flush adds the message that was open.
func (l *gooseLog) flush() {
	if l.open == nil {
		return
	}
	s := atif.Step{
		Source: atif.Agent, Message: atif.Text(l.open.said.String()), ReasoningContent: optional(l.open.thought.String()),
		ToolCalls: l.open.calls,
	}
	if l.open.results != nil {
		s.Observation = &atif.Observation{Results: l.open.results}
	}
	l.steps, l.open = append(l.steps, s), nil
}

func (l *gooseLog) message(m *value.Object) {
	if text(m, "role") == "assistant" {
		if l.open == nil || l.open.id != text(m, "id") {
			l.flush()
			l.open = &gooseAnswer{id: text(m, "id"), called: map[string]bool{}}
		}
		for _, part := range list(m, "content") {
			l.open.add(part)
		}
		return
	}
	var said []string
	for _, part := range list(m, "content") {
		switch text(part, "type") {
		case "text":
			said = append(said, text(part, "text"))
		case "toolResponse":
			l.response(part)
		}
	}
	if said != nil {
		l.flush()
		l.steps = append(l.steps, atif.Step{Source: atif.User, Message: atif.Text(strings.Join(said, "\n"))})
	}
}

func (a *gooseAnswer) add(part value.Value) {
	switch text(part, "type") {
	case "text":
		a.said.WriteString(text(part, "text"))
	case "thinking":
		a.thought.WriteString(text(part, "thinking"))
	case "toolRequest":
		call := object(part, "toolCall", "value")
		a.called[text(part, "id")] = true
		a.calls = append(a.calls, atif.ToolCall{ID: text(part, "id"), FunctionName: text(call, "name"), Arguments: object(call, "arguments")})
	}
}

// response attaches a result to the agent's last message, if that made the call.
func (l *gooseLog) response(part value.Value) {
	id := text(part, "id")
	if l.open == nil || !l.open.called[id] {
		return
	}
	content := geminiText(at(part, "toolResult", "value", "content"))
	l.open.results = append(l.open.results, atif.Result{SourceCallID: &id, Content: new(atif.Text(content))})
}
