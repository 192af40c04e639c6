package tools

import (
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/llm"
)

// conversation is what the model is shown. Its head is everything before the first
// answer: the system prompt and the first observation. Then come turns, each an answer
// with what followed it, up to the next. It is cut in whole turns, so that no call is
// ever without its result or a result without its call.
//
// Messages that were sent are never changed in place: whoever sent them may still hold
// them.
type conversation struct {
	messages []llm.Message
	// first is the index of the first observation, opening its parts.
	first   int
	opening []llm.Part
	// sends tells that reasoning is sent back.
	sends bool

	// reported is how many tokens the provider counted in the first known messages; 0
	// where it never did, or the messages have changed since.
	reported int64
	known    int
	// scale is how many tokens the provider counts where one is estimated.
	scale float64
	// dropped is how many turns were left out, shortened how many texts were.
	dropped, shortened int
}

const (
	tokensPerMessage = 8
	tokensPerImage   = 1600
	// maxScale bounds what a provider's counts are believed to be off by.
	maxScale = 4
)

func (c *conversation) add(m llm.Message) { c.messages = append(c.messages, m) }

// open begins with the system prompt, where there is one, and the first observation.
func (c *conversation) open(system string, first llm.Message) {
	if system != "" {
		c.add(llm.TextMessage(llm.System, system))
	}
	c.first, c.opening, c.scale = len(c.messages), first.Parts, 1
	c.add(first)
}

// size estimates the tokens of a message.
func (c *conversation) size(m *llm.Message) int64 {
	bytes, images := 0, 0
	for _, p := range m.Parts {
		bytes += len(p.Text)
		if p.Image != nil {
			images++
		}
	}
	for _, call := range m.Calls {
		bytes += len(call.ID) + len(call.Name) + len(call.Arguments)
	}
	if c.sends {
		bytes += len(m.Reasoning)
	}
	if m.Native != nil {
		bytes = max(bytes, len(m.Native.Content))
	}
	return int64(bytes/llm.BytesPerToken + tokensPerMessage + images*tokensPerImage)
}

func (c *conversation) sizeOf(messages []llm.Message) int64 {
	var n int64
	for i := range messages {
		n += c.size(&messages[i])
	}
	return n
}

// estimate is how many tokens a call is going to have, with tools that have so many.
func (c *conversation) estimate(tools int64) int64 {
	if c.reported > 0 {
		return c.reported + c.scaled(c.sizeOf(c.messages[c.known:]))
	}
	return c.scaled(tools + c.sizeOf(c.messages))
}

func (c *conversation) scaled(n int64) int64 { return int64(float64(n) * c.scale) }

// counted takes what the provider counted for the messages that there are; tools is the
// estimate for those.
func (c *conversation) counted(u *llm.Usage, tools int64) {
	own := tools + c.sizeOf(c.messages)
	if u == nil || u.Prompt <= 0 || own <= 0 {
		return
	}
	prompt := min(u.Prompt, own*maxScale)
	c.scale = max(1, float64(prompt)/float64(own))
	c.reported, c.known = prompt, len(c.messages)
}

// fit shortens the conversation where it would have more than limit tokens, 0 for
// unknown. It then becomes much shorter, so that it is not cut anew with every call:
// providers keep what does not change.
func (c *conversation) fit(limit, tools int64) {
	if limit > 0 && c.estimate(tools) > limit {
		c.shrink(limit*7/10, tools)
	}
}

const (
	keptResult  = 1000     // in bytes, of an old result
	largestKept = 32 << 10 // in bytes, where the newest results are cut
	leastKept   = 500
)

// shrink brings the conversation to target tokens, as far as it can, and reports
// whether it became shorter at all. First old results are shortened, the oldest first;
// then the oldest turns are left out; at last the newest results are shortened. The
// head stays.
func (c *conversation) shrink(target, tools int64) bool {
	before := c.sizeOf(c.messages)
	aim := int64(float64(target)/c.scale) - tools
	left := c.shorten(before, aim, c.head(), c.lastTurn(), keptResult)
	left = c.drop(left, aim)
	for keep := largestKept; keep >= leastKept && left > aim; keep /= 2 {
		left = c.shorten(left, aim, c.lastTurn(), len(c.messages), keep)
	}
	if left >= before {
		return false
	}
	c.reported, c.known = 0, 0
	return true
}

