package tools

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// drawConversation is any conversation as a player makes it.
func drawConversation(t *rapid.T) *conversation {
	c := &conversation{}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(rapid.SampledFrom([]string{"a", "é", "\n", "日"}).Draw(t, "char"), rapid.IntRange(0, 5000).Draw(t, "length"))
	})
	system := ""
	if rapid.Bool().Draw(t, "system") {
		system = "You."
	}
	c.open(system, llm.TextMessage(llm.User, "The task: "+text.Draw(t, "task")))
	if rapid.Bool().Draw(t, "reminded") {
		c.add(llm.TextMessage(llm.User, "Go on."))
	}
	id := 0
	for range rapid.IntRange(0, 12).Draw(t, "turns") {
		m := llm.Message{Role: llm.Assistant, Parts: []llm.Part{{Text: text.Draw(t, "thought")}}}
		var results []llm.Message
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			id++
			name := fmt.Sprint(id)
			m.Calls = append(m.Calls, llm.ToolCall{ID: name, Name: "look", Arguments: "{}"})
			results = append(results, reply{id: name, text: []string{text.Draw(t, "result")}}.message())
		}
		c.add(m)
		for _, r := range results {
			c.add(r)
		}
		if rapid.Bool().Draw(t, "image") {
			c.add(llm.Message{Role: llm.User, Parts: []llm.Part{{Text: "Screen"}, {Image: &llm.Image{MediaType: "image/png", Data: []byte{1}}}}})
		}
		if rapid.Bool().Draw(t, "counted") {
			c.counted(&llm.Usage{Prompt: int64(rapid.IntRange(0, 1<<20).Draw(t, "prompt"))}, 50)
		}
	}
	return c
}

// checkShape: the head is there, every call has one result right behind it, nothing is
// empty or no text.
func checkShape(t *rapid.T, c *conversation, system bool, task string) {
	if (c.messages[0].Role == llm.System) != system || c.messages[c.first].Role != llm.User || c.messages[c.first].Parts[0].Text != task {
		t.Fatalf("the head is %+v", c.messages[:c.first+1])
	}
	var open []string
	for i, m := range c.messages {
		switch {
		case m.Role == llm.Tool && (len(open) == 0 || open[0] != m.CallID):
			t.Fatalf("message %d is a result of %q, open are %q", i, m.CallID, open)
		case m.Role == llm.Tool:
			open = open[1:]
		case len(open) > 0:
			t.Fatalf("before message %d %q have no result", i, open)
		}
		for _, call := range m.Calls {
			open = append(open, call.ID)
		}
		for _, p := range m.Parts {
			if !utf8.ValidString(p.Text) {
				t.Fatalf("message %d is not text", i)
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("at the end %q have no result", open)
	}
}

// TestShrink: whatever is left out, calls keep their results and the task stays; what
// was sent before is not changed; the same is always left out.
func TestShrink(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawConversation(t)
		system, task := c.first == 1, c.messages[c.first].Parts[0].Text
		sent := c.request(false)
		texts := make([]string, len(sent))
		for i := range sent {
			texts[i] = sent[i].Text()
		}
		last := c.lastTurn()
		twin := *c
		twin.messages = c.request(false)
		target := int64(rapid.IntRange(0, 20_000).Draw(t, "target"))
		changed := c.shrink(target, 50)
		checkShape(t, c, system, task)
		if again := twin.shrink(target, 50); again != changed || fmt.Sprint(twin.messages) != fmt.Sprint(c.messages) {
			t.Fatal("the same conversation is shortened in two ways")
		}
		for i := range sent {
			if sent[i].Text() != texts[i] {
				t.Fatalf("message %d was sent, and is changed", i)
			}
		}
		switch {
		case changed && c.sizeOf(c.messages) >= c.sizeOf(sent):
			t.Fatal("it is said to be shorter, and is not")
		case !changed && len(c.messages) != len(sent):
			t.Fatal("it is said to be as it was, and is not")
		case last < len(sent) && c.messages[c.lastTurn()].Text() != texts[last]:
			t.Fatal("the newest answer is not there any more")
		}
		c.limitImages(rapid.IntRange(0, 3).Draw(t, "images"))
		checkShape(t, c, system, task)
	})
}

// TestShrinkReaches: where the head, the newest answer and short results fit, the
// conversation is shortened as far as it was asked for.
func TestShrinkReaches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &conversation{}
		c.open("", llm.TextMessage(llm.User, "The task."))
		for i := range rapid.IntRange(1, 30).Draw(t, "turns") {
			id := fmt.Sprint(i)
			c.add(llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: id, Name: "look", Arguments: "{}"}}})
			c.add(reply{id: id, text: []string{strings.Repeat("x", rapid.IntRange(0, 200_000).Draw(t, "result"))}}.message())
		}
		target := int64(rapid.IntRange(400, 50_000).Draw(t, "target"))
		c.shrink(target, 0)
		if n := c.estimate(0); n > target {
			t.Fatalf("%d tokens, want at most %d", n, target)
		}
	})
}

// FuzzCall: whatever a model writes as a call, it is an action whose arguments are an
// object, or it is refused; and it goes back as JSON under a name that providers take.
func FuzzCall(f *testing.F) {
	for _, s := range []string{"", "{}", "null", "[1]", `{"at": "x"}`, `{"at": 1, "at": 2}`, `{"a`, "\xff", `{"at": "\ud800"}`, `{"at": 1e999}`, strings.Repeat("[", 2000)} {
		f.Add("look", "id", s)
	}
	f.Fuzz(func(t *testing.T, name, id, arguments string) {
		p := &player{}
		m := llm.Message{Calls: []llm.ToolCall{{ID: id, Name: name, Arguments: arguments}, {ID: id, Name: name, Arguments: arguments}}}
		calls := p.readCalls(&m, false, nil)
		for i, c := range calls {
			if c.action.Arguments == nil || c.refused == "" || !utf8.ValidString(c.refused) {
				t.Errorf("call %d: %+v", i, c)
			}
			sent := m.Calls[i]
			if sent.Name == "" || len(sent.Name) > maxName || plainName(sent.Name) != sent.Name || *c.action.ID != sent.ID {
				t.Errorf("call %d goes back as %+v", i, sent)
			}
			if _, err := cube.ReadArguments(sent.Arguments); err != nil {
				t.Errorf("call %d goes back with %q: %v", i, sent.Arguments, err)
			}
		}
		if m.Calls[0].ID == m.Calls[1].ID || m.Calls[0].ID == "" {
			t.Errorf("ids %q and %q", m.Calls[0].ID, m.Calls[1].ID)
		}
		_ = value.Repr(calls[0].action.Arguments)
	})
}
