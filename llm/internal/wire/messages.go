package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/proctor-run/proctor/llm"
)

// Picture is an image as protocols take it: Base64 with its media type, else a URL.
type Picture struct {
	MediaType, Base64, URL string
}

// PictureOf reads an image. A URL that has the data in itself becomes data.
func PictureOf(img *llm.Image) Picture {
	p := Picture{MediaType: img.MediaType, URL: img.URL}
	if len(img.Data) > 0 {
		p.Base64, p.URL = base64.StdEncoding.EncodeToString(img.Data), ""
		if p.MediaType == "" {
			p.MediaType = http.DetectContentType(img.Data)
		}
		return p
	}
	if rest, ok := strings.CutPrefix(img.URL, "data:"); ok {
		if media, data, ok := strings.Cut(rest, ";base64,"); ok {
			return Picture{MediaType: media, Base64: data}
		}
	}
	return p
}

// Link is the picture as a URL.
func (p Picture) Link() string {
	if p.Base64 != "" {
		return "data:" + p.MediaType + ";base64," + p.Base64
	}
	return p.URL
}

// Images are the parts of a message that are images.
func Images(m *llm.Message) []llm.Part {
	var out []llm.Part
	for _, p := range m.Parts {
		if p.Image != nil {
			out = append(out, p)
		}
	}
	return out
}

// Result is the text of a tool's result, for protocols that have no other word for a
// failure.
func Result(m *llm.Message) string {
	text := m.Text()
	switch {
	case m.Failed && !strings.HasPrefix(strings.ToLower(text), "error"):
		return strings.TrimSpace("Error: " + text)
	case text == "" && len(Images(m)) > 0:
		return "(see the image)"
	}
	return text
}

// Arguments are those of a call as an object. Those that are none are put into one, so
// that the model sees what it wrote.
func Arguments(c llm.ToolCall) json.RawMessage {
	text := strings.TrimSpace(c.Arguments)
	if text == "" {
		return json.RawMessage("{}")
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	data, err := JSON(map[string]string{"invalid_arguments": c.Arguments})
	if err != nil {
		return json.RawMessage("{}")
	}
	return data
}

// Native is the native content of a message if it is of the protocol and is JSON.
func Native(m *llm.Message, api llm.API) json.RawMessage {
	if m.Role != llm.Assistant || m.Native == nil || m.Native.API != api || !json.Valid(m.Native.Content) {
		return nil
	}
	return m.Native.Content
}

// IDs gives ids to calls that have none.
type IDs struct {
	used map[string]bool
	n    int
}

// NewIDs knows the ids of a conversation.
func NewIDs(messages []llm.Message) *IDs {
	ids := &IDs{used: map[string]bool{}}
	for i := range messages {
		for _, c := range messages[i].Calls {
			ids.used[c.ID] = true
			ids.n++
		}
	}
	return ids
}

// For is the id itself or, where it is empty, a new one.
func (ids *IDs) For(id string) string {
	for id == "" {
		ids.n++
		if name := fmt.Sprintf("call_%d", ids.n); !ids.used[name] {
			id = name
		}
	}
	ids.used[id] = true
	return id
}

// Budget is how many tokens of thinking for an effort, where a model knows only budgets
// (Harbor's agents, section 5.7, and twice as many for every step beyond its table).
func Budget(effort string) int64 {
	switch effort {
	case "minimal", "low":
		return 1024
	case "medium":
		return 2048
	case "high":
		return 4096
	case "xhigh":
		return 8192
	case "max":
		return 16384
	}
	return 0
}
