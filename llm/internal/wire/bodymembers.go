package wire

import (
	"encoding/json"
	"iter"
)

// MembersOf returns members of an object that is part of a [Request], as they stand there;
// those that it does not have are absent. One that is no object, or that has one of the
// members twice or in another case, is refused.
func MembersOf(object json.RawMessage, names ...string) (map[string]json.RawMessage, error) {
	if !isObject(object) {
		return nil, errNoObject
	}
	found, err := find(object, names...)
	return values(found), err
}

// Elements goes through the elements of a list that is part of a [Request]. There are none
// where it is no list.
func Elements(list json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for w := walkList(list); w.next(); {
			if !yield(w.value) {
				return
			}
		}
	}
}

// Names goes through the names of the members of an object that is part of a [Request], as
// they mean. There are none where it is no object.
func Names(object json.RawMessage) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := walkObject(object); w.next(); {
			if !yield(string(w.key)) {
				return
			}
		}
	}
}

func values(found map[string]member) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(found))
	for name, m := range found {
		out[name] = m.value
	}
	return out
}
