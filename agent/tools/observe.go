package tools

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// partsOf renders one content: the text of it, and its image, if it is one.
func partsOf(c cube.Content) (text string, image *llm.Image) {
	body, err := c.ModelContent()
	if err != nil {
		return fmt.Sprintf("[content of type %s, which cannot be shown]", c.TypeName()), nil
	}
	switch v := body.(type) {
	case value.Str:
		return clean(string(v)), nil
	case value.List:
		return partsOfList(v)
	}
	return "", nil
}

// partsOfList reads the parts of an image: its name and its data.
func partsOfList(list value.List) (text string, image *llm.Image) {
	for _, item := range list {
		part, ok := item.(*value.Object)
		if !ok {
			continue
		}
		if s, ok := member(part, "text").(value.Str); ok {
			text += clean(string(s))
		}
		if url, ok := member(member(part, "image_url"), "url").(value.Str); ok {
			image = imageOf(string(url))
		}
	}
	if text == "" && image == nil {
		text = "[an image that is empty]"
	}
	return text, image
}

const pngPrefix = "data:image/png;base64,"

// imageOf reads the data URL of a PNG, which is what images of observations are.
func imageOf(url string) *llm.Image {
	payload, ok := strings.CutPrefix(url, pngPrefix)
	if !ok {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil || len(data) == 0 {
		return nil
	}
	return &llm.Image{MediaType: "image/png", Data: data}
}

func member(v value.Value, key string) value.Value {
	o, ok := v.(*value.Object)
	if !ok {
		return nil
	}
	m, _ := o.Get(key)
	return m
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
