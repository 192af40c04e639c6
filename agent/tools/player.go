package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// invalidCallsError is the exception of a model that only makes calls which cannot be
// done.
const invalidCallsError = "InvalidToolCallsError"

// Limits of what a model may do wrong.
const (
	// maxRefused is how many answers in a row may have no call that can be done.
	maxRefused = 8
	// maxShrinks is how often one call is made again because it was too long.
	maxShrinks = 2
)

// Ends of an episode, in the agent's metadata.
const (
	endStop      = "stop"       // the stop action
	endNoCalls   = "no_calls"   // answers without a call
	endMaxTokens = "max_tokens" // the budget is used up
	endMaxSteps  = "max_steps"  // the turns are; the driver of a stepped task notes that itself
)

// player is one conversation with a model about one task. It is for one episode, and
// used by one goroutine.
type player struct {
	options
	model  llm.Model
	now    func() time.Time
	marked bool // what the provider is to keep is marked

	talk    conversation
	ids     names
	replies []reply // to the calls of the last answer, in their order
	refused int     // answers in a row of which no call could be done
	silent  int     // answers in a row without a call
	end     string
	record  *record
	totals  totals
}

var (
	_ cube.Agent     = (*player)(nil)
	_ agent.Reporter = (*player)(nil)
)

func newPlayer(o options, model llm.Model, at place, now func() time.Time) *player {
	p := &player{
		options: o, model: model, now: now,
		marked: llm.NeedsCacheMarks(model.Info().Name),
		record: newRecord(at, model.Info().Name, now),
	}
	p.talk.sends = o.sampling.SendReasoning
	return p
}

// Info tells of the agent.
func (p *player) Info() agent.Info { return agent.Info{Name: agentName, Version: agentVersion} }

// Act shows the model what there is to see, and asks until it calls what can be done.
// No action is the end: the model twice answered without a call, or the tokens are used
// up. An error of the model is the episode's.
func (p *player) Act(ctx context.Context, obs *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
	p.see(obs, actions)
	for p.end = ""; p.end == ""; {
		if p.budget > 0 && p.totals.used >= p.budget {
			p.end = endMaxTokens
			break
		}
		answer, err := p.ask(ctx, actions)
		if err != nil {
			return nil, err
		}
		todo, err := p.take(answer, actions)
		if err != nil {
			return nil, err
		}
		if len(todo) > 0 {
			p.record.keep()
			return todo, nil
		}
	}
	return nil, nil
}

// see adds what the last step brought, or begins the conversation.
func (p *player) see(obs *cube.Observation, actions []cube.ActionSchema) {
	if len(p.talk.messages) == 0 {
		first := opening(obs)
		p.talk.open(p.system, first)
		p.record.open(p.system, first.Parts, actions)
		return
	}
	p.answer(distribute(obs, p.replies))
}

// answer adds the results of the last answer's calls, and what came besides.
func (p *player) answer(rest []llm.Part) {
	p.record.observe(p.replies, rest)
	for _, r := range p.replies {
		p.talk.add(r.message())
	}
	p.replies = nil
	if len(rest) > 0 {
		p.talk.add(llm.Message{Role: llm.User, Parts: rest})
	}
	p.talk.limitImages(p.keepImages)
}

// ask makes one call. Where it is too long for the model, it is made again with less.
func (p *player) ask(ctx context.Context, actions []cube.ActionSchema) (*llm.Response, error) {
	req := p.sampling
	req.Tools = toolSpecs(actions)
	tools := sizeOfTools(actions)
	p.talk.fit(p.inputLimit(), tools)
	for shrinks := 0; ; shrinks++ {
		req.Messages = p.talk.request(p.marked)
		began := p.now()
		answer, err := p.model.Complete(ctx, &req)
		if err == nil && answer == nil {
			err = errors.New("the model gave no answer")
		}
		p.totals.took(p.now().Sub(began))
		if err == nil {
			answer = answer.Believable()
			p.totals.add(answer, p.talk.estimate(tools))
			p.talk.counted(answer.Usage, tools)
			return answer, nil
		}
		if llm.KindOf(err) != llm.ContextLength || shrinks == maxShrinks || !p.talk.shrink(p.talk.estimate(tools)/2, tools) {
			return nil, fmt.Errorf("asking the model: %w", err)
		}
	}
}

