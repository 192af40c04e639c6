package value_test

import (
	"testing"

	"github.com/proctor-run/proctor/value"
)

func TestTextAndTruth(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]struct {
		text  string
		truth bool
	}{
		"null": {"None", false}, "true": {"True", true}, "false": {"False", false},
		"0": {"0", false}, "-7": {"-7", true}, "0.0": {"0.0", false}, "1e16": {"1e+16", true}, "NaN": {"nan", true},
		`""`: {"", false}, `"it's"`: {"it's", true}, "[]": {"[]", false}, `["a"]`: {"['a']", true},
		"{}": {"{}", false}, `{"k":null}`: {"{'k': None}", true},
	} {
		v, err := value.DecodeText(doc)
		if err != nil {
			t.Fatal(err)
		}
		if text, truth := value.Text(v), value.Truth(v); text != want.text || truth != want.truth {
			t.Errorf("%s: %q, %v; want %q, %v", doc, text, truth, want.text, want.truth)
		}
	}
	if value.Truth(nil) {
		t.Error("nil is true")
	}
}

func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	v, err := value.DecodeText(`{"a":[1,{"b":2}]}`)
	if err != nil {
		t.Fatal(err)
	}
	copied := value.Clone(v).(*value.Object)
	list, _ := copied.Get("a")
	list.(value.List)[0] = value.Str("changed")
	inner := list.(value.List)[1].(*value.Object)
	inner.Set("b", value.Null{})
	if got := value.Repr(v); got != "{'a': [1, {'b': 2}]}" {
		t.Errorf("the original became %s", got)
	}
	if n := (*value.Object)(nil).Clone().Len(); n != 0 {
		t.Errorf("a copy of nothing has %d members", n)
	}
}

func TestMapKeepsItsOrder(t *testing.T) {
	t.Parallel()
	var m value.Map[int]
	if _, ok := m.Get("a"); ok || m.Len() != 0 {
		t.Error("a zero map is not empty")
	}
	for i, k := range []string{"z", "a", "m"} {
		m.Set(k, i)
	}
	m.Set("z", 9)
	copied := m.Clone()
	copied.Set("new", 1)
	order := ""
	for k, v := range m.All() {
		order += k
		if got, ok := m.Get(k); !ok || got != v {
			t.Errorf("%s is %d, %v; want %d", k, got, ok, v)
		}
	}
	if order != "zam" || m.Len() != 3 || copied.Len() != 4 {
		t.Errorf("order %q, lengths %d and %d", order, m.Len(), copied.Len())
	}
}
