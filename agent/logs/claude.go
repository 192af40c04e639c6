package logs

import (
	"encoding/base64"
	"path"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/value"
)

// ClaudeCode reads the session of Claude Code, sessions/projects/PROJECT/*.jsonl,
// and the cost from what it printed, claude-code.txt.
func ClaudeCode(d *Dir, in Input) (*Converted, error) {
	out := &Converted{Style: atif.Unicode}
	var cost *float64
	ended := false
	for r := range d.Records("claude-code.txt") {
		if ended || text(r, "type") != "result" {
			continue
		}
		ended = true
		cost = amount(r, "total_cost_usd")
		if at(r, "is_error") == value.Bool(true) {
			out.Failure = withStatus(either(text(r, "result"), text(r, "subtype")), at(r, "api_error_status"))
		}
	}
	files := claudeSession(d)
	if files == nil {
		return out, nil
	}
	l := claudeLog{in: in, messages: map[string]int{}, calls: map[string]int{}, results: map[string]bool{}, answers: map[int]*claudeAnswer{}}
	for _, e := range claudeEvents(d, files) {
		l.event(e)
	}
	l.finish(out, cost)
	return out, nil
}

// claudeSession lists the files of the one directory that holds sessions; none
// when there are several.
func claudeSession(d *Dir) []string {
	byDir := map[string][]string{}
	d.Walk("sessions/projects", func(name string, isDir bool) {
		if !isDir && path.Ext(name) == ".jsonl" && !slices.Contains(strings.Split(name, "/"), "subagents") {
			byDir[path.Dir(name)] = append(byDir[path.Dir(name)], name)
		}
	})
	if len(byDir) != 1 {
		return nil
	}
	for _, files := range byDir {
		return files
	}
	return nil
}

// claudeEvents are the events of all files by their times; one without a time
// stays behind the one before it.
func claudeEvents(d *Dir, files []string) []*value.Object {
	type timed struct {
		at    string
		event *value.Object
	}
	var all []timed
	for _, name := range files {
		at := ""
		for e := range d.Records(name) {
			if t := timestamp(e, "timestamp"); t != nil {
				at = *t
			}
			all = append(all, timed{at, e})
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return strings.Compare(a.at, b.at) })
	events := make([]*value.Object, len(all))
	for i, t := range all {
		events[i] = t.event
	}
	return events
}

// claudeLog is a session as far as it has been read.
type claudeLog struct {
	in             Input
	session        string
	version, model string
	cwds, branches []string
	steps          []atif.Step
	messages       map[string]int        // steps by the id of their message
	calls          map[string]int        // steps by the id of a call
	results        map[string]bool       // calls that have a result
	answers        map[int]*claudeAnswer // by their step
}

// claudeAnswer is what the events of one message add up to.
type claudeAnswer struct {
	said, thought []string
	usage         *value.Object // the last
}

func (l *claudeLog) event(e *value.Object) {
	kind := text(e, "type")
	if kind != "user" && kind != "assistant" {
		return
	}
	for _, k := range []struct {
		to  *string
		key string
	}{{&l.session, "sessionId"}, {&l.version, "version"}} {
		if *k.to == "" {
			*k.to = text(e, k.key)
		}
	}
	l.cwds = addNew(l.cwds, text(e, "cwd"))
	l.branches = addNew(l.branches, text(e, "gitBranch"))
	if kind == "user" {
		l.user(e)
	} else {
		l.assistant(e)
	}
}

// maxNames is how many directories or branches of a session are kept.
const maxNames = 100

