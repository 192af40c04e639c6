package tools

import (
	"fmt"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// trajectoryFile is the name of the trajectory in the agent's log directory. Its images
// are beside it.
const trajectoryFile = "trajectory.json"

// rewriteAfter is how old the trajectory on disk may become before it is written again.
const rewriteAfter = 30 * time.Second

// record is the trajectory of a player (section 6): everything that was said, also what
// the model is no longer shown.
//
// The file is written whole when what is to be written has doubled since, or the file is
// half a minute old, and at the end. Writing it then costs no more than a constant for
// each byte or second, and a trial that is killed loses little; the steps that it took
// are in the driver's log in any case.
type record struct {
	place
	now   func() time.Time
	model string
	tools []*value.Object
	steps []atif.Step
	final *atif.FinalMetrics

	size    int64 // of the steps, about
	left    int   // steps that are not in it, because of the limit
	written int64 // size when it was written
	at      time.Time

	images, imageBytes int64
	err                error // the first error of writing
}

func newRecord(at place, model string, now func() time.Time) *record {
	return &record{place: at, model: model, now: now, at: now()}
}

func (r *record) open(system string, first []llm.Part, actions []cube.ActionSchema) {
	for _, a := range actions {
		r.tools = append(r.tools, a.ToolDescriptor())
	}
	if system != "" {
		r.append(atif.Step{Source: atif.System, Message: atif.Text(bounded.Clean(system))})
	}
	r.append(atif.Step{Source: atif.User, Message: r.content(first)})
}

// append adds a step. Behind the limit all are left out; the first two never are.
func (r *record) append(s atif.Step) {
	n := sizeOfStep(&s)
	if len(r.steps) >= 2 && (r.left > 0 || r.full(n)) {
		r.left++
		return
	}
	s.ID = len(r.steps) + 1
	s.Timestamp = new(r.now().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
	r.size += n
	r.steps = append(r.steps, s)
}

// full reports whether so many bytes more are too many.
func (r *record) full(n int64) bool { return r.limit > 0 && r.size+n > r.limit }

// add adds an answer of the model. m is its message as it goes into the conversation.
func (r *record) add(answer *llm.Response, m *llm.Message, calls []call) {
	model := answer.Model
	if model == "" {
		model = r.model
	}
	s := atif.Step{Source: atif.Agent, Message: atif.Text(bounded.Clean(m.Text())), LLMCallCount: new(value.NewInt(1)), Metrics: metricsOf(answer)}
	if model != "" {
		s.ModelName = new(bounded.Clean(model))
	}
	if m.Reasoning != "" {
		s.ReasoningContent = new(bounded.Clean(m.Reasoning))
	}
	for _, c := range calls {
		made := atif.ToolCall{ID: bounded.Clean(*c.action.ID), FunctionName: c.action.Name, Arguments: c.action.Arguments}
		if c.written != "" {
			made.Extra = cube.Pairs("arguments_text", c.written)
		}
		s.ToolCalls = append(s.ToolCalls, made)
	}
	r.append(s)
}

func metricsOf(answer *llm.Response) *atif.Metrics {
	u := answer.Usage
	if u == nil && answer.Cost == nil {
		return nil
	}
	m := &atif.Metrics{CostUSD: answer.Cost}
	if u != nil {
		m.PromptTokens, m.CompletionTokens, m.CachedTokens = new(value.NewInt(u.Prompt)), new(value.NewInt(u.Completion)), new(value.NewInt(u.Cached))
	}
	return m
}

func (r *record) remind(text string) {
	r.append(atif.Step{Source: atif.User, Message: atif.Text(text)})
}

// observe adds what the last answer brought.
func (r *record) observe(replies []reply, rest []llm.Part) {
	if r.left > 0 || len(r.steps) == 0 || len(replies) == 0 && len(rest) == 0 {
		return
	}
	last := &r.steps[len(r.steps)-1]
	if last.Source != atif.Agent {
		return
	}
	o := &atif.Observation{}
	for _, reply := range replies {
		content := atif.Text(reply.message().Parts[0].Text)
		o.Results = append(o.Results, atif.Result{SourceCallID: new(bounded.Clean(reply.id)), Content: &content})
	}
	if len(rest) > 0 {
		content := r.content(rest)
		o.Results = append(o.Results, atif.Result{Content: &content})
	}
	n := sizeOfResults(o.Results)
	if r.full(n) {
		r.left++
		return
	}
	r.size += n
	last.Observation = o
}

// content is a message's parts, whose images it writes.
func (r *record) content(parts []llm.Part) atif.Content {
	if len(parts) == 1 && parts[0].Image == nil {
		return atif.Text(bounded.Clean(parts[0].Text))
	}
	c := atif.Content{Parts: make([]atif.Part, len(parts))}
	for i, p := range parts {
		c.Parts[i] = atif.Part{Type: atif.TextPart, Text: new(bounded.Clean(p.Text))}
		if p.Image == nil {
			continue
		}
		if name := r.image(p.Image); name != "" {
			c.Parts[i] = atif.Part{Type: atif.ImagePart, Source: &atif.ImageSource{MediaType: p.Image.MediaType, Path: name}}
			continue
		}
		c.Parts[i].Text = new("[an image that is not kept]")
	}
	return c
}

// image writes an image and returns its name, "" where it is not kept.
func (r *record) image(i *llm.Image) string {
	n := int64(len(i.Data))
	if r.dir == "" || r.limit > 0 && r.imageBytes+n > r.limit {
		return ""
	}
	name := fmt.Sprintf("image-%04d.png", r.images+1)
	if err := atomicfile.WriteIn(r.dir, name, i.Data, 0o644); err != nil {
		r.failed(err)
		return ""
	}
	r.images++
	r.imageBytes += n
	return name
}

func (r *record) failed(err error) {
	if r.err == nil {
		r.err = fmt.Errorf("keeping the trajectory: %w", err)
	}
}

// keep writes the file where it is time to.
func (r *record) keep() {
	if r.size >= 2*r.written || r.now().Sub(r.at) >= rewriteAfter {
		r.write()
	}
}

// finish writes the file for the last time, with the totals.
func (r *record) finish(t totals) {
	m := &atif.FinalMetrics{Steps: new(value.NewInt(int64(len(r.steps))))}
	if t.counted() {
		m.PromptTokens, m.CompletionTokens, m.CachedTokens = new(value.NewInt(t.prompt)), new(value.NewInt(t.completion)), new(value.NewInt(t.cached))
	}
	if t.priced() {
		m.CostUSD = new(t.cost)
	}
	r.final = m
	r.write()
}

func (r *record) write() {
	if r.dir == "" || len(r.steps) == 0 {
		return
	}
	t := r.trajectory()
	if err := agent.WriteLog(r.dir, trajectoryFile, t.Append(nil, atif.Compact), r.redact); err != nil {
		r.failed(err)
	}
	r.written, r.at = r.size, r.now()
}

func (r *record) trajectory() *atif.Trajectory {
	t := &atif.Trajectory{
		Agent: atif.AgentInfo{Name: agentName, Version: agentVersion, ToolDefinitions: r.tools},
		Steps: r.steps, FinalMetrics: r.final,
	}
	if r.model != "" {
		t.Agent.ModelName = &r.model
	}
	if r.left > 0 {
		t.Notes = new(fmt.Sprintf("%d steps or results at the end are left out, because the file may have %d bytes.", r.left, r.limit))
	}
	return t
}

const bytesPerStep = 300 // of a step's own

// sizeOfStep is about how many bytes a step has in the file.
func sizeOfStep(s *atif.Step) int64 {
	n := bytesPerStep + sizeOfContent(s.Message)
	if s.ReasoningContent != nil {
		n += int64(len(*s.ReasoningContent))
	}
	for _, c := range s.ToolCalls {
		n += bytesPerStep + int64(len(value.AppendDumps(nil, c.Arguments, value.DumpsOptions{})))
	}
	return n
}

func sizeOfResults(results []atif.Result) int64 {
	var n int64
	for _, r := range results {
		n += bytesPerStep + sizeOfContent(*r.Content)
	}
	return n
}

func sizeOfContent(c atif.Content) int64 {
	n := int64(len(c.Text)) + int64(strings.Count(c.Text, "\n"))
	for _, p := range c.Parts {
		n += bytesPerStep
		if p.Text != nil {
			n += int64(len(*p.Text))
		}
	}
	return n
}
