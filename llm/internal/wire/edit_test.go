package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/llm/internal/wire"
)

func TestModelIsReadAsEveryServerReadsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, model string
		stream      bool
		err         string
	}{
		{`{"model":"a","stream":true}`, "a", true, ""},
		{` { "stream" : false , "model" : "a\u0062\/c" } `, "ab/c", false, ""},
		{`{"\u006dodel":"a","stream":null}`, "a", false, ""},
		{`{"messages":[{"model":"x","stream":true}]}`, "", false, ""},
		{`{"model":""}`, "", false, ""},
		{`{}`, "", false, ""},
		{`{"model":"a","model":"b"}`, "", false, "the body has the member model twice"},
		{`{"model":"a","mod\u0065l":"a"}`, "", false, "the body has the member model twice"},
		{`{"model":"a","MODEL":"b"}`, "", false, `the body has the member "MODEL", which some servers take for model`},
		{`{"model":"a","Stream":true}`, "", false, `the body has the member "Stream", which some servers take for stream`},
		{`{"model":null}`, "", false, "the member model of the body is not text"},
		{`{"model":["a"]}`, "", false, "the member model of the body is not text"},
		{`{"model":"a\ud800"}`, "", false, "the member model of the body has a character in it that is none"},
		{"{\"model\":\"a\xff\"}", "", false, "the body is not in UTF-8"},
		{"{\"model\xff\":\"b\",\"model\":\"a\"}", "", false, "the body is not in UTF-8"},
		{`{"model":"a","model\u0000":"b"}`, "", false, "the body has a member with a character in its name that is none"},
		{"\xef\xbb\xbf{\"model\":\"a\"}", "", false, "the body is not JSON, or nested too deep"},
		{`{"model":"a"` + strings.Repeat(`,"x":1`, 1000) + `}`, "", false, "the body has more than 1000 members"},
		{`{"model":"a","stream":1}`, "", false, "the member stream of the body is neither true nor false"},
		{`{"model":"a","stream":"true"}`, "", false, "the member stream of the body is neither true nor false"},
		{`["model"]`, "", false, "the body is no JSON object"},
		{`"model"`, "", false, "the body is no JSON object"},
		{`{"model":"a"} {}`, "", false, "the body is not JSON, or nested too deep"},
		{`{"model":"a",}`, "", false, "the body is not JSON, or nested too deep"},
		{``, "", false, "the body is not JSON, or nested too deep"},
		{`{"model":"a","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, "", false, "the body is not JSON, or nested too deep"},
		{`{"x":"` + strings.Repeat("x", wire.MaxBody) + `"}`, "", false, "the body has more than 67108864 bytes"},
	} {
		model, stream, err := modelOf([]byte(c.body))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != c.err || err == nil && (model != c.model || stream != c.stream) {
			t.Errorf("%.60s: %q, %v, %q", c.body, model, stream, text)
		}
	}
}

// What no encoder would write again as it was.
const odd = `"x" : [ 1.0, 1e2, 12345678901234567890, "\ud800\/\u00e4", "<&>" ], "x":{ "model" : "inner" }`

func TestOnlyTheModelIsSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{`{"model":"a"}`, `{"model":"<b>"}`},
		{` { ` + odd + ` , "model" : "a\u0062" , "y":1 } `, ` { ` + odd + ` , "model" : "<b>" , "y":1 } `},
		{`{ ` + odd + `}`, `{"model":"<b>", ` + odd + `}`},
		{`{"\u006dodel":"a"}`, `{"\u006dodel":"<b>"}`},
		{`{"model":null}`, `{"model":"<b>"}`},
		{` { } `, ` {"model":"<b>" } `},
	} {
		got, err := setModel([]byte(c.body), "<b>")
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.body, got, err)
		}
	}
	for _, body := range []string{``, `[]`, `{"model":"a","model":"b"}`, `{"Model":"a"}`} {
		if got, err := setModel([]byte(body), "b"); err == nil {
			t.Errorf("%s: %s", body, got)
		}
	}
}

func TestUsageIsAskedForWhereItWasNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body, want string
		asked      bool
	}{
		{`{` + odd + `}`, `{` + odd + `}`, false},
		{`{"stream":false,"stream_options":7}`, `{"stream":false,"stream_options":7}`, false},
		{`{"stream":null}`, `{"stream":null}`, false},
		{`{"stream":true}`, `{"stream":true,"stream_options":{"include_usage":true}}`, true},
		{`{"stream": true, ` + odd + ` } `, `{"stream": true,"stream_options":{"include_usage":true}, ` + odd + ` } `, true},
		{`{"stream_options":null,"stream":true}`, `{"stream_options":{"include_usage":true},"stream":true}`, true},
		{`{"stream_options":{ },"stream":true}`, `{"stream_options":{"include_usage":true },"stream":true}`, true},
		{
			`{"stream_options": {"continuous_usage_stats":true , "n":1.0},"stream":true}`,
			`{"stream_options": {"include_usage":true,"continuous_usage_stats":true , "n":1.0},"stream":true}`, true,
		},
		{`{"stream":true,"stream_options":{"a":1, "include_usage" : false }}`, `{"stream":true,"stream_options":{"a":1, "include_usage" : true }}`, true},
		{`{"stream":true,"stream_options":{"include_usage":null}}`, `{"stream":true,"stream_options":{"include_usage":true}}`, true},
		{`{"stream":true, "stream_options":{"include_usage":true }}`, `{"stream":true, "stream_options":{"include_usage":true }}`, false},
	} {
		got, asked, err := askForUsage([]byte(c.body))
		if err != nil || string(got) != c.want || asked != c.asked {
			t.Errorf("%s: %s, %v, %v", c.body, got, asked, err)
		}
	}
	for _, body := range []string{
		``, `{"stream":true`, `{"stream":true,"stream":false}`, `{"stream":1}`, `{"STREAM":true}`,
		`{"stream":true,"stream_options":[]}`, `{"stream":true,"stream_options":{"include_usage":1}}`,
		`{"stream":true,"stream_options":{"include_usage":false,"include_usage":false}}`,
		`{"stream":true,"stream_options":{"Include_Usage":false}}`, `{"stream":true,"stream_options":{},"stream_options":{}}`,
	} {
		if got, _, err := askForUsage([]byte(body)); err == nil {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// A model that is set is read again, and nothing else has changed.
func FuzzSetModel(f *testing.F) {
	f.Add([]byte(`{"model":"a","x":[1.0]}`), "b")
	f.Add([]byte(` {"messages":[{"model":"\ud800"}]}`), "\xff")
	f.Add([]byte(`{"mod\u0065l":null}`), `"`)
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		if model == "" {
			return // which leaves the body's
		}
		before := string(body)
		got, err := setModel(body, model)
		if string(body) != before {
			t.Error("the given body has changed")
		}
		if err != nil {
			return
		}
		was, is := raw(t, body), raw(t, got)
		var name string
		if err := json.Unmarshal(is["model"], &name); err != nil || name != strings.ToValidUTF8(model, "\uFFFD") {
			t.Errorf("%s: model %q, %v", got, name, err)
		}
		delete(was, "model")
		delete(is, "model")
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s became %s", body, got)
		}
		again, err := setModel(got, model)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s became %s, %v", got, again, err)
		}
	})
}