// inputLimit is how many tokens a call may have so that there is room for an answer; 0
// where the model's limit is not known.
func (p *player) inputLimit() int64 {
	info := p.model.Info()
	limit := info.InputLimit
	room := p.sampling.MaxOutput
	if room == 0 {
		room = info.OutputLimit
	}
	if room == 0 {
		room = limit / 8
	}
	return limit - min(room, limit/4)
}

// sizeOfTools estimates the tokens of what the model is told of its tools.
func sizeOfTools(actions []cube.ActionSchema) int64 {
	n := 0
	for _, a := range actions {
		n += len(a.Name) + len(a.Description)
		if a.Parameters != nil {
			n += len(value.AppendDumps(nil, a.Parameters, value.DumpsOptions{}))
		}
	}
	return int64(n / llm.BytesPerToken)
}

// take adds an answer to the conversation and returns what is to be done. Nothing is
// to be done where the model has to be asked again, or the end is reached.
func (p *player) take(answer *llm.Response, actions []cube.ActionSchema) ([]cube.Action, error) {
	m := answer.Message
	m.Role = llm.Assistant
	m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), blank)
	calls := p.readCalls(&m, answer.Finish == llm.Length, actions)
	if len(calls) > 0 || len(m.Parts) > 0 { // providers refuse a message without anything
		p.talk.add(m)
	}
	p.record.add(answer, &m, calls)
	if len(calls) == 0 {
		return nil, p.remind(answer, actions)
	}
	p.silent = 0
	var todo []cube.Action
	p.replies = make([]reply, len(calls))
	for i, c := range calls {
		p.replies[i].id = *c.action.ID
		if c.refused != "" {
			p.replies[i].text, p.replies[i].failed = []string{c.refused}, true
			continue
		}
		todo = append(todo, c.action)
	}
	if len(todo) > 0 {
		p.refused = 0
		if todo[len(todo)-1].Name == cube.StopName {
			p.end = endStop
		}
		return todo, nil
	}
	if p.refused++; p.refused >= maxRefused {
		why := p.replies[0].text[0]
		p.answer(nil)
		return nil, exception.Errorf(invalidCallsError, "the model made no call that could be done in %d answers in a row; the last one: %s", p.refused, why)
	}
	p.answer(nil)
	return nil, nil
}

// remind answers an answer without a call. The second one in a row is the end.
func (p *player) remind(answer *llm.Response, actions []cube.ActionSchema) error {
	if answer.Finish == llm.Filtered {
		return fmt.Errorf("asking the model: %w", &llm.Error{
			Kind: llm.Refused, Model: p.model.Info().Name, Message: "the answer was withheld by the provider's content filter",
		})
	}
	if p.silent++; p.silent > 1 {
		p.end = endNoCalls
		return nil
	}
	text := "Your answer has no tool call, so nothing was done. Go on with a tool call. "
	if answer.Finish == llm.Length {
		text = "Your answer was cut off at the limit of its length before there was a tool call, so nothing was done. Be brief, and go on with a tool call. "
	}
	if slices.ContainsFunc(actions, func(a cube.ActionSchema) bool { return a.Name == cube.StopName }) {
		text += "If there is nothing more to do, call " + cube.StopName + "."
	} else {
		text += "If there is nothing more to do, answer once more without one."
	}
	p.talk.add(llm.TextMessage(llm.User, text))
	p.record.remind(text)
	return nil
}

// Report writes the trajectory, and tells what the calls used. What is not known of one
// call is not known of all.
func (p *player) Report() agent.Result {
	r := p.totals.result()
	p.record.finish(p.totals)
	if p.end != "" {
		r.Metadata.Set("end", value.Str(p.end))
	}
	if p.talk.dropped > 0 || p.talk.shortened > 0 {
		r.Metadata.Set("context", cube.Pairs("turns_left_out", p.talk.dropped, "texts_shortened", p.talk.shortened))
	}
	if p.record.err != nil {
		r.Metadata.Set("trajectory_error", value.Str(p.record.err.Error()))
	}
	return r
}
