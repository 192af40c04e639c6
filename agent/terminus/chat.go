package terminus

import (
	"maps"
	"slices"

	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// unknownInputLimit is taken for the limit of a model of which none is known, in tokens.
const unknownInputLimit = 1_000_000

// usage is what calls have used. Cost is 0 where it is not known.
type usage struct {
	prompt, completion, cached int64
	cost                       float64
}

func usageOf(r *llm.Response) usage {
	var u usage
	r = r.Believable()
	if r.Usage != nil {
		u = usage{prompt: r.Usage.Prompt, completion: r.Usage.Completion, cached: r.Usage.Cached}
	}
	if r.Cost != nil {
		u.cost = *r.Cost
	}
	return u
}

func (u usage) plus(o usage) usage {
	return usage{u.prompt + o.prompt, u.completion + o.completion, u.cached + o.cached, u.cost + o.cost}
}

func (u usage) minus(o usage) usage {
	return usage{u.prompt - o.prompt, u.completion - o.completion, u.cached - o.cached, u.cost - o.cost}
}

// chat is the conversation with the model: messages of the user and the assistant, in
// turn.
type chat struct {
	messages []llm.Message
	// tokens is how long the conversation is up to and with each message: as it was
	// told where that is known, else by the length of the text.
	tokens []int64
	// previous is the id of the response that the conversation continues; empty after
	// any change that the provider does not know of.
	previous string
	used     usage
	rollout  rollout
}

// size is how many tokens the conversation has.
func (c *chat) size() int64 {
	if len(c.tokens) == 0 {
		return 0
	}
	return c.tokens[len(c.tokens)-1]
}

// add appends a message that no provider has counted.
func (c *chat) add(m llm.Message) {
	c.tokens = append(c.tokens, c.size()+estimate(m.Text()))
	c.messages = append(c.messages, m)
	c.previous = ""
}

func estimate(text string) int64 { return int64(len(text))/llm.BytesPerToken + 1 }

// commit appends a prompt and its answer.
func (c *chat) commit(prompt string, answer llm.Message, r *llm.Response) {
	c.add(llm.TextMessage(llm.User, prompt))
	c.add(answer)
	u := usageOf(r)
	c.used = c.used.plus(u)
	if n := len(c.tokens); u.prompt > 0 {
		c.tokens[n-2], c.tokens[n-1] = u.prompt, u.prompt+u.completion
	}
	c.previous = r.ID
	c.rollout.add(r)
}

// unwind drops the last exchanges until so many tokens are free.
func (c *chat) unwind(limit, free int64) {
	for len(c.messages) > 1 && limit-c.size() < free {
		n := max(len(c.messages)-2, 1)
		c.messages, c.tokens = c.messages[:n], c.tokens[:n]
		c.previous = ""
	}
}

// replace makes the conversation anew.
func (c *chat) replace(messages ...llm.Message) {
	c.messages, c.tokens = nil, nil
	for _, m := range messages {
		c.add(m)
	}
}

// list is the conversation for the results' metadata.
func (c *chat) list() value.List {
	all := value.List{}
	for i := range c.messages {
		m := &c.messages[i]
		o := value.NewObject(3)
		o.Set("role", value.Str(m.Role))
		o.Set("content", value.Str(m.Text()))
		if m.Reasoning != "" {
			o.Set("reasoning_content", value.Str(m.Reasoning))
		}
		all = append(all, o)
	}
	return all
}

// rollout are the token ids and probabilities of a conversation (section 7.1). The
// lists grow each by itself.
type rollout struct {
	prompts, completions, logprobs value.List
	extras                         []*value.Object
}

func (o *rollout) add(r *llm.Response) {
	if r.PromptTokenIDs != nil {
		o.prompts = append(o.prompts, ids(r.PromptTokenIDs))
	}
	if r.CompletionTokenIDs != nil {
		o.completions = append(o.completions, ids(r.CompletionTokenIDs))
		if r.LogProbs != nil {
			o.logprobs = append(o.logprobs, floats(r.LogProbs))
		}
	}
	if r.Extra != nil && r.Extra.Len() > 0 {
		o.extras = append(o.extras, r.Extra)
	}
}

// object is the rollout as results hold it; nil for one with nothing in it.
func (o *rollout) object() *value.Object {
	out := value.NewObject(4)
	set := func(name string, list value.List) {
		if len(list) > 0 {
			out.Set(name, list)
		}
	}
	set("prompt_token_ids", o.prompts)
	set("completion_token_ids", o.completions)
	set("logprobs", o.logprobs)
	if len(o.extras) > 0 {
		names := map[string]bool{}
		for _, e := range o.extras {
			for name := range e.Keys() {
				names[name] = true
			}
		}
		extra := value.NewObject(len(names))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			var turns value.List
			for _, e := range o.extras {
				var v value.Value = value.Null{}
				if own, ok := e.Get(name); ok {
					v = own
				}
				turns = append(turns, v)
			}
			extra.Set(name, turns)
		}
		out.Set("extra", extra)
	}
	if out.Len() == 0 {
		return nil
	}
	return out
}

func ids(list []int64) value.List {
	out := make(value.List, len(list))
	for i, n := range list {
		out[i] = value.NewInt(n)
	}
	return out
}

func floats(list []float64) value.List {
	out := make(value.List, len(list))
	for i, f := range list {
		out[i] = value.Float(f)
	}
	return out
}