// head is how many messages are before the first turn.
func (c *conversation) head() int { return c.nextTurn(0) }

// nextTurn is where the first turn at or after i begins.
func (c *conversation) nextTurn(i int) int {
	for i < len(c.messages) && c.messages[i].Role != llm.Assistant {
		i++
	}
	return i
}

// lastTurn is where the newest turn begins.
func (c *conversation) lastTurn() int {
	i := len(c.messages) - 1
	for i >= 0 && c.messages[i].Role != llm.Assistant {
		i--
	}
	if i < 0 {
		return len(c.messages)
	}
	return i
}

// shorten cuts results among the messages from..to, in order, until no more than aim of
// size is left, and returns what is.
func (c *conversation) shorten(size, aim int64, from, to, keep int) int64 {
	for i := from; i < to && size > aim; i++ {
		m := &c.messages[i]
		if m.Role != llm.Tool && m.Role != llm.User {
			continue
		}
		before := c.size(m)
		if parts, changed := shortParts(m.Parts, keep); changed {
			m.Parts = parts
			c.shortened++
			size -= before - c.size(m)
		}
	}
	return size
}

// shortParts returns parts of at most about keep bytes each, and no image.
func shortParts(parts []llm.Part, keep int) (short []llm.Part, changed bool) {
	short, changed = shortTexts(parts, keep)
	for i, p := range short {
		if p.Image != nil {
			short[i], changed = llm.Part{Text: imageLeftOut}, true
		}
	}
	return short, changed
}

// shortTexts returns parts whose texts have at most about keep bytes each.
func shortTexts(parts []llm.Part, keep int) (short []llm.Part, changed bool) {
	short = slices.Clone(parts)
	for i, p := range short {
		text, cut := bounded.Shorten(p.Text, keep)
		short[i].Text, changed = text, changed || cut
	}
	return short, changed
}

const imageLeftOut = "[an earlier image is left out here]"

// drop leaves out the oldest turns until no more than aim of size is left, and returns
// what is. The newest turn stays.
func (c *conversation) drop(size, aim int64) int64 {
	note := int64(0) // what it takes to say so, where that is not there already
	if c.dropped == 0 {
		note = noteTokens
	}
	begin := c.head()
	end, turns, left := begin, 0, size+note
	for left > aim {
		next := c.nextTurn(end + 1)
		if next >= len(c.messages) {
			break
		}
		left -= c.sizeOf(c.messages[end:next])
		end = next
		turns++
	}
	if left >= size {
		return size
	}
	c.dropped += turns
	c.messages = slices.Concat(c.messages[:begin], c.messages[end:])
	text := fmt.Sprintf("[Your first %d answers, and what came of them, are left out here. What follows are the later ones.]", c.dropped)
	c.messages[c.first].Parts = append(slices.Clone(c.opening), llm.Part{Text: text})
	return left
}

// noteTokens is room for the note that turns are left out.
const noteTokens = 40

// limitImages leaves out all but the newest images. Those of the first observation
// belong to the task, and stay.
func (c *conversation) limitImages(keep int) {
	for i := len(c.messages) - 1; i > c.first; i-- {
		m := &c.messages[i]
		for j := len(m.Parts) - 1; j >= 0; j-- {
			if m.Parts[j].Image == nil {
				continue
			}
			if keep--; keep >= 0 {
				continue
			}
			m.Parts = slices.Clone(m.Parts)
			m.Parts[j] = llm.Part{Text: imageLeftOut}
		}
	}
}

// request returns the messages to send. Where marked, the provider is asked to keep
// what leads up to the head's messages and the last two: the first are always the same,
// and those were the last ones of the call before, or nearly.
func (c *conversation) request(marked bool) []llm.Message {
	out := slices.Clone(c.messages)
	if !marked {
		return out
	}
	for i := range out {
		if i <= c.first || i >= len(out)-2 {
			out[i].Cache = true
		}
	}
	return out
}
