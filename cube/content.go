package cube

import (
	"image"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

// Content is one piece of what an agent sees: [*TextContent],
// [*StructuredContent], [*ImageContent], [*AudioContent] or [*VideoContent].
type Content interface {
	Typed
	// Head returns what all kinds have.
	Head() *ContentHead
	// Markdown renders the content for people.
	Markdown() (string, error)
	// ModelContent returns the content of a chat message: text, or a list of
	// typed parts.
	ModelContent() (Value, error)
}

// ContentHead is what all kinds of content have. Name is a heading; both may be
// nil.
type ContentHead struct {
	ToolCallID *string `json:"tool_call_id"` // of the action that this answers
	Name       *string `json:"name"`
}

// Head returns h.
func (h *ContentHead) Head() *ContentHead { return h }

// TextContent is text. Scalars are read as Python's text of them.
type TextContent struct {
	ContentHead
	Data string `json:"data" cube:"text"`
}

// TypeName is the name of the type in documents.
func (*TextContent) TypeName() string { return "cube.core.TextContent" }

// Text returns content without a name that answers no action.
func Text(s string) *TextContent { return &TextContent{Data: s} }

// StructuredContent is an object or an array.
type StructuredContent struct {
	ContentHead
	Data Structured `json:"data"`
}

// TypeName is the name of the type in documents.
func (*StructuredContent) TypeName() string { return "cube.core.StructuredContent" }

// Structure returns content that holds v as [ValueOf] converts it. It panics
// like [Pairs] when v is neither an object nor an array.
func Structure(v any) *StructuredContent {
	data, err := ValueOf(v)
	if err == nil {
		switch data.(type) {
		case *Object, List:
			return &StructuredContent{Data: Structured{data}}
		}
		err = TypeErrorf("%s is neither an object nor an array", value.TypeName(data))
	}
	panic("cube.Structure: " + err.Error())
}

// Structured is an object or a list; empty, it is an empty object.
type Structured struct{ Value Value }

// UnmarshalValue reads a union of kinds of data. When none fits, there is an error
// per alternative, at its tag.
func (s *Structured) UnmarshalValue(v Value) error {
	switch v.(type) {
	case *Object, List:
		s.Value = v
		return nil
	}
	return &ValidationError{Errors: []typed.FieldError{
		{Loc: typed.Loc{"dict[any,any]"}, Type: "dict_type", Msg: "Input should be an object"},
		{Loc: typed.Loc{"list[any]"}, Type: "list_type", Msg: "Input should be a valid array"},
		{Loc: typed.Loc{"BaseModel"}, Type: "model_type", Msg: "Input should be an object"},
	}}
}

// MarshalValue returns the data.
func (s *Structured) MarshalValue() (any, error) { return s.value(), nil }

func (s *Structured) value() Value {
	if s.Value == nil {
		return value.NewObject(0)
	}
	return s.Value
}

// ImageContent is a picture.
type ImageContent struct {
	ContentHead
	Data Image `json:"data"`
}

// TypeName is the name of the type in documents.
func (*ImageContent) TypeName() string { return "cube.core.ImageContent" }

// AudioContent is a placeholder of the format: it can be carried, not rendered.
// Data is text of any form.
type AudioContent struct {
	ContentHead
	Data            string   `json:"data"`
	DurationSeconds *float64 `json:"duration_seconds"`
}

// TypeName is the name of the type in documents.
func (*AudioContent) TypeName() string { return "cube.core.AudioContent" }

// VideoContent is a placeholder like [AudioContent].
type VideoContent struct {
	ContentHead
	Data            string   `json:"data"`
	DurationSeconds *float64 `json:"duration_seconds"`
}

// TypeName is the name of the type in documents.
func (*VideoContent) TypeName() string { return "cube.core.VideoContent" }

// ContentOf makes content of a Go value (CUBE, section 2.4): an image becomes
// ImageContent, a scalar text in Python's notation, all else that [ValueOf]
// takes StructuredContent. Note that a Content is a typed object like any
// other and ends up inside a StructuredContent. nil and bytes are a TypeError.
func ContentOf(v any) (Content, error) {
	if img, ok := v.(image.Image); ok {
		return &ImageContent{Data: NewImage(img)}, nil
	}
	data, err := ValueOf(v)
	if err != nil {
		return nil, err
	}
	switch scalar := data.(type) {
	case *Object, List:
		return &StructuredContent{Data: Structured{data}}, nil
	case Str, Int, Float, Bool:
		return &TextContent{Data: value.Text(scalar)}, nil
	}
	return nil, typed.UnsupportedValue("NoneType")
}
