package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Body is a JSON object that a request consists of. Its members are sent in the order of
// their names, so that equal requests have equal bodies.
type Body struct {
	members map[string]json.RawMessage
	err     error
}

// Set sets a member to what [JSON] makes of v.
func (b *Body) Set(key string, v any) {
	data, err := JSON(v)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("member %s of the request: %w", key, err)
	}
	b.put(key, data)
}

// SetValue sets a member to a value of a configuration.
func (b *Body) SetValue(key string, v value.Value) {
	data := Value(v)
	if !json.Valid(data) && b.err == nil {
		b.err = fmt.Errorf("member %s of the request: a number that is not finite has no JSON", key)
	}
	b.put(key, data)
}

func (b *Body) put(key string, data []byte) {
	if b.members == nil {
		b.members = map[string]json.RawMessage{}
	}
	b.members[key] = data
}

func (b *Body) encode() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	n := 2
	for key, v := range b.members {
		n += len(key) + len(v) + 8
	}
	out := append(make([]byte, 0, n), '{')
	for i, key := range slices.Sorted(maps.Keys(b.members)) {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := JSON(key)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), b.members[key]...)
	}
	return append(out, '}'), nil
}

// JSON is v in JSON, with the characters of HTML as they are.
func JSON(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Value is a value in JSON.
func Value(v value.Value) json.RawMessage {
	return value.AppendDumps(nil, v, value.DumpsOptions{ItemSeparator: ",", KeySeparator: ":"})
}

// Schema is the JSON schema of a tool's parameters.
func Schema(o *value.Object) json.RawMessage {
	if o == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return Value(o)
}
