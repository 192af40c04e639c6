package feed

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// gated is a delivery that waits for leave, and remembers what it got.
type gated struct {
	begun, leave chan struct{}
	got          []string
}

func (g *gated) deliver(_ context.Context, lines [][]byte) error {
	g.begun <- struct{}{}
	<-g.leave
	for _, line := range lines {
		g.got = append(g.got, string(line))
	}
	return nil
}

func (g *gated) whole() bool { return true }

// TestWhatIsGivenUp: live output before logs, logs before progress, of each the oldest
// first; what stays keeps its order.
func TestWhatIsGivenUp(t *testing.T) {
	t.Parallel()
	fill := func(c class, name string, n int) (all []item) {
		for range n {
			all = append(all, item{c, [][]byte{[]byte(name)}})
		}
		return all
	}
	one := func(c class, name string) []item { return fill(c, name, 1) }
	big := strings.Repeat("x", maxBytes/2)
	for _, c := range []struct {
		name  string
		items [][]item
		want  []string
		lost  [3]int
	}{
		{
			"the oldest live output",
			[][]item{one(classDelta, "d1"), one(classLog, "l"), one(classDelta, "d2"), fill(classProgress, "p", maxItems-2)},
			append([]string{"l", "d2"}, slices.Repeat([]string{"p"}, maxItems-2)...),
			[3]int{classDelta: 1},
		},
		{
			"live output that comes last",
			[][]item{fill(classLog, "l", maxItems), one(classDelta, "d")},
			slices.Repeat([]string{"l"}, maxItems),
			[3]int{classDelta: 1},
		},
		{
			"logs, when there is no live output",
			[][]item{one(classProgress, "p1"), one(classLog, "l1"), one(classLog, "l2"), fill(classProgress, "p", maxItems-2)},
			append([]string{"p1", "l2"}, slices.Repeat([]string{"p"}, maxItems-2)...),
			[3]int{classLog: 1},
		},
		{
			"progress, when there is nothing else",
			[][]item{one(classProgress, "p1"), fill(classProgress, "p", maxItems)},
			slices.Repeat([]string{"p"}, maxItems),
			[3]int{classProgress: 1},
		},
		{
			"bytes",
			[][]item{one(classLog, big), one(classDelta, big), one(classProgress, "p")},
			[]string{big, "p"},
			[3]int{classDelta: 1},
		},
		{
			"all events of an item",
			[][]item{{{classLog, [][]byte{[]byte("l1"), []byte("l2")}}}, fill(classProgress, "p", maxItems)},
			slices.Repeat([]string{"p"}, maxItems),
			[3]int{classLog: 2},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &gated{begun: make(chan struct{}, maxItems+1), leave: make(chan struct{})}
			var warned warnings
			f := &Feed{redact: func(text string) string { return text }, notices: newNotices(warned.add)}
			f.logs = newSink("x", g, f)
			f.logs.push(classProgress, []byte("first"))
			<-g.begun // so that all that follows waits
			for _, items := range c.items {
				for _, it := range items {
					f.logs.push(it.class, it.lines...)
				}
			}
			if f.logs.lost != c.lost {
				t.Errorf("lost %v, want %v", f.logs.lost, c.lost)
			}
			close(g.leave)
			f.Close(t.Context())
			if want := append([]string{"first"}, c.want...); !slices.Equal(g.got, want) {
				t.Errorf("got %.100q, want %.100q", g.got, want)
			}
			if all := warned.all(); len(all) != 1 || !strings.Contains(all[0], "not sent") {
				t.Errorf("warnings: %q", all)
			}
		})
	}
}
