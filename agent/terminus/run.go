package terminus

import (
	"context"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// run is the work on one instruction (section 4.6).
type run struct {
	*terminus
	env      agent.Env
	terminal *session
	// instruction is the bare one, without what is added for the model.
	instruction string
	chat        chat
	// limit is how long a conversation may be, in tokens.
	limit int64

	episodes int64
	// claimed: the model said that it is done, and has been asked whether it is sure.
	claimed bool
	// dead tells whether the terminal is gone; it is known only where looked is set.
	dead, looked bool

	// What the trajectory is yet to tell of a summary: its subagents, and the prompt
	// that the conversation goes on with.
	refs    []atif.SubagentRef
	handoff string

	summaries    int // how often one was begun
	subagents    usage
	subRollouts  value.List
	requestTimes value.List

	base, sessionID string
	continuation    int // of how many files before this one
	steps           []atif.Step
	recorded        usage // of the conversation, at the last step of the agent
	complained      bool  // of a trajectory that cannot be written
	// written is how many steps the trajectory had when it was written at the time dumped.
	written int
	dumped  time.Time
}

// said is an answer of the model.
type said struct {
	text, model, reasoning string
	// response is nil where the model has not said it.
	response *llm.Response
}

// work goes through the episodes. Nil means that the agent is done, has had all its
// turns, or has no terminal any more.
func (r *run) work(ctx context.Context) error {
	prompt, err := r.firstPrompt(ctx)
	if err != nil {
		return err
	}
	r.note(atif.Step{Source: atif.User, Message: atif.Text(prompt)})
	for r.episodes < r.maxTurns {
		if gone, err := r.gone(ctx); gone || err != nil {
			return err
		}
		r.episodes++
		if prompt, err = r.summariseEarly(ctx, prompt); err != nil {
			return err
		}
		answer, err := r.query(ctx, prompt)
		if err != nil {
			return err
		}
		r.noteHandoff(answer)
		done := false
		if prompt, done, err = r.act(ctx, answer); done || err != nil {
			return err
		}
	}
	return nil
}

func (r *run) firstPrompt(ctx context.Context) (string, error) {
	files, err := r.terminal.skillFiles(ctx)
	if err != nil {
		return "", err
	}
	screen, err := r.look(ctx)
	if err == nil && r.dead && r.interrupted { // with its step, not by what was typed
		r.screen = screenState{}
		if err = r.terminal.start(ctx); err == nil {
			screen, err = r.look(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	return firstPrompt(r.parser, r.instruction+serversNote(r.env.MCPServers)+skillsSection(files), screen), nil
}

// gone reports whether the terminal is.
func (r *run) gone(ctx context.Context) (bool, error) {
	if !r.looked {
		alive, err := r.terminal.alive(ctx)
		if err != nil {
			return false, err
		}
		r.dead = !alive
	}
	r.looked = false
	return r.dead, nil
}

// look returns what is new on the screen, bounded.
func (r *run) look(ctx context.Context) (string, error) {
	c, alive, err := r.terminal.capture(ctx)
	if err != nil {
		return "", err
	}
	r.dead, r.looked = !alive, true
	return truncate(r.screen.show(c), maxScreen), nil
}

// visible returns what is on the screen, bounded.
func (r *run) visible(ctx context.Context) (string, error) {
	c, _, err := r.terminal.capture(ctx)
	return truncate(c.visible, maxScreen), err
}

// act does what an answer says, and returns the next prompt, or that the agent is done.
func (r *run) act(ctx context.Context, said said) (prompt string, done bool, err error) {
	a := r.parser.parse(said.text)
	if a.failure != nil {
		prompt = errorPrompt(r.parser, a.feedback())
		r.noteAnswer(said, a, &prompt)
		return prompt, false, nil
	}
	if err := r.typeAll(ctx, a.commands); err != nil {
		r.noteAnswer(said, a, nil)
		return "", false, err
	}
	screen, err := r.look(ctx)
	if err != nil {
		r.noteAnswer(said, a, nil)
		return "", false, err
	}
	sure := a.complete && r.claimed
	r.claimed = a.complete
	switch feedback := a.feedback(); {
	case sure:
		prompt = screen
	case a.complete:
		prompt = confirmPrompt(r.parser, screen)
	case feedback != "":
		prompt = warningsObservation(feedback, screen)
	default:
		prompt = screen
	}
	r.noteAnswer(said, a, &prompt)
	r.keep()
	return prompt, sure, nil
}

// maxSeconds is the longest wait.
const maxSeconds = 60

func (r *run) typeAll(ctx context.Context, commands []command) error {
	for _, c := range commands {
		if err := r.terminal.send(ctx, c.keystrokes, min(c.seconds, maxSeconds)); err != nil {
			return err
		}
	}
	return nil
}

// finish writes the trajectory and returns the result.
func (r *run) finish() agent.Result {
	r.noteSummary()
	r.dump()
	rollouts := value.List{}
	if r.rollouts {
		if o := r.chat.rollout.object(); o != nil {
			rollouts = append(rollouts, o)
		}
		rollouts = append(rollouts, r.subRollouts...)
	}
	used := r.used()
	metadata := value.NewObject(4)
	metadata.Set("n_episodes", value.NewInt(r.episodes))
	metadata.Set("api_request_times_msec", append(value.List{}, r.requestTimes...))
	metadata.Set("summarization_count", value.NewInt(int64(r.summaries)))
	if r.storeMessages {
		metadata.Set("all_messages", r.chat.list())
	}
	return agent.Result{
		InputTokens: &used.prompt, CacheTokens: &used.cached, OutputTokens: &used.completion, CostUSD: positive(used.cost),
		Metadata: metadata, Rollouts: rollouts,
	}
}

// used is what the run has used, with its subagents.
func (r *run) used() usage { return r.chat.used.plus(r.subagents) }

func positive(f float64) *float64 {
	if f > 0 {
		return &f
	}
	return nil
}
