package wire

import "encoding/json"

// MembersOf returns members of an object as they stand there; those that it does not have are
// absent. Objects are refused as bodies are in [ModelOf]: what is not JSON, or has one of
// the members twice or in another case.
func MembersOf(object []byte, names ...string) (map[string]json.RawMessage, error) {
	found, err := membersOf(object, names...)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(found))
	for name, m := range found {
		out[name] = m.value
	}
	return out, nil
}
