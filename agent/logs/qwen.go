package logs

import (
	"path"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// QwenCoder reads the session of Qwen Code, CHATS/ID.jsonl below sessions or
// qwen-sessions, and what it printed as JSON, qwen-code.txt, which alone is enough:
// it lacks only times and what the user said.
func QwenCoder(d *Dir, in Input) (*Converted, error) {
	out := &Converted{}
	var printed, session qwenLog
	for r := range d.Records("qwen-code.txt") {
		printed.printed(r)
	}
	if name := qwenSession(d, printed.session); name != "" {
		for r := range d.Records(name) {
			session.record(r)
		}
	}
	l := &session
	if len(session.steps) == 0 {
		l = &printed
	}
	l.version, l.model = either(session.version, printed.version), either(l.model, printed.model)
	switch {
	case printed.ended:
		out.Failure = printed.failure
	case session.failure != "":
		out.Failure = session.failure
	case !l.answered:
		out.Failure = complaint(d, "qwen-code.txt", "stderr.txt")
	}
	if !l.metered && l.answered {
		l.totals(printed.total)
	}
	l.finish(out, "qwen-coder", in, 0)
	return out, nil
}

// qwenSession is the log of a session: the one whose name has the id, else the last.
func qwenSession(d *Dir, id string) string {
	last, named := "", ""
	for _, top := range []string{"sessions", "qwen-sessions"} {
		d.Walk(top, func(name string, isDir bool) {
			if isDir || path.Ext(name) != ".jsonl" || path.Base(path.Dir(name)) != "chats" {
				return
			}
			last = name
			if id != "" && path.Base(name) == id+".jsonl" {
				named = name
			}
		})
	}
	return either(named, last)
}

type qwenLog struct {
	conversation
	answered bool   // by the model
	ended    bool   // what was printed has its end
	failure  string // what it says went wrong
	total    *value.Object
}

// record adds a record of a session, whose messages are Gemini's.
func (l *qwenLog) record(r *value.Object) {
	l.session, l.version = either(l.session, text(r, "sessionId")), either(text(r, "version"), l.version)
	parts := list(r, "message", "parts")
	switch text(r, "type") {
	case "user":
		l.user(timestamp(r, "timestamp"), geminiText(parts))
	case "assistant":
		l.answer(r, parts)
	case "tool_result":
		for _, p := range parts {
			response := object(p, "functionResponse", "response")
			failed := text(r, "toolCallResult", "status") == "error" || response.Has("error")
			l.result(text(p, "functionResponse", "id"), qwenOutput(response), failed)
		}
	case "system":
		if e := object(r, "systemPayload", "uiEvent"); text(e, "event.name") == "qwen-code.api_error" {
			l.failure = withStatus(text(e, "error_message"), at(e, "status_code"))
		}
	}
}

func qwenOutput(response *value.Object) string {
	v := at(response, "output")
	if value.IsNull(v) {
		v = at(response, "error")
	}
	switch v := v.(type) {
	case nil, value.Null:
		return ""
	case value.Str:
		return string(v)
	}
	return dumps(v)
}

func (l *qwenLog) answer(r *value.Object, parts value.List) {
	var said, thought []string
	for _, p := range parts {
		switch s := text(p, "text"); {
		case s == "":
		case at(p, "thought") == value.Bool(true):
			thought = append(thought, s)
		default:
			said = append(said, s)
		}
	}
	l.answered, l.failure = true, ""
	l.agent(atif.Step{
		Timestamp: timestamp(r, "timestamp"), ModelName: optional(text(r, "model")),
		Message: atif.Text(strings.Join(said, "\n")), ReasoningContent: optional(strings.Join(thought, "\n")),
		Metrics: l.tokens(object(r, "usageMetadata")),
	})
	for _, p := range parts {
		if call := object(p, "functionCall"); call != nil {
			l.call(text(call, "id"), text(call, "name"), at(call, "args"))
		}
	}
}

// tokens are those of an answer. Its input has what was cached; whether its output has
// what was thought depends on the provider, and the total tells.
func (l *qwenLog) tokens(usage *value.Object) *atif.Metrics {
	input, output, thoughts := count(usage, "promptTokenCount"), count(usage, "candidatesTokenCount"), count(usage, "thoughtsTokenCount")
	if apart := output.Add(thoughts); count(usage, "totalTokenCount").Cmp(input.Add(apart)) == 0 {
		output = apart
	}
	return l.usage(input, count(usage, "cachedContentTokenCount"), output, nil)
}

// printed adds a record of what was printed, which resembles Claude Code's.
func (l *qwenLog) printed(r *value.Object) {
	l.session = either(l.session, text(r, "session_id"))
	m := object(r, "message")
	switch text(r, "type") {
	case "system":
		l.version, l.model = either(text(r, "qwen_code_version"), l.version), either(l.model, text(r, "model"))
	case "user":
		for _, b := range list(m, "content") {
			if text(b, "type") == "tool_result" {
				l.result(text(b, "tool_use_id"), qwenContent(at(b, "content")), at(b, "is_error") == value.Bool(true))
			}
		}
	case "assistant":
		l.message(m)
	case "result":
		l.ended, l.failure, l.total = true, "", object(r, "usage")
		if at(r, "is_error") == value.Bool(true) {
			l.failure = either(text(r, "error", "message"), either(text(r, "result"), text(r, "subtype")))
		}
	}
}

// qwenContent is the content of a result: text, or blocks of it.
func qwenContent(v value.Value) string {
	if blocks, ok := v.(value.List); ok {
		return joined(blocks, "text")
	}
	s, _ := v.(value.Str)
	return string(s)
}

// message adds an answer. That of a call that failed is no model's, and used nothing.
func (l *qwenLog) message(m *value.Object) {
	usage, blocks := object(m, "usage"), list(m, "content")
	metrics := l.usage(count(usage, "input_tokens"), count(usage, "cache_read_input_tokens"), count(usage, "output_tokens"), nil)
	if said := joined(blocks, "text"); metrics == nil && strings.HasPrefix(said, "[API Error") {
		l.failure = said
		return
	}
	l.answered = true
	l.agent(atif.Step{
		ModelName: optional(text(m, "model")), Metrics: metrics,
		Message: atif.Text(joined(blocks, "text")), ReasoningContent: optional(joined(blocks, "thinking")),
	})
	for _, b := range blocks {
		if text(b, "type") == "tool_use" {
			l.call(text(b, "id"), text(b, "name"), at(b, "input"))
		}
	}
}

// totals takes what the run used in all, where no answer says it.
func (l *qwenLog) totals(total *value.Object) {
	l.usage(count(total, "input_tokens"), count(total, "cache_read_input_tokens"), count(total, "output_tokens"), nil)
}
