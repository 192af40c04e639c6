package tools

import (
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/llm"
)

// partsOf renders one content: the text of it, and its image, if it is one.
func partsOf(c cube.Content) (text string, image *llm.Image) {
	text, png := cube.Shown(c)
	if png != nil {
		image = &llm.Image{MediaType: "image/png", Data: png}
	}
	return text, image
}

const imageFollows = "[the image is below]"

// distribute sorts an observation's contents: what answers one of the replies goes to
// it, text that names no call to the last one that has no answer yet. It returns what
// is for a message of its own: everything else, and all images, because a result is
// text with every provider.
func distribute(obs *cube.Observation, replies []reply) (rest []llm.Part) {
	if obs == nil {
		return nil
	}
	var loose []string
	for _, c := range obs.Contents {
		text, image := partsOf(c)
		to := answered(c.Head().ToolCallID, replies)
		if image != nil {
			if text != "" {
				rest = append(rest, llm.Part{Text: text})
			}
			rest = append(rest, llm.Part{Image: image})
			text = imageFollows
		}
		switch {
		case to != nil:
			to.text = append(to.text, text)
		case image == nil && !blank(llm.Part{Text: text}):
			loose = append(loose, text)
		}
	}
	if len(loose) == 0 {
		return rest
	}
	if to := unanswered(replies); to != nil {
		to.text = loose
		return rest
	}
	short, _ := shortTexts([]llm.Part{{Text: strings.Join(loose, "\n\n")}}, maxText)
	return append(short, rest...)
}

// answered is the reply to the call that a content names, nil for none.
func answered(id *string, replies []reply) *reply {
	if id == nil {
		return nil
	}
	for i := range replies {
		if replies[i].id == *id && !replies[i].failed {
			return &replies[i]
		}
	}
	return nil
}

// unanswered is the last reply without a text, nil for none.
func unanswered(replies []reply) *reply {
	for i := len(replies) - 1; i >= 0; i-- {
		if len(replies[i].text) == 0 {
			return &replies[i]
		}
	}
	return nil
}

// message is the reply as a message: every call gets one, also one that brought
// nothing.
func (r reply) message() llm.Message {
	part := llm.Part{Text: strings.Join(r.text, "\n\n")}
	if blank(part) {
		part.Text = "(no result)"
	}
	short, _ := shortTexts([]llm.Part{part}, maxText)
	return llm.Message{Role: llm.Tool, Parts: short, CallID: r.id, Failed: r.failed}
}

// maxText bounds one text that a step brings, in bytes.
const maxText = 256 << 10

// blank reports whether a part has nothing, which providers refuse.
func blank(p llm.Part) bool { return p.Image == nil && strings.TrimSpace(p.Text) == "" }

// opening is the first message: the first observation.
func opening(obs *cube.Observation) llm.Message {
	m := llm.Message{Role: llm.User}
	if obs != nil {
		for _, c := range obs.Contents {
			text, image := partsOf(c)
			if part := (llm.Part{Text: text}); !blank(part) {
				m.Parts = append(m.Parts, part)
			}
			if image != nil {
				m.Parts = append(m.Parts, llm.Part{Image: image})
			}
		}
	}
	if len(m.Parts) == 0 {
		m.Parts = []llm.Part{{Text: "(The task says nothing. Begin.)"}}
	}
	return m
}
