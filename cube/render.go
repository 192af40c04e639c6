package cube

import (
	"strings"

	"github.com/proctor-run/proctor/value"
)

// Rendering of content for people and for models (CUBE, section 2.3).

// heading returns "## NAME\n", or nothing for content without a name.
func (h *ContentHead) heading() string {
	if h.Name == nil || *h.Name == "" {
		return ""
	}
	return "## " + *h.Name + "\n"
}

// Markdown returns the text below its heading.
func (c *TextContent) Markdown() (string, error) { return c.heading() + c.Data, nil }

// ModelContent returns the same text.
func (c *TextContent) ModelContent() (Value, error) { return Str(c.heading() + c.Data), nil }

// Markdown returns a fenced block of indented JSON.
func (c *StructuredContent) Markdown() (string, error) {
	body := value.AppendDumps(nil, c.Data.value(), value.DumpsOptions{Indent: 2})
	return c.heading() + "```json\n" + string(body) + "\n```", nil
}

// ModelContent returns JSON on one line.
func (c *StructuredContent) ModelContent() (Value, error) {
	body := value.AppendDumps(nil, c.Data.value(), value.DumpsOptions{})
	return Str(c.heading() + string(body)), nil
}

// Markdown returns an inline image.
func (c *ImageContent) Markdown() (string, error) {
	alt := "image"
	if c.heading() != "" {
		alt = *c.Name
	}
	url, err := c.Data.URL()
	return c.heading() + "![" + alt + "](" + url + ")", err
}

// ModelContent returns a list of parts: the name, if any, and the image.
func (c *ImageContent) ModelContent() (Value, error) {
	url, err := c.Data.URL()
	if err != nil {
		return nil, err
	}
	var parts List
	if h := c.heading(); h != "" {
		parts = append(parts, Pairs("type", "text", "text", strings.TrimSuffix(h, "\n")))
	}
	return append(parts, Pairs("type", "image_url", "image_url", Pairs("url", url))), nil
}

// Markdown fails: the reference renders no audio.
func (*AudioContent) Markdown() (string, error) {
	return "", NotImplementedErrorf("Markdown rendering is not supported for audio content.")
}

// ModelContent fails: messages for models hold no audio.
func (*AudioContent) ModelContent() (Value, error) {
	return nil, NotImplementedErrorf("Audio is not supported by LLM message format.")
}

// Markdown fails: the reference renders no video.
func (*VideoContent) Markdown() (string, error) {
	return "", NotImplementedErrorf("Markdown rendering is not supported for video content.")
}

// ModelContent fails: messages for models hold no video.
func (*VideoContent) ModelContent() (Value, error) {
	return nil, NotImplementedErrorf("Video is not supported by LLM message format.")
}

// Message returns content as a chat message: of role "tool" when it answers an
// action, else of role "user".
func Message(c Content) (*Object, error) {
	body, err := c.ModelContent()
	if err != nil {
		return nil, err
	}
	if id := c.Head().ToolCallID; id != nil && *id != "" {
		return Pairs("role", "tool", "content", body, "tool_call_id", *id), nil
	}
	return Pairs("role", "user", "content", body), nil
}