// After asking nothing is left to ask, and nothing else has changed.
func FuzzAskForUsage(f *testing.F) {
	f.Add([]byte(`{"stream":true,"stream_options":{"include_usage":false,"a":1}}`))
	f.Add([]byte(`{"stream":true,"stream_options":null}`))
	f.Add([]byte(`{"stream":true,"x":1e400}`))
	f.Add([]byte(`{"stream" : true}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		got, asked, err := askForUsage(body)
		if string(body) != before {
			t.Error("the given body has changed")
		}
		if err != nil {
			return
		}
		if !asked && string(got) != before {
			t.Errorf("%s became %s", body, got)
		}
		again, asked, err := askForUsage(got)
		if err != nil || asked || string(again) != string(got) {
			t.Errorf("%s became %s, %v, %v", got, again, asked, err)
		}
		was, is := raw(t, body), raw(t, got)
		delete(was, "stream_options")
		delete(is, "stream_options")
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s became %s", body, got)
		}
	})
}

func raw(t *testing.T, body []byte) map[string]json.RawMessage {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// modelOf reads the model of a body, and whether it asks for a stream without its usage.
func modelOf(body []byte) (model string, stream bool, err error) {
	r, err := wire.ReadRequest(body)
	if err != nil {
		return "", false, err
	}
	if model, err = r.Model(); err != nil {
		return "", false, err
	}
	_, stream, err = r.Edit("", true)
	return model, stream, err
}

func setModel(body []byte, model string) ([]byte, error) {
	r, err := wire.ReadRequest(body)
	if err != nil {
		return nil, err
	}
	edited, _, err := r.Edit(model, false)
	return edited, err
}

func askForUsage(body []byte) (edited []byte, asked bool, err error) {
	r, err := wire.ReadRequest(body)
	if err != nil {
		return nil, false, err
	}
	return r.Edit("", true)
}
