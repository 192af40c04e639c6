package atif

import (
	"strings"

	"github.com/proctor-run/proctor/value"
)

// A Turn is one message of a conversation for training.
type Turn struct {
	// Role is "user", which what the system says counts as, or "assistant".
	Role    string
	Content string
	// PromptTokenIDs, CompletionTokenIDs and Logprobs are those of an assistant's
	// turn, nil where the trajectory has none.
	PromptTokenIDs, CompletionTokenIDs, Logprobs value.List
}

// The roles of turns.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Conversations returns one conversation per episode of a trajectory: for each
// step of the agent that is not copied context, everything up to it. withTools
// puts the tool definitions in front of the first message of the system. The
// document need not be valid. (Section 7.2.)
func Conversations(document *value.Object, withTools bool) [][]Turn {
	c := converse(document, withTools)
	episodes := make([][]Turn, len(c.ends))
	for i, end := range c.ends {
		episodes[i] = c.turns[:end:end]
	}
	return episodes
}

// WholeConversation returns all steps of a trajectory, those copied and what was
// observed last among them; nil when the agent has no step in it. (Section 7.2,
// subagents.)
func WholeConversation(document *value.Object, withTools bool) []Turn {
	c := converse(document, withTools)
	for _, t := range c.turns {
		if t.Role == RoleAssistant {
			return c.turns
		}
	}
	return nil
}

// conversation is all turns of a trajectory, and how many of them each episode
// has.
type conversation struct {
	turns []Turn
	ends  []int
}

func converse(document *value.Object, withTools bool) conversation {
	var c conversation
	tools := list(member(member(document, "agent"), "tool_definitions"))
	for _, s := range list(member(document, "steps")) {
		source, _ := member(s, "source").(value.Str)
		if Source(source) == Agent {
			c.addAgent(s)
			continue
		}
		text := plainText(member(s, "message"))
		if Source(source) == System && withTools && len(tools) > 0 {
			text = "<tools>\n" + string(value.AppendDumps(nil, tools, value.DumpsOptions{Indent: 2, Unicode: true})) + "\n</tools>\n\n" + text
			tools = nil
		}
		c.turns = append(c.turns, Turn{Role: RoleUser, Content: text})
	}
	return c
}

// addAgent adds a step of the agent and, for those that come after it, what it
// observed.
func (c *conversation) addAgent(step value.Value) {
	metrics := member(step, "metrics")
	c.turns = append(c.turns, Turn{
		Role:               RoleAssistant,
		Content:            assistantText(step),
		PromptTokenIDs:     list(member(metrics, "prompt_token_ids")),
		CompletionTokenIDs: list(member(metrics, "completion_token_ids")),
		Logprobs:           list(member(metrics, "logprobs")),
	})
	if !value.Truth(member(step, "is_copied_context")) {
		c.ends = append(c.ends, len(c.turns))
	}
	var seen []string
	for _, r := range list(member(member(step, "observation"), "results")) {
		if o, ok := r.(*value.Object); ok && o.Has("content") {
			seen = append(seen, plainText(member(r, "content")))
		}
	}
	if seen != nil {
		c.turns = append(c.turns, Turn{Role: RoleUser, Content: strings.Join(seen, "\n")})
	}
}

func assistantText(step value.Value) string {
	var lines []string
	if s, ok := member(step, "reasoning_content").(value.Str); ok && s != "" {
		lines = append(lines, "<think>"+string(s)+"</think>")
	}
	if text := plainText(member(step, "message")); text != "" {
		// Some servers cut the first tag off.
		if strings.Contains(text, "</think>") && !strings.Contains(text, "<think>") {
			text = "<think>" + text
		}
		lines = append(lines, text)
	}
	for _, call := range list(member(step, "tool_calls")) {
		o := value.NewObject(2)
		o.Set("name", member(call, "function_name"))
		o.Set("arguments", member(call, "arguments"))
		lines = append(lines, "<tool_call>\n"+oneLine(o)+"\n</tool_call>")
	}
	return strings.Join(lines, "\n")
}

// plainText is content as text: of a list of parts the first part's.
func plainText(v value.Value) string {
	switch v := v.(type) {
	case nil, value.Null:
		return ""
	case value.Str:
		return string(v)
	case value.List:
		if len(v) > 0 {
			if text, ok := member(v[0], "text").(value.Str); ok {
				return string(text)
			}
		}
	}
	return oneLine(v)
}

func oneLine(v value.Value) string {
	return string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true}))
}
