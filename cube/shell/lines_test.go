package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// TestLineRangeVectors reads line arguments as models write them.
func TestLineRangeVectors(t *testing.T) {
	t.Parallel()
	v, err := value.Decode(vectors.File(t, "cube/bash_tool.json"))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := v.(*cube.Object).Get("cases")
	count := 0
	for _, item := range list.(cube.List) {
		c := item.(*cube.Object)
		if op, _ := c.Get("op"); op != cube.Value(cube.Str("parse_line_range")) {
			continue
		}
		count++
		start, _ := c.Get("line_start")
		end, _ := c.Get("line_end")
		first, last := lineRange(start, end)
		got, err := cube.ValueOf([]*int{first, last})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := c.Get("id")
		want, _ := c.Get("result")
		if diff := cmp.Diff(text(want), text(got)); diff != "" {
			t.Errorf("%v: range (-want +got):\n%s", id, diff)
		}
	}
	if count == 0 {
		t.Error("there is no case of parse_line_range")
	}
	t.Logf("%d cases", count)
}

func text(v cube.Value) string { return string(value.AppendPydantic(nil, v, 0)) }
