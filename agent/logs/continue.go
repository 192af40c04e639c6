package logs

import (
	"path"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// Continue reads the session of Continue CLI, sessions/ID.json, which alone says what
// was used, and the one object that it prints at the end, in continue.txt or, after a
// failure, in stderr.txt.
func Continue(d *Dir, in Input) (*Converted, error) {
	out := &Converted{}
	l := continueLog{}
	doc := continueSession(d)
	l.session = text(doc, "sessionId")
	for _, item := range list(doc, "history") {
		l.item(item)
	}
	response := ""
	for _, name := range []string{"continue.txt", "stderr.txt"} {
		for r := range d.Records(name) {
			switch text(r, "status") {
			case "error":
				out.Failure = text(r, "message")
			case "success":
				out.Failure = ""
				response = either(text(r, "response"), response)
			}
		}
	}
	if out.Failure == "" && !l.answered && response == "" {
		out.Failure = complaint(d, "continue.txt", "stderr.txt")
	}
	if !l.answered && response != "" {
		l.agent(atif.Step{Message: atif.Text(response)})
	}
	cost := 0.0
	if c := amount(doc, "usage", "totalCost"); c != nil {
		cost = *c
	}
	if usage := object(doc, "usage"); !l.metered && usage != nil {
		l.usage(count(usage, "promptTokens"), count(usage, "promptTokensDetails", "cachedTokens"), count(usage, "completionTokens"), nil)
	}
	l.finish(out, "continue", in, cost)
	return out, nil
}

// continueSession is the first file that has a session: a list of them stands beside.
func continueSession(d *Dir) *value.Object {
	var files []string
	d.Walk("sessions", func(name string, isDir bool) {
		if !isDir && path.Ext(name) == ".json" && path.Base(name) != "sessions.json" && len(files) < maxSessions {
			files = append(files, name)
		}
	})
	for _, name := range files {
		if doc := d.Document(name); doc.Has("history") {
			return doc
		}
	}
	return nil
}

type continueLog struct {
	conversation
	thought  []string // before the next answer
	answered bool     // by the model
}

// item adds a message of the session, with the tools that it called.
func (l *continueLog) item(item value.Value) {
	m := object(item, "message")
	said := geminiText(at(m, "content"))
	switch text(m, "role") {
	case "user":
		l.user(nil, said)
	case "thinking":
		l.thought = append(l.thought, said)
	case "tool":
		l.result(text(m, "toolCallId"), said, false)
	case "assistant":
		l.answered = true
		l.agent(atif.Step{
			ModelName: optional(text(m, "usage", "model")), Message: atif.Text(said),
			ReasoningContent: optional(either(strings.Join(l.thought, "\n"), text(item, "reasoning", "text"))),
			Metrics:          l.tokens(object(m, "usage")),
		})
		l.thought = nil
		l.tools(item, m)
	}
}

// tokens are those of an answer; the input has what was cached.
func (l *continueLog) tokens(usage *value.Object) *atif.Metrics {
	var cost *float64
	if cents := amount(usage, "cost_cents"); cents != nil {
		cost = new(*cents / 100)
	}
	return l.usage(count(usage, "prompt_tokens"), count(usage, "prompt_tokens_details", "cached_tokens"), count(usage, "completion_tokens"), cost)
}

func (l *continueLog) tools(item value.Value, m *value.Object) {
	for _, call := range list(m, "toolCalls") {
		l.call(text(call, "id"), text(call, "function", "name"), at(call, "function", "arguments"))
	}
	for _, state := range list(item, "toolCallStates") {
		status := text(state, "status")
		var parts []string
		for _, o := range list(state, "output") {
			parts = append(parts, text(o, "content"))
		}
		if parts != nil || status == "done" || status == "errored" || status == "canceled" {
			l.result(text(state, "toolCallId"), strings.Join(parts, "\n"), status == "errored" || status == "canceled")
		}
	}
}
