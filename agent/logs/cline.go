package logs

import (
	"path"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// ClineCLI reads the session of Cline CLI, sessions/ID/ID.messages.json and ID.json,
// and what it printed as JSON, cline.txt, which alone is enough: it lacks what the
// user said and the version.
func ClineCLI(d *Dir, in Input) (*Converted, error) {
	out := &Converted{}
	var printed clineLog
	for r := range d.Records("cline.txt") {
		printed.printed(r)
	}
	printed.close()
	session := clineSession(d)
	l := session
	if len(session.steps) == 0 {
		l = &printed
		l.told(session.prompt)
	}
	l.session, l.version, l.model = session.session, session.version, either(l.model, printed.model)
	out.Failure = either(printed.failure, session.failure)
	if printed.ended {
		out.Failure = printed.failure
	}
	if out.Failure == "" && !l.answered {
		out.Failure = complaint(d, "cline.txt", "stderr.txt")
	}
	if total := printed.total; !l.metered && total != nil {
		l.usage(clineUsage(total))
	}
	cost := 0.0
	if c := amount(printed.total, "totalCost"); c != nil {
		cost = *c
	}
	l.finish(out, "cline-cli", in, cost)
	return out, nil
}

// maxSessions is how many sessions are looked into for the one that counts.
const maxSessions = 50

// clineSession reads the first session of the lead agent, whose name begins with a
// time; helpers that it starts have later ones.
func clineSession(d *Dir) *clineLog {
	var files []string
	d.Walk("sessions", func(name string, isDir bool) {
		if !isDir && strings.HasSuffix(name, ".messages.json") && len(files) < maxSessions {
			files = append(files, name)
		}
	})
	l := &clineLog{}
	for _, name := range files {
		doc := d.Document(name)
		if agent := text(doc, "agent"); doc == nil || agent != "" && agent != "lead" {
			continue
		}
		id := strings.TrimSuffix(path.Base(name), ".messages.json")
		about := d.Document(path.Join(path.Dir(name), id+".json"))
		l.session = either(text(doc, "sessionId"), id)
		l.version = either(text(doc, "origin", "version"), text(about, "metadata", "sessionHistoryOrigin", "version"))
		l.prompt = text(about, "prompt")
		for _, m := range list(doc, "messages") {
			l.message(m)
		}
		l.model = either(l.model, text(about, "model"))
		break
	}
	return l
}

type clineLog struct {
	conversation
	prompt   string // what the user said
	answered bool   // by the model
	ended    bool   // what was printed has its end
	failure  string // what it says went wrong
	total    *value.Object

	said []string // in the step that is open; of what was printed
}

// message adds a message of a session.
func (l *clineLog) message(m value.Value) {
	blocks := list(m, "content")
	if text(m, "role") == "user" {
		for _, b := range blocks {
			if text(b, "type") == "tool_result" {
				content, failed := clineOutput(at(b, "content"))
				l.result(text(b, "tool_use_id"), content, failed || at(b, "is_error") == value.Bool(true))
			}
		}
		l.user(isoMillis(m, "ts"), clineInput(clineText(m)))
		return
	}
	if text(m, "role") != "assistant" {
		return
	}
	// What only stands on the screen is no model's.
	if text(m, "metadata", "displayRole") == "error" {
		l.failure = clineText(m)
		return
	}
	l.answered, l.failure = true, ""
	l.agent(atif.Step{
		Timestamp: isoMillis(m, "ts"), ModelName: optional(text(m, "modelInfo", "id")),
		Message:          atif.Text(clineText(m)),
		ReasoningContent: optional(either(joined(blocks, "thinking"), joined(blocks, "reasoning"))),
		Metrics:          l.usage(clineUsage(object(m, "metrics"))),
	})
	for _, b := range blocks {
		if text(b, "type") == "tool_use" {
			l.call(text(b, "id"), text(b, "name"), at(b, "input"))
		}
	}
}

// clineText is what a message says, in one text or in blocks.
func clineText(m value.Value) string {
	if s := text(m, "content"); s != "" {
		return s
	}
	return joined(list(m, "content"), "text")
}

// clineInput takes the tag off what the user said.
func clineInput(said string) string {
	rest, tagged := strings.CutPrefix(said, "<user_input")
	_, rest, opened := strings.Cut(rest, ">")
	inner, closed := strings.CutSuffix(strings.TrimSpace(rest), "</user_input>")
	if !tagged || !opened || !closed {
		return said
	}
	return inner
}

// clineOutput is the result of a tool: text, or a list with what each command or file
// gave.
func clineOutput(v value.Value) (content string, failed bool) {
	items, isList := v.(value.List)
	if !isList {
		items = value.List{v}
	}
	var parts []string
	for _, item := range items {
		failed = failed || at(item, "success") == value.Bool(false)
		switch result, isResult := at(item, "result").(value.Str); {
		case value.IsNull(item):
		case isText(item):
			parts = append(parts, value.Text(item))
		case text(item, "type") == "text":
			parts = append(parts, text(item, "text"))
		case isResult && text(item, "error") == "":
			parts = append(parts, string(result))
		case text(item, "error") != "":
			parts = append(parts, strings.TrimLeft(string(result)+"\n"+text(item, "error"), "\n"))
		default:
			parts = append(parts, dumps(item))
		}
	}
	return strings.Join(parts, "\n"), failed
}

// clineUsage is what was used; the input has what was cached.
func clineUsage(usage *value.Object) (input, cached, output value.Int, cost *float64) {
	return count(usage, "inputTokens"), count(usage, "cacheReadTokens"), count(usage, "outputTokens"), amount(usage, "cost")
}

// printed adds a record of what was printed: an answer lies between the start and the
// end of an iteration.
func (l *clineLog) printed(r *value.Object) {
	switch text(r, "type") {
	case "agent_event":
		l.event(r, object(r, "event"))
	case "run_result":
		l.ended, l.total = true, object(r, "usage")
		l.model = either(l.model, text(r, "model", "id"))
		if text(r, "finishReason") != "error" {
			l.failure = ""
		} else if said := text(r, "text"); !strings.Contains(l.failure, said) {
			l.failure = said
		}
	}
}

func (l *clineLog) event(r, e *value.Object) {
	switch kind := text(e, "type"); {
	case kind == "iteration_start":
		l.close()
		l.agent(atif.Step{Timestamp: timestamp(r, "ts")})
	case kind == "error":
		l.close()
		l.drop()
		l.failure = text(e, "error", "message")
		if class := text(e, "errorClass"); class != "" && class != "unknown" {
			l.failure += " (" + class + ")"
		}
	case len(l.steps) == 0:
	case kind == "usage":
		input, cached, output, _ := clineUsage(e)
		l.last().Metrics = l.usage(input, cached, output, nil)
		l.answered = true
	case kind == "content_start" && text(e, "contentType") == "tool":
		l.call(text(e, "toolCallId"), text(e, "toolName"), at(e, "input"))
	case kind == "content_end":
		l.content(e)
	}
}

// content adds what has come whole: a piece of the answer, or the result of a tool.
func (l *clineLog) content(e *value.Object) {
	switch text(e, "contentType") {
	case "text":
		l.said = append(l.said, text(e, "text"))
	case "reasoning":
		l.last().ReasoningContent = optional(either(text(e, "reasoning"), text(e, "text")))
	case "tool":
		output, failed := clineOutput(at(e, "output"))
		if said := text(e, "error"); said != "" {
			output, failed = either(output, said), true
		}
		l.result(text(e, "toolCallId"), output, failed)
	}
}

func (l *clineLog) last() *atif.Step { return &l.steps[len(l.steps)-1] }

// close gives the step that is open what was said in it.
func (l *clineLog) close() {
	if len(l.steps) > 0 && l.said != nil {
		l.last().Message = atif.Text(strings.Join(l.said, "\n"))
	}
	l.said = nil
}

// drop takes away an answer that never came.
func (l *clineLog) drop() {
	if len(l.steps) > 0 && l.last().Metrics == nil && l.last().ToolCalls == nil && l.last().Message.Text == "" {
		l.steps = l.steps[:len(l.steps)-1]
	}
}
