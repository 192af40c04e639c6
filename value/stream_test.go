package value_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/value"
)

// TestStreamIsAppendPydantic: in parts or at once, the text is the same.
func TestStreamIsAppendPydantic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		indent := rapid.SampledFrom([]int{0, 2, 4}).Draw(t, "indent")
		whole := &value.Object{}
		var got bytes.Buffer
		s := value.NewStream(&got, indent)
		for i := range rapid.IntRange(0, 4).Draw(t, "parts") {
			key := strings.Repeat("k", i+1)
			if rapid.Bool().Draw(t, "list") {
				items := rapid.SliceOfN(rapid.Custom(drawItem), 0, 5).Draw(t, "items")
				whole.Set(key, value.List(items))
				s.List(key, slices.Values(items))
				continue
			}
			part := &value.Object{}
			for j := range rapid.IntRange(0, 3).Draw(t, "members") {
				v := drawItem(t)
				whole.Set(key+strings.Repeat("m", j), v)
				part.Set(key+strings.Repeat("m", j), v)
			}
			s.Members(part)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if want := value.AppendPydantic(nil, whole, indent); got.String() != string(want) {
			t.Errorf("streamed\n%s\nwant\n%s", got.String(), want)
		}
	})
}

func drawItem(t *rapid.T) value.Value {
	return rapid.SampledFrom([]value.Value{
		nil, value.Null{}, value.NewInt(7), value.Float(1), value.List{}, &value.Object{}, value.Str("ü\n\""),
		value.Str(strings.Repeat("long", 10_000)), sample(), value.List{sampleInner(), value.List{value.Bool(true)}},
	}).Draw(t, "item")
}

type failing struct{ after int }

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestStreamStopsWhereTheWriterFails(t *testing.T) {
	t.Parallel()
	asked := 0
	s := value.NewStream(&failing{after: 100_000}, 4)
	s.List("items", func(yield func(value.Value) bool) {
		for yield(value.Str(strings.Repeat("x", 1000))) {
			asked++
		}
	})
	s.Members(sampleInner().(*value.Object)) //nolint:forcetypeassert // the sample is one
	if err := s.Close(); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
	if asked > 200 {
		t.Errorf("%d items were asked for", asked)
	}
}
