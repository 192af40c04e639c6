package tools

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// reply is what a call of the model is answered with.
type reply struct {
	id     string
	text   []string
	failed bool
}

// names keeps the ids of a conversation's calls apart: providers refuse a conversation
// in which two calls have one id, or a call has none.
type names struct {
	used map[string]bool
	made int
}

// take returns an id that is unlike all before it: the one asked for, if it can be.
func (n *names) take(id string) string {
	if n.used == nil {
		n.used = map[string]bool{}
	}
	for id == "" || n.used[id] {
		n.made++
		id = fmt.Sprintf("call_%d", n.made)
	}
	n.used[id] = true
	return id
}

// call is one call of the model, read.
type call struct {
	action cube.Action
	// refused is why the call is not done; empty for one that is.
	refused string
	// written are the arguments as the model wrote them, where they are no object.
	written string
}

// readCalls reads the calls of an answer and brings them into a form that any provider
// takes back. The calls before the first that cannot be done are done; after it none
// is, as a step ends with the first action that fails. Nothing is done after a stop.
func (p *player) readCalls(m *llm.Message, cut bool, actions []cube.ActionSchema) []call {
	calls := make([]call, len(m.Calls))
	kept := make([]llm.ToolCall, len(m.Calls))
	ended := ""
	for i, c := range m.Calls {
		kept[i] = llm.ToolCall{ID: p.ids.take(c.ID), Name: plainName(c.Name), Arguments: c.Arguments}
		r := readCall(c, cut && i == len(m.Calls)-1, actions)
		if r.written != "" {
			kept[i].Arguments = "{}"
		}
		if kept[i] != c {
			m.Native = nil // it has what was changed
		}
		r.action.ID, r.action.Name = &kept[i].ID, kept[i].Name
		switch {
		case ended != "":
			r.refused = ended
		case i == maxCalls:
			ended = fmt.Sprintf("Not done, because one answer may have no more than %d calls.", maxCalls)
			r.refused = ended
		case r.refused != "":
			ended = "Not done, because a call before it in the same answer was not possible."
		case r.action.Name == cube.StopName:
			ended = "Not done, because the task was ended before it."
		}
		calls[i] = r
	}
	m.Calls = kept
	return calls
}

func readCall(c llm.ToolCall, cut bool, actions []cube.ActionSchema) call {
	args, err := cube.ReadArguments(c.Arguments)
	if err != nil {
		why := fmt.Sprintf("The arguments must be a JSON object, but %v. They begin with: %s", err, bounded.Head(c.Arguments, shownArguments))
		if cut {
			why += "\nThe answer was cut off at the limit of its length: make it shorter, or do it in several calls."
		}
		return call{action: cube.Action{Arguments: value.NewObject(0)}, refused: why, written: bounded.Head(c.Arguments, keptArguments)}
	}
	r := call{action: cube.Action{Arguments: args}}
	schema := findAction(actions, c.Name)
	if schema == nil {
		r.refused = fmt.Sprintf("There is no tool %q. The tools are: %s.", bounded.Head(c.Name, maxName), actionNames(actions))
		return r
	}
	r.refused = schema.Misfit(args)
	return r
}

const (
	shownArguments = 200      // in bytes, of what the model is shown again
	keptArguments  = 16 << 10 // in bytes, of what the trajectory keeps
	maxName        = 64       // the longest name that providers take
	maxCalls       = 64       // in one answer
)

func actionNames(actions []cube.ActionSchema) string {
	list := make([]string, len(actions))
	for i, a := range actions {
		list[i] = a.Name
	}
	return strings.Join(list, ", ")
}

// plainName makes a name of a tool one that providers take back.
func plainName(name string) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, bounded.Head(name, maxName))
	if plain == "" {
		return "unnamed"
	}
	return plain
}
