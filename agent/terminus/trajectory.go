package terminus

import (
	"fmt"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// note adds a step to the trajectory.
func (r *run) note(s atif.Step) {
	s.ID = len(r.steps) + 1
	s.Timestamp = r.timestamp()
	r.steps = append(r.steps, s)
}

// noteAnswer adds the step of an episode. Observed is nil for what ended before anything
// could be seen.
func (r *run) noteAnswer(said said, a *answer, observed *string) {
	s := atif.Step{Source: atif.Agent, ModelName: r.modelOf(said), Message: atif.Text(said.text), ReasoningContent: optional(said.reasoning)}
	if a.failure == nil && !r.rawContent {
		s.Message = atif.Text(a.message())
		s.ToolCalls = r.toolCalls(a)
	}
	if observed != nil {
		s.Observation = &atif.Observation{Results: []atif.Result{{Content: new(atif.Text(*observed))}}}
	}
	s.Metrics = r.metrics(r.chat.used.minus(r.recorded), said.response)
	r.recorded = r.chat.used
	r.note(s)
}

// toolCalls are what an answer wants to be done.
func (r *run) toolCalls(a *answer) []atif.ToolCall {
	episode := r.episodes - 1
	var calls []atif.ToolCall
	for i, c := range a.commands {
		arguments := value.NewObject(2)
		arguments.Set("keystrokes", value.Str(c.keystrokes))
		if c.seconds > maxSeconds {
			arguments.Set("duration", value.NewInt(maxSeconds))
		} else {
			arguments.Set("duration", value.Float(c.seconds))
		}
		calls = append(calls, atif.ToolCall{ID: fmt.Sprintf("call_%d_%d", episode, i+1), FunctionName: "bash_command", Arguments: arguments})
	}
	if a.complete {
		calls = append(calls, atif.ToolCall{ID: fmt.Sprintf("call_%d_task_complete", episode), FunctionName: "mark_task_complete", Arguments: value.NewObject(0)})
	}
	return calls
}

// metrics are what a step used; resp may be nil.
func (r *run) metrics(u usage, resp *llm.Response) *atif.Metrics {
	m := &atif.Metrics{PromptTokens: new(value.NewInt(u.prompt)), CompletionTokens: new(value.NewInt(u.completion)), CostUSD: positive(u.cost)}
	if u.cached > 0 {
		m.CachedTokens = new(value.NewInt(u.cached))
	}
	if r.rollouts && resp != nil {
		m.PromptTokenIDs, m.CompletionTokenIDs, m.Logprobs = ints(resp.PromptTokenIDs), ints(resp.CompletionTokenIDs), resp.LogProbs
	}
	return m
}

func ints(list []int64) []value.Int {
	if list == nil {
		return nil
	}
	out := make([]value.Int, len(list))
	for i, n := range list {
		out[i] = value.NewInt(n)
	}
	return out
}

// noteHandoff adds what a summary brought, if there was one before the answer.
func (r *run) noteHandoff(answer said) {
	summarised := len(r.refs) > 0
	r.noteSummary()
	switch {
	case r.handoff == "":
	case r.linear && summarised:
		r.split(answer)
	default:
		r.note(atif.Step{Source: atif.User, Message: atif.Text(r.handoff)})
	}
	r.handoff = ""
}

// noteSummary adds the step that names the subagents.
func (r *run) noteSummary() {
	if len(r.refs) == 0 {
		return
	}
	boundary := value.NewObject(2)
	boundary.Set("type", value.Str("compaction"))
	boundary.Set("boundary", value.Str("replace"))
	extra := value.NewObject(1)
	extra.Set("context_management", boundary)
	r.note(atif.Step{
		Source: atif.System, Message: atif.Text("Performed context summarization and handoff to continue task."),
		Observation: &atif.Observation{Results: []atif.Result{{Subagents: r.refs}}}, Extra: extra,
	})
	r.refs = nil
}

// split ends the trajectory's file and begins the next one with the conversation as it
// is now, without the answer that is yet to come (section 4.10).
func (r *run) split(answer said) {
	next := fmt.Sprintf("trajectory.cont-%d.json", r.continuation+1)
	ended := r.trajectory()
	ended.ContinuedTrajectoryRef = &next
	r.write(r.file(), ended)
	r.continuation++
	r.sessionID = fmt.Sprintf("%s-cont-%d", r.base, r.continuation)
	r.steps, r.written = nil, 0
	messages := r.chat.messages
	if answer.response != nil {
		messages = messages[:len(messages)-1]
	}
	for i := range messages {
		s := atif.Step{Source: atif.User, Message: atif.Text(messages[i].Text())}
		if messages[i].Role == llm.Assistant {
			s.Source, s.ModelName = atif.Agent, optional(r.modelName)
		}
		r.steps = append(r.steps, asCopied(s))
	}
	r.steps = numbered(r.steps)
	if answer.response == nil { // it was not sent, or not answered
		r.note(atif.Step{Source: atif.User, Message: atif.Text(r.handoff)})
	}
}

// file is where the steps belong.
func (r *run) file() string {
	if r.continuation == 0 {
		return "trajectory.json"
	}
	return fmt.Sprintf("trajectory.cont-%d.json", r.continuation)
}

func (r *run) trajectory() *atif.Trajectory {
	extra := value.NewObject(4)
	extra.Set("parser", value.Str(r.parser.name()))
	if r.request.Temperature != nil {
		extra.Set("temperature", value.Float(*r.request.Temperature))
	}
	if r.constructor != nil {
		extra.Set("llm_kwargs", r.constructor)
	}
	if r.continuation > 0 {
		extra.Set("continuation_index", value.NewInt(int64(r.continuation)))
	}
	return &atif.Trajectory{
		SessionID:    &r.sessionID,
		Agent:        atif.AgentInfo{Name: agentName, Version: agentVersion, ModelName: optional(r.modelName), Extra: extra},
		Steps:        r.steps,
		FinalMetrics: finalMetrics(r.used()),
	}
}

func finalMetrics(u usage) *atif.FinalMetrics {
	return &atif.FinalMetrics{
		PromptTokens: new(value.NewInt(u.prompt)), CompletionTokens: new(value.NewInt(u.completion)),
		CachedTokens: new(value.NewInt(u.cached)), CostUSD: positive(u.cost),
	}
}

// rewriteAfter is how old the trajectory on disk may become before it is written again.
const rewriteAfter = 2 * time.Second

// keep writes the trajectory where it has grown by half since, or is older than
// rewriteAfter, as it is with all but the fastest models: the work of writing stays
// in proportion to what is written.
func (r *run) keep() {
	if now := r.around.now(); 2*len(r.steps) >= 3*r.written || now.Sub(r.dumped) >= rewriteAfter {
		r.dump()
		r.written, r.dumped = len(r.steps), now
	}
}

// dump writes the trajectory as it is now.
func (r *run) dump() {
	if len(r.steps) > 0 {
		r.write(r.file(), r.trajectory())
	}
}

// write writes a trajectory.
func (r *run) write(name string, t *atif.Trajectory) {
	err := agent.WriteLog(r.env.LogDir, name, t.Append(nil, atif.Compact), r.env.Redact)
	if err != nil && !r.complained {
		r.complained = true
		warn(r.env, "the agent's trajectory could not be written: %v", err)
	}
}

// numbered gives steps their numbers.
func numbered(steps []atif.Step) []atif.Step {
	for i := range steps {
		steps[i].ID = i + 1
	}
	return steps
}

func (r *run) modelOf(said said) *string {
	if said.model != "" {
		return new(validText(said.model))
	}
	return optional(r.modelName)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timestamp is the time as Python writes it, in UTC.
func (r *run) timestamp() *string {
	now := r.around.now().UTC()
	layout := "2006-01-02T15:04:05.000000+00:00"
	if now.Nanosecond()/int(time.Microsecond) == 0 {
		layout = "2006-01-02T15:04:05+00:00"
	}
	return new(now.Format(layout))
}
