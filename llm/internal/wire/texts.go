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
	w := texts{body: r.body, skip: skip, on: on}
	for i := 0; i >= 0 && i < len(r.body); {
		i = w.next(i)
	}
}

// texts is where the way through a body is.
type texts struct {
	body []byte
	skip func(path [][]byte) bool
	on   func(path [][]byte, text json.RawMessage) bool

	path    [][]byte
	objects []bool // of what is open: whether it is an object
	named   bool   // the value that comes has its name at the end of the path
}

// next takes what begins at i, and returns where that ends; -1 at the end of the way.
func (w *texts) next(i int) int {
	switch w.body[i] {
	case ' ', '\n', '\r', '\t', ',', ':':
		return i + 1
	case '"':
		return w.text(i)
	case '{', '[':
		w.objects, w.named = append(w.objects, w.body[i] == '{'), false
		return i + 1
	case '}', ']':
		if len(w.objects) == 0 {
			return -1
		}
		w.objects = w.objects[:len(w.objects)-1]
		w.done()
		return i + 1
	}
	return w.pass(i) // a number, or a word
}

// text takes a text: a value, or the name of one.
func (w *texts) text(i int) int {
	end := skipString(w.body, i)
	if end < 0 {
		return -1
	}
	text := w.body[i:end]
	if !w.inObject() || w.named {
		if !w.on(w.path, text) {
			return -1
		}
		w.done()
		return end
	}
	w.path, w.named = append(w.path, inside(text)), true
	value := skipSpace(w.body, skipSpace(w.body, end)+1) // behind the colon
	if w.skip(w.path) {
		return w.pass(value)
	}
	return value
}

// pass passes over a value.
func (w *texts) pass(i int) int {
	end := skipValue(w.body, i)
	w.done()
	return end
}

func (w *texts) inObject() bool { return len(w.objects) > 0 && w.objects[len(w.objects)-1] }

// done takes the name of the value that ended off the path.
func (w *texts) done() {
	if w.inObject() && len(w.path) > 0 {
		w.path = w.path[:len(w.path)-1]
	}
	w.named = false
}
