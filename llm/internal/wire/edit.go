package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
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

// Request is the body of a request that was read once, see [ReadRequest].
type Request struct {
	body    []byte
	members []member
}

// maxMembers bounds the members of a body: no protocol has a tenth of them.
const maxMembers = 1000

// ReadRequest reads the body of a request of any protocol.
//
// A body that two servers might read differently is refused: one that is not JSON or no
// object, that is not in UTF-8, or that has more than a thousand members. So is one of more
// than [MaxBody] bytes or nested deeper than encoding/json reads. The methods refuse one that
// has a member that they read twice or in another case (for which libraries do not agree on
// what counts). The errors say what is wrong, and may be shown to who sent the body. The body
// must not be changed afterwards.
func ReadRequest(body []byte) (*Request, error) {
	if err := check(body); err != nil {
		return nil, err
	}
	r := &Request{body: body}
	for w := walkObject(body); w.next(); {
		if len(r.members) == maxMembers {
			return nil, fmt.Errorf("the body has more than %d members", maxMembers)
		}
		r.members = append(r.members, member{name: string(w.key), value: w.value, start: w.start, end: w.end})
	}
	return r, nil
}

// Members returns members of the body as they stand there; those that it does not have are
// absent.
func (r *Request) Members(names ...string) (map[string]json.RawMessage, error) {
	found, err := pick(slices.Values(r.members), names)
	return values(found), err
}

// Model is which model the body asks for, in the protocols that have it there; empty where
// it names none. The model must be a text without a character that is none.
func (r *Request) Model() (string, error) {
	found, err := pick(slices.Values(r.members), []string{modelMember})
	if err != nil {
		return "", err
	}
	if m, ok := found[modelMember]; ok {
		return m.text()
	}
	return "", nil
}

// Edit returns the body with what is to be changed, and else byte for byte as it was. A model
// that is not empty takes the place of the body's; one without gets it as its first member.
// Where usage says so, a chat request for a stream asks for the usage at its end
// (stream_options.include_usage); asked tells that it did not itself, so that the agent is
// not to see it: [NewUsageFilter]. Members of another kind than the protocol has them are
// errors then. The body itself is returned where nothing is to be changed, and never changed.
func (r *Request) Edit(model string, usage bool) (edited []byte, asked bool, err error) {
	var edits []edit
	if model != "" {
		e, err := r.setModel(model)
		if err != nil {
			return nil, false, err
		}
		edits = append(edits, e)
	}
	if usage {
		e, ok, err := r.askForUsage()
		if err != nil {
			return nil, false, err
		}
		if asked = ok; ok {
			edits = append(edits, e)
		}
	}
	if len(edits) == 0 {
		return r.body, false, nil
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	n := len(r.body)
	for _, e := range edits {
		n += len(e.with)
	}
	edited, at := make([]byte, 0, n), 0
	for _, e := range edits {
		edited, at = append(append(edited, r.body[at:e.start]...), e.with...), e.end
	}
	return append(edited, r.body[at:]...), asked, nil
}

// edit is other bytes in the place of those from start to end.
type edit struct {
	start, end int
	with       []byte
}

func (r *Request) setModel(model string) (edit, error) {
	name, err := JSON(strings.ToValidUTF8(model, "\uFFFD"))
	if err != nil {
		return edit{}, err
	}
	found, err := pick(slices.Values(r.members), []string{modelMember})
	if err != nil {
		return edit{}, err
	}
	if m, ok := found[modelMember]; ok {
		return edit{m.start, m.end, name}, nil
	}
	return first(r.body, 0, modelMember, name), nil
}

// askForUsage is the edit that asks for the usage; ok is false where none is needed.
func (r *Request) askForUsage() (e edit, ok bool, err error) {
	found, err := pick(slices.Values(r.members), []string{streamMember, optionsMember})
	if err != nil {
		return edit{}, false, err
	}
	stream, err := found[streamMember].flag()
	if err != nil || !stream {
		return edit{}, false, err
	}
	options, ok := found[optionsMember]
	switch at := found[streamMember].end; {
	case !ok:
		return edit{at, at, []byte(`,"` + optionsMember + `":{"` + usageMember + `":true}`)}, true, nil
	case isNull(options.value):
		return edit{options.start, options.end, []byte(`{"` + usageMember + `":true}`)}, true, nil
	case !isObject(options.value):
		return edit{}, false, errors.New("the member stream_options of the body is not an object")
	}
	inner, err := find(options.value, usageMember)
	if err != nil {
		return edit{}, false, err
	}
	usage, ok := inner[usageMember]
	wanted, err := usage.flag()
	switch {
	case err != nil || wanted:
		return edit{}, false, err
	case ok:
		return edit{options.start + usage.start, options.start + usage.end, []byte("true")}, true, nil
	}
	return first(options.value, options.start, usageMember, []byte("true")), true, nil
}

// first makes a member the first one of an object, which begins at a place of the text that
// is changed.
func first(object []byte, at int, name string, value []byte) edit {
	begin := skipSpace(object, 0) + 1
	added := slices.Concat([]byte(`"`+name+`":`), value)
	if object[skipSpace(object, begin)] != '}' {
		added = append(added, ',')
	}
	return edit{at + begin, at + begin, added}
}

// member is one of a body: its value, and where that is.
type member struct {
	name       string
	value      []byte
	start, end int
}

var errNoObject = errors.New("it is not an object")

// check refuses a body that is no object, or that servers might read differently.
func check(body []byte) error {
	switch {
	case len(body) > MaxBody:
		return fmt.Errorf("the body has more than %d bytes", MaxBody)
	case !json.Valid(body):
		return errors.New("the body is not JSON, or nested too deep")
	case body[skipSpace(body, 0)] != '{':
		return errors.New("the body is no JSON object")
	case !utf8.Valid(body):
		return errors.New("the body is not in UTF-8")
	}
	return nil
}

// find finds members of an object that is JSON.
func find(object []byte, names ...string) (map[string]member, error) {
	return pick(func(yield func(member) bool) {
		for w := walkObject(object); w.next(); {
			if !yield(member{name: string(w.key), value: w.value, start: w.start, end: w.end}) {
				return
			}
		}
	}, names)
}

// pick picks members of an object by their names.
func pick(members iter.Seq[member], names []string) (map[string]member, error) {
	found := map[string]member{}
	for m := range members {
		if strings.ContainsAny(m.name, "\x00\uFFFD") {
			return nil, errors.New("the body has a member with a character in its name that is none")
		}
		at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, m.name) })
		if at < 0 {
			continue
		}
		name := names[at]
		if m.name != name {
			return nil, fmt.Errorf("the body has the member %q, which some servers take for %s", m.name, name)
		}
		if _, ok := found[name]; ok {
			return nil, fmt.Errorf("the body has the member %s twice", name)
		}
		found[name] = m
	}
	return found, nil
}

// text reads a member that is text.
func (m member) text() (string, error) {
	var s string
	if m.value[0] != '"' || json.Unmarshal(m.value, &s) != nil {
		return "", fmt.Errorf("the member %s of the body is not text", m.name)
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
