package logs

import (
	"fmt"
	"path"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// Codex reads the session of Codex CLI: sessions/YYYY/MM/DD/rollout-*.jsonl.
func Codex(d *Dir, in Input) (*Converted, error) {
	name, err := codexSession(d)
	if err != nil {
		return nil, err
	}
	c := codexLog{in: in, calls: map[string]codexCall{}, answer: &codexAnswer{step: -1}}
	c.out.Style = atif.Compact
	c.out.Failure = codexFailure(d)
	if name == "" {
		return &c.out, nil
	}
	for r := range d.Records(name) {
		c.record(r)
	}
	c.finish()
	return &c.out, nil
}

// codexSession is the first log of the deepest directory below sessions.
func codexSession(d *Dir) (string, error) {
	var dirs, files []string
	deepest := 0
	d.Walk("sessions", func(name string, isDir bool) {
		depth := strings.Count(name, "/")
		switch {
		case !isDir:
			files = append(files, name)
		case depth > deepest:
			deepest, dirs = depth, []string{name}
		case depth == deepest:
			dirs = append(dirs, name)
		}
	})
	if len(dirs) > 1 {
		//lint:ignore ST1005 the reference's words
		return "", fmt.Errorf("Expected exactly 1 session, found %d", len(dirs)) //nolint:staticcheck // the reference's words
	}
	for _, f := range files {
		if len(dirs) == 1 && path.Dir(f) == dirs[0] && path.Ext(f) == ".jsonl" {
			return f, nil
		}
	}
	return "", nil
}

// codexFailure is what standard output says of a turn that failed.
func codexFailure(d *Dir) string {
	failure := ""
	for r := range d.Records("codex.txt") {
		switch text(r, "type") {
		case "turn.failed":
			failure = text(r, "error", "message")
		case "turn.completed":
			failure = ""
		}
	}
	return failure
}

// codexLog is a session as far as it has been read.
type codexLog struct {
	in        Input
	out       Converted
	agent     atif.AgentInfo
	session   string
	model     string
	reasoning string               // of the next item
	calls     map[string]codexCall // without output yet, by id
	answer    *codexAnswer         // of the model, as far as it has come
	usage     *value.Object        // what was used last
	steps     []atif.Step
}

type codexCall struct {
	record *value.Object
	answer *codexAnswer
}

// codexAnswer is one answer of the model, which may come to several steps. The first
// of them gets what it used, so that steps add up to what was used in all. Only the
// records of newer versions say what one answer used: the events that older ones also
// have come more than once for an answer, and the reference's trajectories of these
// have no metrics.
type codexAnswer struct {
	step  int           // -1 before there is one
	usage *value.Object // nil before it is known
}

func (c *codexLog) record(r *value.Object) {
	p := object(r, "payload")
	switch text(r, "type") {
	case "session_meta":
		c.session = text(p, "id")
		c.agent.Version = text(p, "cli_version")
		extra := &value.Object{}
		for _, key := range []string{"originator", "cwd", "git"} {
			if v := at(p, key); !value.IsNull(v) {
				extra.Set(key, v)
			}
		}
		if extra.Len() > 0 {
			c.agent.Extra = extra
		}
	case "turn_context":
		if m := text(p, "model"); m != "" && c.model == "" {
			c.model = m
		}
	case "event_msg":
		if text(p, "type") == "token_count" && object(p, "info", "total_token_usage") != nil {
			c.usage = object(p, "info")
		}
		if text(p, "type") == "task_complete" {
			c.out.Failure = either(c.out.Failure, text(p, "error", "message"))
		}
	case "token_usage_record":
		c.answer.usage = object(p, "usage")
		c.meter(c.answer)
		c.answer = &codexAnswer{step: -1}
	case "response_item":
		c.item(r, p)
	}
}

func (c *codexLog) item(r, p *value.Object) {
	switch text(p, "type") {
	case "message":
		c.message(r, p)
	case "reasoning":
		var lines []string
		for _, s := range list(p, "summary") {
			if line, ok := s.(value.Str); ok {
				lines = append(lines, string(line))
			} else if line := text(s, "text"); line != "" {
				lines = append(lines, line)
			}
		}
		c.reasoning = strings.Join(lines, "\n")
	case "function_call", "custom_tool_call":
		c.calls[text(p, "call_id")] = codexCall{record: r, answer: c.answer}
	case "function_call_output", "custom_tool_call_output":
		if call, ok := c.calls[text(p, "call_id")]; ok {
			delete(c.calls, text(p, "call_id"))
			c.call(call, p)
		}
	case "web_search_call":
		c.webSearch(r, p)
	}
}

func (c *codexLog) message(r, p *value.Object) {
	var body strings.Builder
	for _, part := range list(p, "content") {
		body.WriteString(text(part, "text"))
	}
	s := atif.Step{Timestamp: timestamp(r, "timestamp"), Source: atif.System, Message: atif.Text(body.String())}
	switch text(p, "role") {
	case "assistant":
		s = c.agentStep(r)
		s.Message = atif.Text(body.String())
		c.add(s, c.answer)
		return
	case "user":
		s.Source = atif.User
	}
	c.reasoning = ""
	c.steps = append(c.steps, s)
}

// add adds a step that is part of an answer.
func (c *codexLog) add(s atif.Step, a *codexAnswer) {
	c.steps = append(c.steps, s)
	if a.step < 0 {
		a.step = len(c.steps) - 1
		c.meter(a)
	}
}

// meter gives the first step of an answer what the answer used, once both are there.
func (c *codexLog) meter(a *codexAnswer) {
	if a.step < 0 || a.usage == nil {
		return
	}
	input, cached, output := count(a.usage, "input_tokens"), count(a.usage, "cached_input_tokens"), count(a.usage, "output_tokens")
	m := &atif.Metrics{PromptTokens: &input, CachedTokens: &cached, CompletionTokens: &output}
	if n := count(a.usage, "reasoning_output_tokens"); n.Sign() > 0 {
		m.Extra = value.NewObject(1)
		m.Extra.Set("reasoning_output_tokens", n)
	}
	c.steps[a.step].Metrics = m
}

// agentStep is a step of the agent with what it thought before.
func (c *codexLog) agentStep(r *value.Object) atif.Step {
	model := c.in.Model
	if model == "" {
		model = c.model
	}
	s := atif.Step{Timestamp: timestamp(r, "timestamp"), Source: atif.Agent, ModelName: optional(model), ReasoningContent: optional(c.reasoning)}
	c.reasoning = ""
	return s
}

// call adds a call that has its output. The output of commands is an object with
// text and metadata, that of others any text.
func (c *codexLog) call(call codexCall, output *value.Object) {
	p := object(call.record, "payload")
	raw := at(p, "arguments")
	if text(p, "type") == "custom_tool_call" {
		raw = at(p, "input")
	}
	arguments, ok := raw.(*value.Object)
	if s, isText := raw.(value.Str); isText {
		arguments, ok = decode(string(s)).(*value.Object)
	}
	if !ok {
		arguments = value.NewObject(1)
		arguments.Set("input", orNull(raw))
	}
	content, metadata := codexOutput(at(output, "output"))
	extra := &value.Object{}
	for _, m := range []struct {
		key string
		v   value.Value
	}{{"tool_metadata", metadata}, {"raw_arguments", raw}, {"status", at(p, "status")}} {
		if !value.IsNull(m.v) {
			extra.Set(m.key, m.v)
		}
	}
	id := text(p, "call_id")
	s := c.agentStep(call.record)
	s.ToolCalls = []atif.ToolCall{{ID: id, FunctionName: text(p, "name"), Arguments: arguments}}
	s.Observation = &atif.Observation{Results: []atif.Result{{SourceCallID: &id, Content: content}}}
	if extra.Len() > 0 {
		s.Extra = extra
	}
	c.add(s, call.answer)
}

func codexOutput(v value.Value) (*atif.Content, value.Value) {
	if s, ok := v.(value.Str); ok {
		o, isObject := decode(string(s)).(*value.Object)
		if !isObject || !o.Has("output") {
			return new(atif.Text(string(s))), nil
		}
		v = o
	}
	if o, ok := v.(*value.Object); ok && o.Has("output") {
		content, _ := codexOutput(at(o, "output"))
		return content, at(o, "metadata")
	}
	if value.IsNull(v) {
		return nil, nil
	}
	return new(atif.Text(dumps(v))), nil
}

func orNull(v value.Value) value.Value {
	if v == nil {
		return value.Null{}
	}
	return v
}

// webSearch adds a search of the provider's, which has no output.
func (c *codexLog) webSearch(r, p *value.Object) {
	arguments := &value.Object{}
	if action := object(p, "action"); action != nil {
		for key, v := range action.All() {
			if key == "type" {
				key = "action_type"
			}
			arguments.Set(key, v)
		}
	}
	s := c.agentStep(r)
	s.ToolCalls = []atif.ToolCall{{ID: text(p, "call_id"), FunctionName: "web_search_call", Arguments: arguments}}
	if status := text(p, "status"); status != "" {
		s.Extra = value.NewObject(1)
		s.Extra.Set("status", value.Str(status))
	}
	c.add(s, c.answer)
}

// finish makes the trajectory and the totals, which the log states.
func (c *codexLog) finish() {
	if len(c.steps) == 0 {
		return
	}
	final := &atif.FinalMetrics{Steps: stepCount(c.steps)}
	if total := object(c.usage, "total_token_usage"); total != nil {
		c.totals(final, total)
	}
	c.agent.Name = "codex"
	c.agent.Version = either(c.agent.Version, c.in.version())
	if c.model == "" {
		c.model = c.in.Model
	}
	c.agent.ModelName = optional(c.model)
	c.out.Trajectory = &atif.Trajectory{SessionID: optional(c.session), Agent: c.agent, Steps: number(c.steps), FinalMetrics: final}
}

func (c *codexLog) totals(final *atif.FinalMetrics, total *value.Object) {
	input, cached, output := count(total, "input_tokens"), count(total, "cached_input_tokens"), count(total, "output_tokens")
	cost := amount(c.usage, "total_cost")
	if cost == nil {
		cost = amount(c.usage, "cost_usd")
	}
	if cost == nil {
		cost = c.in.cost(input, cached, output)
	}
	c.out.InputTokens, c.out.CachedTokens, c.out.OutputTokens, c.out.CostUSD = &input, &cached, &output, cost
	final.PromptTokens, final.CachedTokens, final.CompletionTokens, final.CostUSD = &input, &cached, &output, cost
	extra := &value.Object{}
	for _, m := range []struct {
		key string
		v   value.Value
	}{
		{"reasoning_output_tokens", at(total, "reasoning_output_tokens")},
		{"total_tokens", at(total, "total_tokens")},
		{"last_token_usage", at(c.usage, "last_token_usage")},
	} {
		if !value.IsNull(m.v) {
			extra.Set(m.key, m.v)
		}
	}
	if extra.Len() > 0 {
		final.Extra = extra
	}
}
