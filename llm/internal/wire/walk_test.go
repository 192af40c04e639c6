package wire

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextLen(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		`""`: 0, `"ab"`: 2, `"\n\"\\"`: 3, `"\u00e4"`: 2, `"\u20AC"`: 3, `"\ud83d\ude00"`: 4, `"ä"`: 2, `"\u004"`: 4, `"\`: 0, `"`: 0, ``: 0, `7`: 0, `null`: 0,
	} {
		if got := textLen([]byte(text)); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
}

// walked is what a walk finds.
func walked(w walk) (keys []string, values []string, whole bool) {
	for w.next() {
		keys, values = append(keys, string(w.key)), append(values, string(w.value))
		if string(w.text[w.start:w.end]) != string(w.value) {
			return nil, nil, false
		}
	}
	return keys, values, w.whole
}

func TestWalkEndsWhereTheTextIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":{`, `{"a":"\"`, `{"a" 1}`, `{a:1}`, `{"a":}`, `{"a":,}`, `[1}`, `"a"`,
	} {
		if _, _, whole := walked(walkObject([]byte(text))); whole {
			t.Errorf("%s is whole", text)
		}
	}
	if keys, _, whole := walked(walkObject([]byte(`["a"]`))); keys != nil || whole {
		t.Error("a list is an object")
	}
}

// A walk over JSON has what encoding/json has; over anything else it ends.
func FuzzWalk(f *testing.F) {
	for _, text := range []string{
		`{"a":1,"b\u0041":[{}],"c":{"d":"]}\"\\"} }`, `[1,"a",[[]],{"a":[]},null]`, `{"a":"\ud83d\ude00\ud800"}`, "[\"\xff\"]", `{}`, `[`, `{"a":1 "b":2}`, `"\u00"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, members, whole := walked(walkObject(data))
		_, elements, wholeList := walked(walkList(data))
		textLen(data)
		if !json.Valid(data) {
			return
		}
		var list []json.RawMessage
		var object map[string]json.RawMessage
		var text string
		if json.Unmarshal(data, &text) == nil {
			if n := textLen([]byte(strings.TrimSpace(string(data)))); n > int64(len(data)) || utf8.ValidString(text) && !strings.ContainsRune(text, utf8.RuneError) && n != int64(len(text)) && text != "" {
				t.Errorf("%s has %d bytes, not %d", data, n, len(text))
			}
		}
		if json.Unmarshal(data, &list) == nil && list != nil {
			want := make([]string, 0, len(list))
			for _, v := range list {
				want = append(want, string(v))
			}
			if !wholeList || !reflect.DeepEqual(append([]string{}, elements...), want) {
				t.Errorf("%s: %q, %v", data, elements, wholeList)
			}
		}
		if json.Unmarshal(data, &object) == nil && object != nil {
			got := map[string]json.RawMessage{}
			for i, key := range keys {
				got[strings.ToValidUTF8(key, "\uFFFD")] = json.RawMessage(members[i])
			}
			if utf8.Valid(data) && (!whole || !reflect.DeepEqual(got, object)) {
				t.Errorf("%s: %s, %v", data, got, whole)
			}
		}
	})
}
