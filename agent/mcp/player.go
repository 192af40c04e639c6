package mcp

import (
	"context"
	"errors"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/cube"
)

// Options are what a player tells its clients of itself.
type Options struct {
	Name, Version string // of the server (serverInfo)
}

// Player is a [cube.Agent] whose actions are the tool calls of a client of the Model
// Context Protocol. It is for one episode. Its methods may be called from any number of
// goroutines, Act from one at a time.
type Player struct {
	server *sdk.Server
	slots  chan struct{} // of requests by HTTP that are being served
	large  chan struct{} // of those that are more than small
	// silence is after how long a client that waits for an answer is sent something else.
	silence time.Duration

	started chan struct{} // closed when the first Act came
	leaving chan struct{} // closed by Leave
	over    chan struct{} // closed by End
	wake    chan struct{} // has something when the queue may have become longer

	mu sync.Mutex
	// What the first Act was given, and how clients are shown it.
	first        *cube.Observation
	instructions string
	prompt       []*sdk.PromptMessage
	offered      []cube.ActionSchema // by the last Act
	tools        []*sdk.Tool         // what is offered, as clients are shown it
	queue        []*call             // in the order in which they came
	taken        *call               // the call whose answer the next Act brings; nil for none
	left, ended  bool
	leftWith     error
}

// NewPlayer returns a player whose episode has not begun.
func NewPlayer(o Options) *Player {
	p := &Player{
		slots: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge), silence: maxSilence,
		started: make(chan struct{}), leaving: make(chan struct{}), over: make(chan struct{}),
		wake: make(chan struct{}, 1),
	}
	p.server = newServer(o, p)
	return p
}

// Act answers the call before with obs, offers actions to the clients, and waits for the
// next call, which it returns. Calls that do not fit what is offered are refused
// meanwhile. It returns no action when [Player.Leave] was called with nil, Leave's error
// otherwise, and the cause of ctx when that ends. After [Player.End] it returns no action.
func (p *Player) Act(ctx context.Context, obs *cube.Observation, actions []cube.ActionSchema) ([]cube.Action, error) {
	p.show(obs, actions)
	for {
		c, ended, err := p.take(ctx)
		switch {
		case err != nil || ended:
			return nil, err
		case c != nil:
			return []cube.Action{{Name: c.name, Arguments: c.args}}, nil
		}
		select {
		case <-p.wake:
		case <-p.leaving:
		case <-p.over:
		case <-ctx.Done():
		}
	}
}

// show answers the call before, and publishes what can be done now.
func (p *Player) show(obs *cube.Observation, actions []cube.ActionSchema) {
	contents, tools := contentsOf(obs), toolsOf(actions)
	p.mu.Lock()
	if p.taken != nil {
		p.taken.answer <- result(contents)
		p.taken = nil
	}
	begun := isClosed(p.started)
	changed := begun && !sameTools(p.tools, tools)
	p.offered, p.tools = actions, tools
	if !begun {
		p.first, p.instructions, p.prompt = obs, instructionsOf(obs), promptOf(contents)
		close(p.started)
	}
	p.mu.Unlock()
	if changed {
		p.addTurn(p.server)
	}
}

// take takes the first call of the queue that can be done; nil for none. It reports
// whether no call comes any more, with the error of Leave.
func (p *Player) take(ctx context.Context) (c *call, ended bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return nil, true, nil
	case p.left:
		return nil, true, p.leftWith
	case ctx.Err() != nil:
		return nil, false, context.Cause(ctx)
	}
	for len(p.queue) > 0 {
		c := p.queue[0]
		p.queue = p.queue[1:]
		if c.ctx.Err() != nil { // nobody waits for it any more
			continue
		}
		if refused, no := c.refusal(p.offered); no {
			c.answer <- refused
			continue
		}
		p.taken = c
		return c, false, nil
	}
	return nil, false, nil
}

// errNoTask is when an episode ends before its first turn.
var errNoTask = errors.New("the episode ended before its first turn")

// First waits until the task is there and returns the first observation, which the first
// Act was given. It is an error when the agent leaves or the episode ends before, and when
// ctx ends.
func (p *Player) First(ctx context.Context) (*cube.Observation, error) {
	if err := p.begun(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isClosed(p.started) {
		return nil, errNoTask
	}
	return p.first, nil
}

// begun waits until the task is there, or will not be.
func (p *Player) begun(ctx context.Context) error {
	select {
	case <-p.started:
	case <-p.leaving:
	case <-p.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Leave says that no call comes any more: the agent has ended, with err or nil. An Act
// that waits returns. Calls that were not taken are refused, from now on. The first Leave
// counts.
func (p *Player) Leave(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left {
		return
	}
	p.left, p.leftWith = true, err
	close(p.leaving)
	p.refuseAll()
}

// End says that the episode has ended: the call that is still unanswered is answered,
// later ones are refused. failed is the error of the action that ended the episode; nil
// for none. Clients are shown its type and its text. The first End counts.
func (p *Player) End(failed *cube.StepError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	close(p.over)
	if p.taken != nil {
		p.taken.answer <- lastAnswer(p.taken.name, failed)
		p.taken = nil
	}
	p.refuseAll()
}

// refuseAll answers the calls that will not be taken. p.mu is held.
func (p *Player) refuseAll() {
	for _, c := range p.queue {
		c.answer <- refusal(taskEnded)
	}
	p.queue = nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
