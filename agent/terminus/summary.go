package terminus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// summariseEarly replaces the conversation by a summary before it becomes too long, and
// returns the prompt to go on with. It keeps what the model has not seen yet.
func (r *run) summariseEarly(ctx context.Context, prompt string) (string, error) {
	if !r.summarise || r.instruction == "" || len(r.chat.messages) == 0 || r.limit-r.chat.size() >= r.threshold {
		return prompt, nil
	}
	next, err := r.summary(ctx)
	switch {
	case err == nil:
		r.handoff = next + "\n\n" + prompt
		return r.handoff, nil
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case overBudget(err):
		return "", err
	}
	warn(r.env, "the conversation could not be summarised before it becomes too long: %v", err)
	return prompt, nil
}

// subagent is one of the three calls by which a conversation is summarised.
type subagent struct {
	name string // "summary", "questions", "answers"
	what string // for people
	// history is what is sent before the prompt; copied are its steps.
	history []llm.Message
	copied  []atif.Step
	prompt  string
}

// summary summarises the conversation (section 4.9): it replaces it, and returns the
// prompt to go on with.
func (r *run) summary(ctx context.Context) (string, error) {
	r.summaries++
	if len(r.chat.messages) == 0 {
		return r.instruction, nil
	}
	visible, err := r.visible(ctx)
	if err != nil {
		return "", err
	}
	var refs []atif.SubagentRef
	ask := func(s subagent) (said, error) {
		answer, err := r.askSubagent(ctx, s)
		if err == nil {
			refs = append(refs, r.ref(s, len(refs)+1))
		}
		return answer, err
	}
	history, copied := r.chat.messages, r.copiedSteps()
	first := subagent{name: "summary", what: "the work so far is summarised", history: history, copied: copied, prompt: summaryPrompt(r.instruction)}
	summary, err := ask(first)
	if err != nil {
		return "", err
	}
	second := subagent{name: "questions", what: "questions about the summary are asked", prompt: questionsPrompt(r.instruction, summary.text, visible)}
	questions, err := ask(second)
	if err != nil {
		return "", err
	}
	third := subagent{
		name: "answers", what: "the questions are answered", prompt: answersPrompt(questions.text),
		history: append(slices.Clone(history), llm.TextMessage(llm.User, first.prompt), assistant(summary.text)),
		copied: append(slices.Clone(copied),
			asCopied(atif.Step{Source: atif.User, Message: atif.Text(first.prompt)}),
			asCopied(atif.Step{Source: atif.Agent, Message: atif.Text(summary.text), ModelName: r.modelOf(summary), ReasoningContent: optional(summary.reasoning)})),
	}
	answers, err := ask(third)
	if err != nil {
		return "", err
	}
	r.chat.replace(history[0], llm.TextMessage(llm.User, second.prompt), assistant(questions.text))
	r.refs = refs
	return handoffPrompt(answers.text), nil
}

// askSubagent makes one of the calls and writes its trajectory.
func (r *run) askSubagent(ctx context.Context, s subagent) (said, error) {
	user := atif.Step{Timestamp: r.timestamp(), Source: atif.User, Message: atif.Text(s.prompt)}
	resp, err := r.call(ctx, s.history, s.prompt, "")
	if err != nil {
		return said{}, fmt.Errorf("asking for the %s: %w", s.name, err)
	}
	u := usageOf(resp)
	r.subagents = r.subagents.plus(u)
	var own rollout
	if own.add(resp); own.object() != nil {
		r.subRollouts = append(r.subRollouts, own.object())
	}
	answer := said{text: validText(resp.Message.Text()), model: resp.Model, reasoning: validText(resp.Message.Reasoning), response: resp}
	if strings.TrimSpace(answer.text) == "" {
		return said{}, errors.New("asking for the " + s.name + ": the model's answer has no text")
	}
	metrics := r.metrics(u, resp)
	metrics.CachedTokens = new(value.NewInt(u.cached))
	steps := append(slices.Clone(s.copied), user, atif.Step{
		Timestamp: r.timestamp(), Source: atif.Agent, ModelName: r.modelOf(answer),
		Message: atif.Text(answer.text), ReasoningContent: optional(answer.reasoning), Metrics: metrics,
	})
	extra := value.NewObject(2)
	extra.Set("parent_session_id", value.Str(r.sessionID))
	extra.Set("summarization_index", value.NewInt(int64(r.summaries)))
	r.write(r.subagentFile(s), &atif.Trajectory{
		SessionID:    new(r.subagentSession(s)),
		Agent:        atif.AgentInfo{Name: agentName + "-summarization-" + s.name, Version: agentVersion, ModelName: optional(r.modelName), Extra: extra},
		Steps:        numbered(steps),
		FinalMetrics: finalMetrics(u),
	})
	return answer, nil
}

func (r *run) subagentFile(s subagent) string {
	return fmt.Sprintf("trajectory.summarization-%d-%s.json", r.summaries, s.name)
}

func (r *run) subagentSession(s subagent) string {
	return fmt.Sprintf("%s-summarization-%d-%s", r.sessionID, r.summaries, s.name)
}

func (r *run) ref(s subagent, step int) atif.SubagentRef {
	extra := value.NewObject(1)
	extra.Set("summary", value.Str(fmt.Sprintf("Context summarization %d: Step %d - %s", r.summaries, step, s.what)))
	return atif.SubagentRef{SessionID: new(r.subagentSession(s)), TrajectoryPath: new(r.subagentFile(s)), Extra: extra}
}

// copiedSteps are the steps of the conversation for the trajectories of subagents, by
// the count of the reference: one of the agent less than there are. What a step used
// is told in the trajectory that it comes from.
func (r *run) copiedSteps() []atif.Step {
	n := min(1+(len(r.chat.messages)-1)/2, len(r.steps))
	var steps []atif.Step
	for _, s := range r.steps[:n] {
		if s.Metrics != nil {
			s.Metrics = nil
			s.Extra = s.Extra.Clone()
			s.Extra.Set("note", value.Str("The metrics of this step are in the trajectory that it is copied from."))
		}
		steps = append(steps, asCopied(s))
	}
	return steps
}

// asCopied marks a step as being in another trajectory.
func asCopied(s atif.Step) atif.Step {
	s.IsCopiedContext = new(true)
	return s
}
