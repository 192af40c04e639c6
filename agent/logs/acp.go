package logs

import (
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// ACP reads acp.jsonl, in which this program keeps what it and an agent say to each other
// by the Agent Client Protocol: an object on each line, whose message is one of JSON-RPC
// and whose from is "agent" or "proctor". Pieces of what the agent says or thinks are
// joined until it calls a tool.
func ACP(d *Dir, in Input) (*Converted, error) {
	out := &Converted{}
	l := acpLog{asked: map[string]string{}, tools: map[string]*acpTool{}}
	for r := range d.Records("acp.jsonl") {
		m := object(r, "message")
		switch text(r, "from") {
		case "proctor":
			l.proctor(timestamp(r, "at"), m)
		case "agent":
			l.peer(timestamp(r, "at"), m)
		}
	}
	l.settle()
	out.Failure = l.failure
	if in.Model == "" {
		l.model = l.current
	}
	l.finish(out, either(l.name, "acp"), in, l.spent)
	return out, nil
}

type acpLog struct {
	conversation
	name, current string // of the agent, and what it calls its model
	// asked are this program's requests, by their ids.
	asked   map[string]string
	tools   map[string]*acpTool
	failure string
	spent   float64 // dollars, as the agent says
	// said and thought are pieces of the last step, which is the agent's while open.
	said, thought strings.Builder
	open, called  bool
}

// acpTool is a call, of which the agent tells more and more.
type acpTool struct {
	step, call int
	told       bool // its result is there
	output     string
}

// proctor takes what this program said.
func (l *acpLog) proctor(at *string, m *value.Object) {
	method := text(m, "method")
	if id := orNull(member(m, "id")); method != "" && !value.IsNull(id) {
		l.asked[dumps(id)] = method
	}
	if method != "session/prompt" {
		return
	}
	l.settle()
	var said []string
	for _, block := range list(m, "params", "prompt") {
		if s := text(block, "text"); s != "" {
			said = append(said, s)
		}
	}
	l.user(at, strings.Join(said, "\n"))
}

// member is what a message has under a name.
func member(m *value.Object, key string) value.Value {
	if m == nil {
		return nil
	}
	v, _ := m.Get(key)
	return v
}

// peer takes what the agent said.
func (l *acpLog) peer(at *string, m *value.Object) {
	switch text(m, "method") {
	case "session/update":
		l.update(at, object(m, "params", "update"))
	case "session/request_permission":
		call := object(m, "params", "toolCall")
		l.tool(at, call) // its content is for who is asked, and no result
	case "":
		l.answer(l.asked[dumps(orNull(member(m, "id")))], m)
	}
}

// answer takes an answer of the agent to a request.
func (l *acpLog) answer(method string, m *value.Object) {
	if e := object(m, "error"); e != nil && method != "" {
		l.failure = text(e, "message")
		if data := member(e, "data"); !value.IsNull(orNull(data)) {
			l.failure = strings.TrimSpace(l.failure + " " + dumps(data))
		}
		return
	}
	r := object(m, "result")
	switch method {
	case "initialize":
		l.name, l.version = text(r, "agentInfo", "name"), text(r, "agentInfo", "version")
	case "session/new":
		l.session, l.current = text(r, "sessionId"), text(r, "models", "currentModelId")
	case "session/prompt":
		l.failure = ""
		l.used(r)
	}
}

// usedBy takes what Qwen Code says of the tokens of a step when that has ended.
func (l *acpLog) usedBy(u *value.Object) {
	if u == nil || !l.open {
		return
	}
	s := &l.steps[len(l.steps)-1]
	if s.Metrics == nil {
		s.Metrics = l.usage(count(u, "inputTokens"), count(u, "cachedReadTokens"), count(u, "outputTokens"), nil)
	}
}

// used takes what an answer to a prompt says of tokens, where no step has: as the protocol
// has it, or as Gemini CLI does.
func (l *acpLog) used(r *value.Object) {
	if l.metered {
		return
	}
	if u := object(r, "usage"); u != nil {
		l.usage(count(u, "inputTokens").Add(count(u, "cachedReadTokens")).Add(count(u, "cachedWriteTokens")), count(u, "cachedReadTokens"), count(u, "outputTokens").Add(count(u, "thoughtTokens")), nil)
		return
	}
	q := object(r, "_meta", "quota", "token_count")
	l.usage(count(q, "input_tokens"), value.Int{}, count(q, "output_tokens"), nil)
}

func (l *acpLog) update(at *string, u *value.Object) {
	switch text(u, "sessionUpdate") {
	case "agent_message_chunk":
		if s := acpText(member(u, "content")); s != "" {
			l.step(at, l.called)
			l.said.WriteString(s)
		}
		l.usedBy(object(u, "_meta", "usage"))
	case "agent_thought_chunk":
		if s := acpText(member(u, "content")); s != "" {
			l.step(at, l.called || l.said.Len() > 0)
			l.thought.WriteString(s)
		}
	case "tool_call", "tool_call_update":
		l.tool(at, u)
	case "usage_update":
		if c := amount(u, "cost", "amount"); c != nil && *c > 0 && text(u, "cost", "currency") == "USD" {
			l.spent = *c
		}
	}
}

// step begins a step of the agent's where it is to be a new one, or there is none.
func (l *acpLog) step(at *string, another bool) {
	if l.open && !another {
		return
	}
	l.settle()
	l.agent(atif.Step{Timestamp: at})
	l.open = true
}

// settle ends a step of the agent's.
func (l *acpLog) settle() {
	if l.open {
		s := &l.steps[len(l.steps)-1]
		s.Message, s.ReasoningContent = atif.Text(l.said.String()), optional(l.thought.String())
	}
	l.said.Reset()
	l.thought.Reset()
	l.open, l.called = false, false
}

// tool takes what is told of a call. What is told later of its name and arguments counts;
// of its result what ends it.
func (l *acpLog) tool(at *string, u *value.Object) {
	id := text(u, "toolCallId")
	if id == "" {
		return
	}
	t := l.tools[id]
	if t == nil {
		l.step(at, false)
		l.called = true
		i := len(l.steps) - 1
		t = &acpTool{step: i, call: len(l.steps[i].ToolCalls)}
		l.tools[id] = t
		l.steps[i].ToolCalls = append(l.steps[i].ToolCalls, atif.ToolCall{ID: id, FunctionName: "tool", Arguments: &value.Object{}})
	}
	s := &l.steps[t.step]
	describe(&s.ToolCalls[t.call], u)
	if u.Has("sessionUpdate") && (u.Has("content") || u.Has("rawOutput")) {
		t.output = acpOutput(u)
	}
	status := text(u, "status")
	if status != "completed" && status != "failed" || t.told {
		return
	}
	t.told = true
	r := atif.Result{SourceCallID: &id, Content: new(atif.Text(t.output))}
	if status == "failed" {
		r.Extra = value.NewObject(1)
		r.Extra.Set("is_error", value.Bool(true))
	}
	if s.Observation == nil {
		s.Observation = &atif.Observation{}
	}
	s.Observation.Results = append(s.Observation.Results, r)
}

// describe puts into a call what is told of it. Its name is the kind of tool, where that is
// known: titles are sentences for people, and are kept with the arguments.
func describe(c *atif.ToolCall, u *value.Object) {
	title, kind := text(u, "title"), text(u, "kind")
	switch {
	case kind != "" && kind != "other":
		c.FunctionName = kind
	case title != "" && c.FunctionName == "tool":
		c.FunctionName = title
	}
	if title != "" {
		if c.Extra == nil {
			c.Extra = value.NewObject(1)
		}
		c.Extra.Set("title", value.Str(title))
		if c.Arguments.Len() == 0 { // for people, but better than nothing
			c.Arguments.Set("title", value.Str(title))
		}
	}
	switch raw := member(u, "rawInput").(type) {
	case nil, value.Null:
	case *value.Object:
		if raw.Len() > 0 {
			c.Arguments = raw
		}
	default:
		c.Arguments = value.NewObject(1)
		c.Arguments.Set("input", raw)
	}
}

// acpText is the text of a block.
func acpText(block value.Value) string {
	switch text(block, "type") {
	case "text":
		return text(block, "text")
	case "resource":
		return text(block, "resource", "text")
	case "resource_link":
		return text(block, "uri")
	}
	return ""
}

// acpOutput is what a call gave: text and changes of files, else what the tool itself
// said.
func acpOutput(u *value.Object) string {
	var said []string
	for _, c := range list(u, "content") {
		switch text(c, "type") {
		case "content":
			if s := acpText(at(c, "content")); s != "" {
				said = append(said, s)
			}
		case "diff":
			said = append(said, "changed "+text(c, "path"))
		}
	}
	if len(said) > 0 {
		return strings.Join(said, "\n")
	}
	switch raw := member(u, "rawOutput").(type) {
	case nil, value.Null:
		return ""
	case value.Str:
		return string(raw)
	default:
		return dumps(raw)
	}
}
