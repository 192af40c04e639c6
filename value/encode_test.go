package value_test

import (
	"math"
	"testing"

	"github.com/proctor-run/proctor/value"
)

// sample holds every kind of value, and text that the layouts treat differently.
func sample() value.Value {
	o := &value.Object{}
	o.Set("b", value.List{value.NewInt(1), value.Float(1e-5), value.Float(math.NaN()), nil})
	o.Set("a\x7fé😀\u2028", value.Str("\"\\/\b\f\n\r\t\x01<>&\xed\xa0\x80"))
	inner := &value.Object{}
	inner.Set("", value.List{})
	inner.Set("e", &value.Object{})
	o.Set("a", inner)
	o.Set("c", value.List{value.Bool(true), value.Bool(false), value.Null{}, value.Float(math.Inf(-1))})
	return o
}

func TestLayouts(t *testing.T) {
	t.Parallel()
	dumps := func(o value.DumpsOptions) string { return string(value.AppendDumps(nil, sample(), o)) }
	for name, c := range map[string]struct{ got, want string }{
		"pydantic": {
			string(value.AppendPydantic(nil, sample(), 0)),
			`{"b":[1,0.00001,null,null],"a` + "\x7fé😀\u2028" + `":"\"\\/\b\f\n\r\t\u0001<>&` + "\ufffd\ufffd\ufffd" +
				`","a":{"":[],"e":{}},"c":[true,false,null,null]}`,
		},
		"pydantic, indented": {
			string(value.AppendPydantic([]byte("> "), value.List{value.NewInt(1), sampleInner()}, 4)),
			"> [\n    1,\n    {\n        \"x\": [],\n        \"y\": [\n            {}\n        ]\n    }\n]",
		},
		"dumps": {
			dumps(value.DumpsOptions{}),
			`{"b": [1, 1e-05, NaN, null], "a\u007f\u00e9\ud83d\ude00\u2028": "\"\\/\b\f\n\r\t\u0001<>&\ud800", ` +
				`"a": {"": [], "e": {}}, "c": [true, false, null, -Infinity]}`,
		},
		"dumps, compact and sorted": {
			dumps(value.DumpsOptions{ItemSeparator: ",", KeySeparator: ":", SortKeys: true}),
			`{"a":{"":[],"e":{}},"a\u007f\u00e9\ud83d\ude00\u2028":"\"\\/\b\f\n\r\t\u0001<>&\ud800",` +
				`"b":[1,1e-05,NaN,null],"c":[true,false,null,-Infinity]}`,
		},
		"dumps, Unicode": {
			dumps(value.DumpsOptions{Unicode: true}),
			`{"b": [1, 1e-05, NaN, null], "a` + "\x7fé😀\u2028" + `": "\"\\/\b\f\n\r\t\u0001<>&` + "\xed\xa0\x80" +
				`", "a": {"": [], "e": {}}, "c": [true, false, null, -Infinity]}`,
		},
		"dumps, indented": {
			string(value.AppendDumps(nil, value.List{value.NewInt(1), sampleInner()}, value.DumpsOptions{Indent: 2})),
			"[\n  1,\n  {\n    \"x\": [],\n    \"y\": [\n      {}\n    ]\n  }\n]",
		},
		"repr": {
			value.Repr(sample()),
			`{'b': [1, 1e-05, nan, None], 'a\x7fé😀\u2028': '"\\/\x08\x0c\n\r\t\x01<>&\ud800', ` +
				`'a': {'': [], 'e': {}}, 'c': [True, False, None, -inf]}`,
		},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, c.got, c.want)
		}
	}
}

func sampleInner() value.Value {
	o := value.NewObject(2)
	o.Set("x", value.List{})
	o.Set("y", value.List{&value.Object{}})
	return o
}

func TestBadTextIsReplaced(t *testing.T) {
	t.Parallel()
	v := value.Str("a\xffb\xed\xa0")
	if got := string(value.AppendPydantic(nil, v, 0)); got != "\"a\ufffdb\ufffd\ufffd\"" {
		t.Errorf("pydantic: got %q", got)
	}
	if got := string(value.AppendDumps(nil, v, value.DumpsOptions{})); got != `"a\ufffdb\ufffd\ufffd"` {
		t.Errorf("dumps: got %q", got)
	}
	if got := string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true})); got != "\"a\ufffdb\ufffd\ufffd\"" {
		t.Errorf("dumps, Unicode: got %q", got)
	}
}

func TestReprOfText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":             `''`,
		"it's":         `"it's"`,
		`say "x"`:      `'say "x"'`,
		`it's "x"`:     `'it\'s "x"'`,
		"\x00\x1b":     `'\x00\x1b'`,
		"\u00a0\u00ad": `'\xa0\xad'`,
		"\u0378\u200b": `'\u0378\u200b'`,
		"\U0010ffff":   `'\U0010ffff'`,
		"漢é":           `'漢é'`,
	} {
		if got := value.Repr(value.Str(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestHasSurrogate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": false, "plain": false, "\ud7ff\ue000": false, "\xed": false,
		"\xed\xa0\x80": true, "\ud7ffx\xed\xbf\xbf": true,
	} {
		if got := value.HasSurrogate(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
