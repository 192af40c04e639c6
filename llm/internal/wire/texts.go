package wire

import "encoding/json"

// Meant is a text that is part of a [Request] as it means, without quotes and escapes; empty
// for what is none. It must not be changed.
func Meant(text json.RawMessage) []byte { return inside(text) }

// Texts goes through the texts in the body, also those that are deep inside, in one pass.
//
// on is called for each text that is a value: path are the names of the members that it is
// in, from the outside, as they mean; lists have no name. The text is as it stands there, see
// [Meant]. skip is asked before a member is gone into, and tells whether to pass over all
// that is in it. Neither may keep the path. on ends the way by returning false.
func (r *Request) Texts(skip func(path [][]byte) bool, on func(path [][]byte, text json.RawMessage) bool) {
	var (
		path    [][]byte
		objects []bool // of what is open: whether it is an object
		named   bool   // the value that comes has its name at the end of the path
	)
	b := r.body
	inObject := func() bool { return len(objects) > 0 && objects[len(objects)-1] }
	// done takes the name of the value that ended off the path.
	done := func() {
		if inObject() && len(path) > 0 {
			path = path[:len(path)-1]
		}
		named = false
	}
	for i := 0; i < len(b); {
		switch b[i] {
		case '"':
			end := skipString(b, i)
			if end < 0 {
				return
			}
			text := b[i:end]
			i = end
			if !inObject() || named {
				if !on(path, text) {
					return
				}
				done()
				continue
			}
			path, named = append(path, inside(text)), true
			i = skipSpace(b, skipSpace(b, i)+1) // the colon
			if skip(path) {
				if i = skipValue(b, i); i < 0 {
					return
				}
				done()
			}
		case '{', '[':
			objects, named = append(objects, b[i] == '{'), false
			i++
		case '}', ']':
			if len(objects) == 0 {
				return
			}
			objects = objects[:len(objects)-1]
			done()
			i++
		case ' ', '\n', '\r', '\t', ',', ':':
			i++
		default: // a number, or a word
			if i = skipValue(b, i); i < 0 {
				return
			}
			done()
		}
	}
}
