package yaml11_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/value"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	doc, err := value.Decode([]byte(`{"services":{"main":{"command":["sh","-c","sleep infinity"],"ports":["22:22","80:80"],"on":"yes",
		"n":null,"empty":{},"list":[],"f":1e20,"i":10,"text":"a\nb\n","date":"2024-01-02","b":true,"s":"","<<":"<<","x":"1.5","o":"010"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml11.Encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	want := `services:
  main:
    command:
    - sh
    - -c
    - sleep infinity
    ports:
    - '22:22'
    - 80:80
    'on': 'yes'
    n: null
    empty: {}
    list: []
    f: 1.0e+20
    i: 10
    text: |
      a
      b
    date: '2024-01-02'
    b: true
    s: ''
    '<<': '<<'
    x: '1.5'
    o: '010'
`
	if string(out) != want {
		t.Errorf("got\n%s", out)
	}
}

func TestEncodedStringsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[-+0-9.:eE_xob~<= \n#'"&*!|>%@{}\[\],?a-f]{0,8}`), rapid.SampledFrom([]string{
			"yes", "No", "null", "~", "1:30", ".inf", "2024-01-02", "=", "<<", "---", "...", "a: b", " lead", "trail ", "\ttab",
		})).Draw(t, "text")
		doc := &value.Object{}
		doc.Set(text, value.List{value.Str(text)})
		out, err := yaml11.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		back, err := yaml11.Decode(out)
		if err != nil || value.Repr(back) != value.Repr(doc) {
			t.Errorf("%q is written\n%s\nand reads as %v, %v", text, out, back, err)
		}
	})
}
