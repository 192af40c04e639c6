package wire_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm/internal/wire"
)

// textsOf are the texts of a body with the names that lead to them.
func textsOf(t *testing.T, body []byte, without string) (out []string, ok bool) {
	t.Helper()
	r, err := wire.ReadRequest(body)
	if err != nil {
		return nil, false
	}
	r.Texts(
		func(path [][]byte) bool { return without != "" && string(path[len(path)-1]) == without },
		func(path [][]byte, text json.RawMessage) bool {
			out = append(out, fmt.Sprintf("%q %q", path, strings.ToValidUTF8(string(wire.Meant(text)), "\uFFFD")))
			return true
		})
	return out, true
}

func TestTextsAreFoundWhereverTheyAre(t *testing.T) {
	t.Parallel()
	body := ` { "a" : "b" , "\u0063":[1,"d",{"e":[["f\n"],null],"g":{}}, true ,"h"],"i":{"j":{"a":"k"}},"l":-1e2,"":"m"} `
	for _, c := range []struct {
		without string
		want    []string
	}{
		{"", []string{`["a"] "b"`, `["c"] "d"`, `["c" "e"] "f\n"`, `["c"] "h"`, `["i" "j" "a"] "k"`, `[""] "m"`}},
		{"a", []string{`["c"] "d"`, `["c" "e"] "f\n"`, `["c"] "h"`, `[""] "m"`}},
		{"c", []string{`["a"] "b"`, `["i" "j" "a"] "k"`, `[""] "m"`}},
		{"e", []string{`["a"] "b"`, `["c"] "d"`, `["c"] "h"`, `["i" "j" "a"] "k"`, `[""] "m"`}},
		{"i", []string{`["a"] "b"`, `["c"] "d"`, `["c" "e"] "f\n"`, `["c"] "h"`, `[""] "m"`}},
		{"l", []string{`["a"] "b"`, `["c"] "d"`, `["c" "e"] "f\n"`, `["c"] "h"`, `["i" "j" "a"] "k"`, `[""] "m"`}},
	} {
		if got, _ := textsOf(t, []byte(body), c.without); !reflect.DeepEqual(got, c.want) {
			t.Errorf("without %q: got %q", c.without, got)
		}
	}
}

// decoded are the texts as encoding/json finds them.
func decoded(d *json.Decoder, path []string, out *[]string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case string:
		*out = append(*out, fmt.Sprintf("%q %q", path, v))
	case json.Delim:
		for d.More() {
			in := path
			if v == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				in = append(slices.Clone(path), name.(string))
			}
			if err := decoded(d, in, out); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// The texts are those that encoding/json finds, with the same names.
func FuzzTexts(f *testing.F) {
	f.Add([]byte(` { "a" : "b" , "\u0063":[1,"d",{"e":[["f\n"],null],"g":{}}, true ,"h"],"i":{"a":"\ud800"}} `))
	f.Add([]byte(`{"a":[[[]]],"a":{"":{"":[{"":"\\\""}]}},"b":"` + "\u2028" + `"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := textsOf(t, body, "")
		if !ok {
			return
		}
		var want []string
		if err := decoded(json.NewDecoder(strings.NewReader(string(body))), nil, &want); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", body, got, want)
		}
	})
}
