package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// The members of a request that are read and changed here.
const (
	modelMember   = "model"
	streamMember  = "stream"
	optionsMember = "stream_options"
	usageMember   = "include_usage"
)

// ModelOf reads which model the body of a request asks for, and whether as a stream: of
// the protocols chat, responses and Anthropic's messages, for Gemini has both in the
// address. The model is empty where the body names none.
//
// A body that two servers might read differently is refused: one that is not JSON or no
// object, that has one of the members twice or in another case (for which libraries do
// not agree on what counts), in which the model is no text or has a character that is
// none, or stream is neither true nor false. So is one of more than [MaxBody] bytes or
// nested deeper than encoding/json reads. The errors say what is wrong, and may be shown to
// who sent the body.
func ModelOf(body []byte) (model string, stream bool, err error) {
	found, err := membersOf(body, modelMember, streamMember)
	if err != nil {
		return "", false, err
	}
	if m, ok := found[modelMember]; ok {
		if model, err = m.text(); err != nil {
			return "", false, err
		}
	}
	stream, err = found[streamMember].flag()
	return model, stream, err
}

// SetModel returns a body that asks for another model and is else, byte for byte, what it
// was. The bodies are those that [ModelOf] takes; one without a model gets one as its first
// member. The given body is not changed.
func SetModel(body []byte, model string) ([]byte, error) {
	name, err := JSON(strings.ToValidUTF8(model, "\uFFFD"))
	if err != nil {
		return nil, err
	}
	found, err := membersOf(body, modelMember)
	if err != nil {
		return nil, err
	}
	if m, ok := found[modelMember]; ok {
		return splice(body, m.start, m.end, name), nil
	}
	return insert(body, 0, modelMember, name), nil
}

// AskForUsage makes the body of a chat request ask for the usage at the end of the stream
// (stream_options.include_usage) and leaves all else, byte for byte, as it is. asked tells
// that the body was changed, so that the agent is not to see what it did not ask for:
// [NewUsageFilter]. The body of a request that asks itself, or for no stream, is returned
// as it is.
//
// Bodies are refused as in [ModelOf], also where stream_options or include_usage are of
// another kind than the protocol has them. The given body is not changed.
func AskForUsage(body []byte) (edited []byte, asked bool, err error) {
	found, err := membersOf(body, streamMember, optionsMember)
	if err != nil {
		return nil, false, err
	}
	stream, err := found[streamMember].flag()
	if err != nil {
		return nil, false, err
	}
	if !stream {
		return body, false, nil
	}
	options, ok := found[optionsMember]
	switch {
	case !ok:
		return insert(body, found[streamMember].end, optionsMember, []byte(`{"`+usageMember+`":true}`)), true, nil
	case isNull(options.value):
		return splice(body, options.start, options.end, []byte(`{"`+usageMember+`":true}`)), true, nil
	case !isObject(options.value):
		return nil, false, errors.New("the member stream_options of the body is no object")
	}
	inner, err := find(options.value, usageMember)
	if err != nil {
		return nil, false, err
	}
	usage, ok := inner[usageMember]
	wanted, err := usage.flag()
	switch {
	case err != nil:
		return nil, false, err
	case wanted:
		return body, false, nil
	case ok:
		return splice(body, options.start+usage.start, options.start+usage.end, []byte("true")), true, nil
	}
	return splice(body, options.start, options.end, insert(options.value, 0, usageMember, []byte("true"))), true, nil
}

// member is one of a body: its value, and where that is.
type member struct {
	name       string
	value      []byte
	start, end int
}

// membersOf finds members of a body, which must be an object.
func membersOf(body []byte, names ...string) (map[string]member, error) {
	switch {
	case len(body) > MaxBody:
		return nil, fmt.Errorf("the body has more than %d bytes", MaxBody)
	case !json.Valid(body):
		return nil, errors.New("the body is not JSON, or nested too deep")
	case body[skipSpace(body, 0)] != '{':
		return nil, errors.New("the body is no JSON object")
	}
	return find(body, names...)
}

// find finds members of an object that is JSON.
func find(object []byte, names ...string) (map[string]member, error) {
	found := map[string]member{}
	for w := walkObject(object); w.next(); {
		key := string(w.key)
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, key) })
		if at < 0 {
			continue
		}
		name := names[at]
		if key != name {
			return nil, fmt.Errorf("the body has the member %q, which some servers take for %s", key, name)
		}
		if _, ok := found[name]; ok {
			return nil, fmt.Errorf("the body has the member %s twice", name)
		}
		found[name] = member{name: name, value: w.value, start: w.start, end: w.end}
	}
	return found, nil
}

// text reads a member that is text.
func (m member) text() (string, error) {
	var s string
	if m.value[0] != '"' || json.Unmarshal(m.value, &s) != nil {
		return "", fmt.Errorf("the member %s of the body is no text", m.name)
	}
	if strings.ContainsRune(s, utf8.RuneError) {
		return "", fmt.Errorf("the member %s of the body has a character in it that is none", m.name)
	}
	return s, nil
}

// flag reads a member that is true or false; one that is absent or null is false.
func (m member) flag() (bool, error) {
	switch {
	case string(m.value) == "true":
		return true, nil
	case isNull(m.value), string(m.value) == "false":
		return false, nil
	}
	return false, fmt.Errorf("the member %s of the body is neither true nor false", m.name)
}

// splice returns text with other bytes from start to end.
func splice(text []byte, start, end int, with []byte) []byte {
	return slices.Concat(text[:start], with, text[end:])
}

// insert returns an object with one more member: after the value that ends at after or, where
// that is 0, as the first one.
func insert(object []byte, after int, name string, value []byte) []byte {
	if after > 0 {
		return splice(object, after, after, slices.Concat([]byte(`,"`+name+`":`), value))
	}
	first := skipSpace(object, 0) + 1
	added := slices.Concat([]byte(`"`+name+`":`), value)
	if object[skipSpace(object, first)] != '}' {
		added = append(added, ',')
	}
	return splice(object, first, first, added)
}
