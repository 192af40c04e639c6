package terminus

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

const (
	// queryAttempts is how often a call is made before its error ends the run. Each may
	// be several requests: models retry, too.
	queryAttempts = 3

	// maxCutOff bounds how many answers in a row may be cut off.
	maxCutOff = 5

	// cacheMarks is how many messages, from the last one on, a provider is asked to keep.
	cacheMarks = 3

	// unwindFree is how much room there has to be for summarising, in tokens.
	unwindFree = 4000

	// minLearned is the shortest conversation that tells how much a model can bear, in
	// tokens; what is refused below was not refused for its length.
	minLearned = 16_000

	// briefScreen is how much of the screen a short summary is made of, in characters.
	briefScreen = 1000

	outputLengthExceeded = "OutputLengthExceededError"

	// stopgap stands for the answer where none can be had. It leads to an episode in
	// which the model is asked again.
	stopgap = "Technical difficulties. Please continue with the task."

	// noText stands for an answer without text, which providers do not take.
	noText = "(no text)"
)

// query asks the model, and sees to it that an answer comes (section 4.8).
func (r *run) query(ctx context.Context, prompt string) (said, error) {
	failures, cutOff := 0, 0
	for {
		resp, err := r.ask(ctx, prompt)
		switch {
		case err == nil && resp.Finish == llm.Length:
			text := resp.Message.Text()
			if whole, ok := r.parser.salvage(text); ok {
				return r.accept(prompt, whole, resp), nil
			}
			if cutOff++; cutOff == maxCutOff {
				return said{}, exception.Errorf(outputLengthExceeded, "%d answers of the model in a row were cut off at its limit of output", cutOff)
			}
			r.chat.add(llm.TextMessage(llm.User, prompt))
			r.chat.add(assistant(validText(text)))
			prompt = cutOffPrompt(r.model.Info().OutputLimit, warningsOnly(r.parser.parse(text)))
			failures = 0
		case err == nil:
			return r.accept(prompt, resp.Message.Text(), resp), nil
		case ctx.Err() != nil:
			return said{}, context.Cause(ctx)
		case overBudget(err):
			return said{}, err
		case llm.KindOf(err) == llm.ContextLength:
			if !r.summarise {
				return said{}, err
			}
			return r.shorten(ctx, prompt)
		default:
			if failures++; failures == queryAttempts {
				return said{}, err
			}
		}
	}
}

// warningsOnly is what a parser doubts of an answer, without why it failed.
func warningsOnly(a *answer) string {
	a.failure = nil
	return a.feedback()
}

// overBudget tells of a call that no other attempt would make.
func overBudget(err error) bool {
	_, ok := errors.AsType[*llm.BudgetError](err)
	return ok
}

// ask sends the conversation with a prompt.
func (r *run) ask(ctx context.Context, prompt string) (*llm.Response, error) {
	return r.call(ctx, r.chat.messages, prompt, r.chat.previous)
}

// call sends messages and a prompt; previous is the response that they have led to,
// where that is known.
func (r *run) call(ctx context.Context, history []llm.Message, prompt, previous string) (*llm.Response, error) {
	request := r.request
	if r.chained && previous != "" {
		history, request.PreviousID = nil, previous
	}
	messages := append(slices.Clone(history), llm.TextMessage(llm.User, prompt))
	request.Messages = llm.MarkLast(r.modelName, messages, cacheMarks)
	began := r.around.now()
	resp, err := r.model.Complete(ctx, &request)
	if err != nil {
		return nil, err
	}
	if resp.Finish != llm.Length {
		r.requestTimes = append(r.requestTimes, value.Float(float64(r.around.now().Sub(began).Microseconds())/1000))
	}
	return resp, nil
}

// accept takes an answer into the conversation.
func (r *run) accept(prompt, text string, resp *llm.Response) said {
	text = validText(text)
	m := assistant(text)
	if r.interleaved && resp.Finish != llm.Length {
		m.Reasoning = resp.Message.Reasoning
		if len(resp.Message.Calls) == 0 {
			m.Native = resp.Message.Native
		}
	}
	r.chat.commit(prompt, m, resp)
	return said{text: text, model: resp.Model, reasoning: validText(resp.Message.Reasoning), response: resp}
}

func assistant(text string) llm.Message {
	if strings.TrimSpace(text) == "" {
		text = noText
	}
	return llm.TextMessage(llm.Assistant, text)
}

// shorten continues a conversation that became too long: with a summary, with a short
// one, or with nothing but the task and the screen.
func (r *run) shorten(ctx context.Context, prompt string) (said, error) {
	if size := r.chat.size() + estimate(prompt); size >= minLearned {
		r.limit = min(r.limit, size)
	}
	r.chat.unwind(r.limit, unwindFree)
	next, err := r.summary(ctx)
	switch {
	case err == nil:
		r.handoff = next
	case ctx.Err() != nil:
		return said{}, context.Cause(ctx)
	case overBudget(err):
		return said{}, err
	default:
		warn(r.env, "the conversation is too long and could not be summarised: %v", err)
		next = r.brief(ctx)
	}
	resp, err := r.ask(ctx, next)
	switch {
	case err == nil:
		return r.accept(next, resp.Message.Text(), resp), nil
	case ctx.Err() != nil:
		return said{}, context.Cause(ctx)
	case overBudget(err), len(r.chat.messages) == 0: // or else the task itself is too long
		return said{}, err
	}
	warn(r.env, "the conversation could not be continued after it became too long: %v", err)
	return said{text: stopgap}, nil
}

// brief returns a prompt that continues with the little that can be said without the
// conversation.
func (r *run) brief(ctx context.Context) string {
	visible, err := r.visible(ctx)
	if err != nil {
		warn(r.env, "the terminal could not be read: %v", err)
	}
	visible = lastCharacters(visible, briefScreen)
	resp, err := r.call(ctx, nil, briefPrompt(r.instruction, visible), "")
	if err != nil {
		return r.instruction + "\n\nCurrent state: " + visible
	}
	r.subagents = r.subagents.plus(usageOf(resp))
	return r.instruction + "\n\nSummary: " + validText(resp.Message.Text())
}
