package runtimevalues_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/proctor-run/proctor/cube/internal/runtimevalues"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

func TestFrozenValues(t *testing.T) {
	t.Parallel()
	v := &runtimevalues.Values{}
	data := typed.Pairs("n", 1)
	if err := errors.Join(v.Set("url", "http://x"), v.Set("data", data)); err != nil {
		t.Fatal(err)
	}
	data.Set("n", value.Str("changed by whoever set it"))
	v.Freeze()
	if err := v.Set("late", 1); !errors.Is(err, runtimevalues.ErrFrozen) {
		t.Errorf("set when frozen: %v", err)
	}
	if got := v.Violations(); !slices.Equal(got, []string{"late"}) {
		t.Errorf("violations %v", got)
	}
	if got := v.Keys(); !slices.Equal(got, []string{"url", "data"}) {
		t.Errorf("keys %v", got)
	}
	for range 2 { // what is handed out is a copy
		got, _ := v.Get("data")
		if text := value.Repr(got.(value.Value)); text != "{'n': 1}" {
			t.Errorf("data is %s", text)
		}
		got.(*value.Object).Set("n", value.Str("changed by a reader"))
	}
	if doc, err := v.Document(); err != nil || doc.Len() != 2 {
		t.Errorf("document of %d entries, %v", doc.Len(), err)
	}
}

func TestLiveValues(t *testing.T) {
	t.Parallel()
	v, live := &runtimevalues.Values{}, &struct{ n int }{}
	if err := v.Set("client", live); err != nil {
		t.Fatal(err)
	}
	if got, ok := v.Get("client"); !ok || got != live {
		t.Errorf("got %v", got)
	}
	if _, err := v.Document(); err == nil {
		t.Error("a live value is written")
	}
}

func TestNoValues(t *testing.T) {
	t.Parallel()
	var none *runtimevalues.Values
	if _, ok := none.Get("x"); ok || none.Keys() != nil || none.Violations() != nil {
		t.Error("nil holds something")
	}
}
