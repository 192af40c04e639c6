package cube

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// What every driver of models shares: how a content is shown to one, and how its calls
// are read.

// Shown renders one content for a model or for whoever speaks for one: its text, and
// its picture as the data of a PNG, nil for none. A content that cannot be shown, such
// as a sound, is a text that says so. The text has characters only.
func Shown(c Content) (text string, png []byte) {
	body, err := c.ModelContent()
	if err != nil {
		return fmt.Sprintf("[content of type %s, which cannot be shown]", c.TypeName()), nil
	}
	switch v := body.(type) {
	case Str:
		return bounded.Clean(string(v)), nil
	case List:
		return shownParts(v)
	}
	return "", nil
}

// shownParts reads the parts of an image: its name and its data.
func shownParts(list List) (text string, png []byte) {
	for _, item := range list {
		part, ok := item.(*Object)
		if !ok {
			continue
		}
		if s, ok := member(part, "text").(Str); ok {
			text += bounded.Clean(string(s))
		}
		if url, ok := member(member(part, "image_url"), "url").(Str); ok {
			png = pngOf(string(url))
		}
	}
	if text == "" && png == nil {
		text = "[an image that is empty]"
	}
	return text, png
}

const pngPrefix = "data:image/png;base64,"

// pngOf reads the data URL of a PNG, which is what images of observations are.
func pngOf(url string) []byte {
	payload, ok := strings.CutPrefix(url, pngPrefix)
	if !ok {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(payload)
	if err != nil || len(data) == 0 {
		return nil
	}
	return data
}

func member(v Value, key string) Value {
	o, ok := v.(*Object)
	if !ok {
		return nil
	}
	m, _ := o.Get(key)
	return m
}

// ReadArguments reads the arguments of a call as a model wrote them, a JSON object;
// nothing and null are none. The error says what they are instead, as the end of a
// sentence.
func ReadArguments(text string) (*Object, error) {
	if strings.TrimSpace(text) == "" {
		return value.NewObject(0), nil
	}
	if !json.Valid([]byte(text)) { // which is stricter than what follows, as providers are
		return nil, errors.New("they are no JSON")
	}
	v, err := value.DecodeText(text)
	if err != nil {
		return nil, fmt.Errorf("they cannot be read: %w", err)
	}
	switch v := v.(type) {
	case *Object:
		return v, nil
	case Null:
		return value.NewObject(0), nil
	}
	return nil, fmt.Errorf("they are of type %s", value.TypeName(v))
}

// Misfit says, as a sentence, which argument of a call is missing or not known; "" where
// none is. A driver refuses such a call: the task would end with the action, for a slip
// that the caller can mend. Values are not looked at.
func (s *ActionSchema) Misfit(args *Object) string {
	if s.Parameters == nil {
		return ""
	}
	required, _ := s.Parameters.Get("required")
	list, _ := required.(List)
	for _, item := range list {
		if name, ok := item.(Str); ok && !args.Has(string(name)) {
			return fmt.Sprintf("The argument %q is missing.", string(name))
		}
	}
	known, _ := s.Parameters.Get("properties")
	properties, ok := known.(*Object)
	if !ok || s.allowsOthers() {
		return ""
	}
	for name := range args.Keys() {
		if !properties.Has(name) {
			return fmt.Sprintf("There is no argument %q.", bounded.Head(name, maxActionName))
		}
	}
	return ""
}

// allowsOthers reports whether a schema says that arguments it does not name may be there.
func (s *ActionSchema) allowsOthers() bool {
	others, said := s.Parameters.Get("additionalProperties")
	return said && others != Bool(false) || s.Parameters.Has("patternProperties")
}
