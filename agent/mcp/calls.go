package mcp

import (
	"context"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/bounded"
)

// maxCalls bounds the calls that wait for their turn. Models make a few at once.
const maxCalls = 64

// call is a call of a tool.
type call struct {
	ctx  context.Context // ends when nobody waits for the answer any more
	name string
	// arguments are read when its turn has come, into args: they take far more memory than
	// their text.
	arguments string
	args      *cube.Object
	answer    chan answer // has room for the only one
}

// answer is what a call is answered with: a result, or an error of the protocol.
type answer struct {
	result *sdk.CallToolResult
	err    error
}

// do puts a call into the queue and waits for its answer. inQueue is called when its place
// is certain.
func (p *Player) do(ctx context.Context, name, arguments string, inQueue func()) (*sdk.CallToolResult, error) {
	c := &call{ctx: ctx, name: name, arguments: arguments, answer: make(chan answer, 1)}
	p.enter(c)
	inQueue()
	select {
	case a := <-c.answer:
		return a.result, a.err
	case <-ctx.Done():
		p.giveUp(c)
		return nil, context.Cause(ctx)
	}
}

// enter puts a call into the queue, or refuses it.
func (p *Player) enter(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended || p.left:
		c.answer <- refusal(taskEnded)
		return
	case len(p.queue) >= maxCalls:
		c.answer <- refusal(fmt.Sprintf("Not done: there are too many calls at once. At most %d may wait for their turn.", maxCalls))
		return
	}
	p.queue = append(p.queue, c)
	select {
	case p.wake <- struct{}{}:
	default: // it has been told
	}
}

// giveUp removes a call from the queue. One that was taken is done all the same.
func (p *Player) giveUp(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(q *call) bool { return q == c })
}

// refusal reads a call's arguments and says why it cannot be done now, and whether that is so.
// The task would end with an action that it does not have, or whose arguments are not those it
// wants.
func (c *call) refusal(offered []cube.ActionSchema) (why answer, refused bool) {
	i := slices.IndexFunc(offered, func(a cube.ActionSchema) bool { return a.Name == c.name })
	if i < 0 {
		return answer{err: &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("there is no tool %q", bounded.Head(c.name, maxShownName)),
		}}, true
	}
	var err error
	if c.args, err = cube.ReadArguments(c.arguments); err != nil {
		return refusal(fmt.Sprintf("The arguments must be a JSON object, but %v.", err)), true
	}
	if misfit := offered[i].Misfit(c.args); misfit != "" {
		return refusal(misfit), true
	}
	return answer{}, false
}

// maxShownName bounds what is repeated of a name, in bytes.
const maxShownName = 64
