package logs

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// OpenHands reads the events of the one session of OpenHands,
// sessions/SESSION/events/N.json.
func OpenHands(d *Dir, in Input) (*Converted, error) {
	session, files := openhandsEvents(d)
	l := openhandsLog{agent: atif.AgentInfo{Name: "openhands", Version: in.version()}, calls: map[string]int{}}
	l.out.Style = atif.ASCII
	for _, name := range files {
		if e := d.Document(name); e != nil {
			l.event(e)
		}
	}
	if len(l.steps) == 0 {
		return &l.out, nil
	}
	var final *atif.FinalMetrics
	if l.metered {
		l.out.InputTokens, l.out.CachedTokens, l.out.OutputTokens, l.out.CostUSD = &l.total.input, &l.total.cached, &l.total.output, &l.total.cost
		final = &atif.FinalMetrics{PromptTokens: &l.total.input, CachedTokens: &l.total.cached, CompletionTokens: &l.total.output, CostUSD: &l.total.cost}
	}
	l.out.Trajectory = &atif.Trajectory{SchemaVersion: "ATIF-v1.5", SessionID: optional(session), Agent: l.agent, Steps: number(l.steps), FinalMetrics: final}
	return &l.out, nil
}

// openhandsEvents lists the events of the one session there is, in their order.
func openhandsEvents(d *Dir) (session string, files []string) {
	numbers := map[string]int{}
	several := false
	d.Walk("sessions", func(name string, isDir bool) {
		parts := strings.Split(name, "/")
		if isDir || len(parts) != 4 || parts[2] != "events" || path.Ext(name) != ".json" {
			return
		}
		n, err := strconv.Atoi(strings.TrimSuffix(parts[3], ".json"))
		if err != nil {
			return
		}
		several = several || session != "" && session != parts[1]
		session = parts[1]
		numbers[name] = n
		files = append(files, name)
	})
	if several {
		return "", nil
	}
	slices.SortFunc(files, func(a, b string) int { return numbers[a] - numbers[b] })
	return session, files
}

// openhandsTotal is what was used so far.
type openhandsTotal struct {
	input, cached, output value.Int
	cost                  float64
}

type openhandsLog struct {
	out     Converted
	agent   atif.AgentInfo
	steps   []atif.Step
	calls   map[string]int // steps by the id of their call
	metered bool
	total   openhandsTotal
}

func (l *openhandsLog) event(e *value.Object) {
	if text(e, "observation") != "" {
		l.observe(e)
		l.metrics(e)
		return
	}
	if text(e, "action") == "" {
		return
	}
	s := atif.Step{Timestamp: timestamp(e, "timestamp"), Source: atif.Source(text(e, "source")), Message: atif.Text(text(e, "message"))}
	switch action := text(e, "action"); {
	case action == "system":
		s.Source = atif.System
		l.about(object(e, "args"))
	case action == "recall" || s.Source != atif.Agent && s.Source != atif.User:
		s.Source = atif.System
	case s.Source == atif.Agent:
		l.call(&s, object(e, "tool_call_metadata"))
	}
	m := l.metrics(e)
	if s.Source == atif.Agent {
		s.Metrics = m
	}
	l.steps = append(l.steps, s)
}

// about notes what the first event says of the agent.
func (l *openhandsLog) about(args *value.Object) {
	l.agent.Version = either(text(args, "openhands_version"), l.agent.Version)
	for _, tool := range list(args, "tools") {
		if o := object(tool); o != nil {
			l.agent.ToolDefinitions = append(l.agent.ToolDefinitions, o)
		}
	}
	if class := text(args, "agent_class"); class != "" {
		l.agent.Extra = value.NewObject(1)
		l.agent.Extra.Set("agent_class", value.Str(class))
	}
}

// call adds the tool call that an action is. Its arguments stand in the model's
// answer.
func (l *openhandsLog) call(s *atif.Step, meta *value.Object) {
	id := text(meta, "tool_call_id")
	if id == "" {
		return
	}
	arguments := &value.Object{}
	for _, choice := range list(meta, "model_response", "choices") {
		for _, c := range list(choice, "message", "tool_calls") {
			if given := text(c, "id"); given != "" && given != id {
				continue
			}
			if o := object(decode(text(c, "function", "arguments"))); o != nil {
				arguments = o
			}
		}
	}
	s.ToolCalls = []atif.ToolCall{{ID: id, FunctionName: text(meta, "function_name"), Arguments: arguments}}
	l.calls[id] = len(l.steps)
}

// observe attaches an observation to the step that called for it.
func (l *openhandsLog) observe(e *value.Object) {
	id := text(e, "tool_call_metadata", "tool_call_id")
	i, known := l.calls[id]
	if !known {
		return
	}
	s := &l.steps[i]
	if s.Observation == nil {
		s.Observation = &atif.Observation{}
	}
	s.Observation.Results = append(s.Observation.Results, atif.Result{SourceCallID: &id, Content: new(atif.Text(text(e, "content")))})
}

// metrics is what an event used since the one before; the log has running totals.
func (l *openhandsLog) metrics(e *value.Object) *atif.Metrics {
	used := object(e, "llm_metrics")
	if used == nil {
		return nil
	}
	l.metered = true
	tokens := object(used, "accumulated_token_usage")
	now := openhandsTotal{input: count(tokens, "prompt_tokens"), cached: count(tokens, "cache_read_tokens"), output: count(tokens, "completion_tokens")}
	if cost := amount(used, "accumulated_cost"); cost != nil {
		now.cost = *cost
	}
	before := l.total
	l.total = now
	input, cached, output := minus(now.input, before.input), minus(now.cached, before.cached), minus(now.output, before.output)
	if input.Sign() <= 0 && output.Sign() <= 0 {
		return nil
	}
	m := &atif.Metrics{PromptTokens: &input, CompletionTokens: &output, CachedTokens: positive(cached)}
	if cost := now.cost - before.cost; cost > 0 {
		m.CostUSD = &cost
	}
	return m
}

func minus(a, b value.Int) value.Int { return a.Add(value.NewBigInt(b.Big().Neg(b.Big()))) }
