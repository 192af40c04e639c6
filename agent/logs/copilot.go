package logs

import (
	"path"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// CopilotCLI reads the events of GitHub Copilot CLI: those of its session,
// sessions/ID/events.jsonl, else those that it printed, copilot-cli.jsonl, which do not
// say what was used. What it calls cost is no money.
func CopilotCLI(d *Dir, in Input) (*Converted, error) {
	out := &Converted{}
	l, printed := copilotLog{}, copilotLog{}
	for r := range d.Records("copilot-cli.jsonl") {
		printed.event(r)
	}
	if name := copilotSession(d, printed.session); name != "" {
		for r := range d.Records(name) {
			l.event(r)
		}
	}
	if len(l.steps) == 0 {
		l, printed = printed, l
	}
	l.session, l.version, l.model = either(l.session, printed.session), either(l.version, printed.version), either(l.model, printed.model)
	out.Failure = either(l.failure, printed.failure)
	switch {
	case l.ended && l.failed || printed.ended && printed.failed:
		out.Failure = either(out.Failure, either(l.refused, printed.refused))
	case l.ended || printed.ended:
		out.Failure = ""
	}
	if out.Failure == "" && !l.answered {
		out.Failure = complaint(d, "copilot-cli.jsonl", "stderr.txt")
	}
	if !l.metered {
		l.totals()
	}
	l.finish(out, "copilot-cli", in, 0)
	return out, nil
}

// copilotSession is the log of a session: the one with the id, else the first.
func copilotSession(d *Dir, id string) string {
	first, named := "", ""
	d.Walk("sessions", func(name string, isDir bool) {
		if isDir || path.Base(name) != "events.jsonl" {
			return
		}
		first = either(first, name)
		if id != "" && path.Base(path.Dir(name)) == id {
			named = name
		}
	})
	return either(named, first)
}

type copilotLog struct {
	conversation
	used     map[string]*atif.Metrics // by the id of a call of the model that has no step yet
	thought  string                   // before the next answer
	answered bool                     // by the model
	ended    bool                     // with a result
	failed   bool                     // which says so
	failure  string                   // what the last error says
	refused  string                   // what the last call of the model that failed says
	models   *value.Object            // what each model used, from the end of the session
}

func (l *copilotLog) event(r *value.Object) {
	data := object(r, "data")
	switch text(r, "type") {
	case "session.start":
		l.session, l.version = text(data, "sessionId"), text(data, "copilotVersion")
		l.model = either(l.model, text(data, "selectedModel"))
	case "user.message":
		l.user(timestamp(r, "timestamp"), text(data, "content"))
	case "assistant.reasoning":
		l.thought = text(data, "content")
	case "assistant.message":
		l.answer(r, data)
	case "tool.execution_complete":
		content := either(text(data, "result", "content"), text(data, "error", "message"))
		l.result(text(data, "toolCallId"), content, at(data, "success") == value.Bool(false))
	case "session.usage_record":
		l.usageRecord(object(data, "usage"))
	case "session.shutdown":
		l.models = object(data, "modelMetrics")
		if snapshot := object(data, "accountingSnapshot", "modelMetrics"); l.models == nil {
			l.models = snapshot
		}
	case "model.call_failure":
		l.refused = withStatus(text(data, "errorMessage"), at(data, "statusCode"))
	case "session.error":
		l.failure = withStatus(text(data, "message"), at(data, "statusCode"))
	case "result":
		l.session = either(l.session, text(r, "sessionId"))
		l.ended, l.failed = true, count(r, "exitCode").Sign() != 0
	}
}

// usageRecord comes before the answer that it is of. Input has what was cached.
func (l *copilotLog) usageRecord(usage *value.Object) {
	m := l.usage(count(usage, "inputTokens"), count(usage, "cacheReadTokens"), count(usage, "outputTokens"), nil)
	id := text(usage, "apiCallId")
	if m == nil || id == "" {
		return
	}
	if l.used == nil {
		l.used = map[string]*atif.Metrics{}
	}
	l.used[id] = m
}

// answer adds what the model said. What helpers of the agent say stands with the call
// that started them.
func (l *copilotLog) answer(r, data *value.Object) {
	if text(data, "parentToolCallId") != "" {
		return
	}
	id := text(data, "apiCallId")
	l.answered, l.failure = true, ""
	l.agent(atif.Step{
		Timestamp: timestamp(r, "timestamp"), ModelName: optional(text(data, "model")), Metrics: l.used[id],
		Message: atif.Text(text(data, "content")), ReasoningContent: optional(either(text(data, "reasoningText"), l.thought)),
	})
	delete(l.used, id)
	l.thought = ""
	for _, call := range list(data, "toolRequests") {
		l.call(text(call, "toolCallId"), text(call, "name"), at(call, "arguments"))
	}
}

// totals takes what the session used in all, where no record says it of an answer.
func (l *copilotLog) totals() {
	for _, m := range l.models.All() {
		u := object(m, "usage")
		l.usage(count(u, "inputTokens"), count(u, "cacheReadTokens"), count(u, "outputTokens"), nil)
	}
}