func addNew(all []string, s string) []string {
	if s == "" || len(all) >= maxNames || slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// user adds what the user said, byte for byte, and attaches results of tools.
func (l *claudeLog) user(e *value.Object) {
	content := at(e, "message", "content")
	s := atif.Step{Timestamp: timestamp(e, "timestamp"), Source: atif.User}
	said := ""
	switch content := content.(type) {
	case value.Str:
		said = string(content)
		if side := at(e, "isSidechain"); !value.IsNull(side) {
			s.Extra = value.NewObject(1)
			s.Extra.Set("is_sidechain", side)
		}
	case value.List:
		var texts []string
		for _, block := range content {
			switch text(block, "type") {
			case "tool_result":
				l.result(block, object(e, "toolUseResult"))
			case "text":
				texts = append(texts, text(block, "text"))
			}
		}
		said = strings.Join(texts, "\n\n")
	}
	if value.Strip(said) != "" {
		s.Message = atif.Text(said)
		l.steps = append(l.steps, s)
	}
}

// result attaches the result of a tool to the step that called it; the first
// counts.
func (l *claudeLog) result(block value.Value, used *value.Object) {
	id := text(block, "tool_use_id")
	i, known := l.calls[id]
	if !known || l.results[id] {
		return
	}
	l.results[id] = true
	parts := claudeBlocks(at(block, "content"))
	if chunk := claudeOutput(used); chunk != "" {
		parts = append(parts, chunk)
	}
	metadata := &value.Object{}
	if used.Len() > 0 {
		metadata.Set("tool_use_result", used)
	}
	failed := at(block, "is_error") == value.Bool(true)
	if failed {
		parts = append(parts, "[error] tool reported failure")
		metadata.Set("is_error", value.Bool(true))
	}
	r := atif.Result{SourceCallID: &id}
	if text := value.Strip(strings.Join(parts, "\n\n")); text != "" {
		r.Content = new(atif.Text(text))
	}
	if metadata.Len() > 0 {
		metadata.Set("raw_tool_result", block)
		r.Extra = value.NewObject(2)
		r.Extra.Set("tool_result_metadata", metadata)
		if failed {
			r.Extra.Set("tool_result_is_error", value.Bool(true))
		}
	}
	s := &l.steps[i]
	if s.Observation == nil {
		s.Observation = &atif.Observation{}
	}
	s.Observation.Results = append(s.Observation.Results, r)
}

// claudeBlocks is the content of a result; blocks that are no text stand as JSON.
func claudeBlocks(v value.Value) []string {
	items, isList := v.(value.List)
	if !isList && !value.IsNull(v) {
		items = value.List{v}
	}
	var parts []string
	for _, item := range items {
		s, ok := item.(value.Str)
		if !ok {
			s = value.Str(dumps(item))
		}
		if t := value.Strip(string(s)); t != "" {
			parts = append(parts, t)
		}
	}
	return parts
}

// claudeOutput is what is kept of a command beside its result.
func claudeOutput(used *value.Object) string {
	var chunks []string
	rest := &value.Object{}
	for key, v := range used.All() {
		if !slices.Contains([]string{"stdout", "stderr", "exitCode", "exit_code", "interrupted", "isImage"}, key) {
			rest.Set(key, v)
		}
	}
	for _, stream := range []string{"stdout", "stderr"} {
		if v := at(used, stream); value.Truth(v) {
			chunks = append(chunks, strings.TrimRightFunc("["+stream+"]\n"+value.Text(v), value.IsSpace))
		}
	}
	code := at(used, "exitCode")
	if !value.Truth(code) {
		code = at(used, "exit_code")
	}
	for _, flag := range []struct {
		name string
		v    value.Value
	}{{"exit_code", code}, {"interrupted", at(used, "interrupted")}, {"is_image", at(used, "isImage")}} {
		if value.Truth(flag.v) {
			chunks = append(chunks, "["+flag.name+"] "+value.Text(flag.v))
		}
	}
	if rest.Len() > 0 {
		chunks = append(chunks, "[metadata] "+dumps(rest))
	}
	return strings.Join(chunks, "\n")
}

// assistant adds to the step of the message, which comes in several events.
func (l *claudeLog) assistant(e *value.Object) {
	m := object(e, "message")
	id := text(m, "id")
	i, begun := l.messages[id]
	if !begun || id == "" {
		i = len(l.steps)
		l.messages[id] = i
		l.steps = append(l.steps, l.newStep(e))
		l.answers[i] = &claudeAnswer{}
	}
	answer := l.answers[i]
	if usage := object(m, "usage"); usage != nil {
		answer.usage = usage
	}
	if plain, ok := at(m, "content").(value.Str); ok {
		answer.said = append(answer.said, string(plain))
	}
	for _, b := range list(m, "content") {
		switch text(b, "type") {
		case "text":
			answer.said = append(answer.said, text(b, "text"))
		case "thinking":
			answer.thought = append(answer.thought, text(b, "thinking"))
		case "redacted_thinking":
			answer.thought = append(answer.thought, claudeRedacted(text(b, "data")))
		case "tool_use":
			l.call(&l.steps[i], i, b)
		}
	}
}

func (l *claudeLog) newStep(e *value.Object) atif.Step {
	model := text(e, "message", "model")
	if l.model == "" && model != claudeSynthetic {
		l.model = model
	}
	if model == "" {
		model = l.in.Model
	}
	s := atif.Step{Timestamp: timestamp(e, "timestamp"), Source: atif.Agent, ModelName: optional(model)}
	extra := &value.Object{}
	if cwd := text(e, "cwd"); cwd != "" {
		extra.Set("cwd", value.Str(cwd))
	}
	if side := at(e, "isSidechain"); !value.IsNull(side) {
		extra.Set("is_sidechain", side)
	}
	if extra.Len() > 0 {
		s.Extra = extra
	}
	return s
}

// claudeSynthetic is the model of messages that no model wrote: errors.
const claudeSynthetic = "<synthetic>"

func (l *claudeLog) call(s *atif.Step, step int, b value.Value) {
	id, name := text(b, "id"), text(b, "name")
	raw := orNull(at(b, "input"))
	arguments, ok := raw.(*value.Object)
	if !ok {
		arguments = value.NewObject(1)
		arguments.Set("input", raw)
	}
	extra := value.NewObject(2)
	extra.Set("raw_arguments", raw)
	extra.Set("tool_use_name", value.Str(name))
	l.calls[id] = step
	s.ToolCalls = append(s.ToolCalls, atif.ToolCall{ID: id, FunctionName: name, Arguments: arguments, Extra: extra})
}

// claudeRedacted is the reasoning that one gateway hides in a block for encrypted
// ones; what is encrypted in earnest is left out.
func claudeRedacted(data string) string {
	encoded, ok := strings.CutPrefix(data, "openrouter.reasoning:")
	if !ok {
		return ""
	}
	plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	if err != nil {
		return ""
	}
	return text(decode(string(plain)), "text")
}

// paragraphs are the texts that are not blank, with a line between them.
func paragraphs(texts []string) string {
	var kept []string
	for _, t := range texts {
		if t = value.Strip(t); t != "" {
			kept = append(kept, t)
		}
	}
	return strings.Join(kept, "\n\n")
}

// finish makes the trajectory: each message's last usage counts once.
func (l *claudeLog) finish(out *Converted, cost *float64) {
	if len(l.steps) == 0 {
		return
	}
	final := &atif.FinalMetrics{Steps: stepCount(l.steps), CostUSD: cost}
	var input, cached, output, created value.Int
	var tiers []string
	metered := false
	for i, answer := range l.answers {
		s := &l.steps[i]
		s.Message, s.ReasoningContent = atif.Text(paragraphs(answer.said)), optional(paragraphs(answer.thought))
		if answer.usage == nil {
			continue
		}
		metered = true
		m := claudeMetrics(answer.usage)
		s.Metrics = m
		input, cached, output = input.Add(*m.PromptTokens), cached.Add(*m.CachedTokens), output.Add(*m.CompletionTokens)
		created = created.Add(count(answer.usage, "cache_creation_input_tokens"))
		tiers = addNew(tiers, text(answer.usage, "service_tier"))
	}
	out.InputTokens, out.CachedTokens, out.OutputTokens, out.CostUSD = &input, &cached, &output, cost
	if metered {
		final.PromptTokens, final.CachedTokens, final.CompletionTokens = &input, &cached, &output
	}
	final.Extra = claudeTotals(tiers, created, cached)
	l.version = either(l.version, l.in.version())
	if l.model == "" {
		l.model = l.in.Model
	}
	agent := atif.AgentInfo{Name: "claude-code", Version: l.version, ModelName: optional(l.model)}
	extra := &value.Object{}
	setTexts(extra, "cwds", l.cwds)
	setTexts(extra, "git_branches", l.branches)
	if extra.Len() > 0 {
		agent.Extra = extra
	}
	out.Trajectory = &atif.Trajectory{SessionID: optional(l.session), Agent: agent, Steps: number(l.steps), FinalMetrics: final}
}

// claudeMetrics are the tokens of a message; its input is given without what is in
// the cache or goes there.
func claudeMetrics(usage *value.Object) *atif.Metrics {
	cached, output := count(usage, "cache_read_input_tokens"), count(usage, "output_tokens")
	input := count(usage, "input_tokens").Add(cached).Add(count(usage, "cache_creation_input_tokens"))
	m := &atif.Metrics{PromptTokens: &input, CachedTokens: &cached, CompletionTokens: &output}
	extra := &value.Object{}
	for key, v := range usage.All() {
		if key != "input_tokens" && key != "output_tokens" {
			extra.Set(key, v)
		}
	}
	if extra.Len() > 0 {
		m.Extra = extra
	}
	return m
}

func claudeTotals(tiers []string, created, cached value.Int) *value.Object {
	extra := &value.Object{}
	slices.Sort(tiers)
	setTexts(extra, "service_tiers", tiers)
	if created.Sign() != 0 {
		extra.Set("total_cache_creation_input_tokens", created)
	}
	if cached.Sign() != 0 {
		extra.Set("total_cache_read_input_tokens", cached)
	}
	if extra.Len() == 0 {
		return nil
	}
	return extra
}

func setTexts(o *value.Object, key string, texts []string) {
	if len(texts) == 0 {
		return
	}
	l := make(value.List, len(texts))
	for i, t := range texts {
		l[i] = value.Str(t)
	}
	o.Set(key, l)
}
