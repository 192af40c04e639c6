package score

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

// finalOrder puts the trials of a finished job into the order in which its
// result lists them, for sums depend on it in the last bit. A job directory
// does not record that order; it follows from the lists of trials in a stored
// result (the document, or nil) as far as these go, and beyond them from when
// the trials started, which in a job that was never resumed is the order of
// the plan.
func finalOrder(records []scan.FileRecord, stored *value.Object) []scan.FileRecord {
	byStart := slices.Clone(records)
	slices.SortFunc(byStart, func(a, b scan.FileRecord) int {
		return cmp.Or(cmp.Compare(a.StartedAt, b.StartedAt), cmp.Compare(a.Dir, b.Dir))
	})
	g := newPrecedence(byStart)
	for _, group := range objects(at(stored, "stats", "evals")) {
		for _, values := range objects(at(group, "reward_stats")) {
			g.lists(values)
		}
		g.lists(at(group, "exception_stats"))
	}
	out := make([]scan.FileRecord, 0, len(records))
	for _, i := range g.sort() {
		out = append(out, byStart[i])
	}
	return out
}

// at walks down objects; what is not there is an empty one.
func at(obj *value.Object, path ...string) *value.Object {
	for _, key := range path {
		if obj == nil {
			break
		}
		v, _ := obj.Get(key)
		obj, _ = v.(*value.Object)
	}
	if obj == nil {
		return &value.Object{}
	}
	return obj
}

// objects returns the members that are objects.
func objects(obj *value.Object) []*value.Object {
	var out []*value.Object
	for _, v := range obj.All() {
		if o, ok := v.(*value.Object); ok {
			out = append(out, o)
		}
	}
	return out
}

// precedence is a graph of what must come before what. Nodes are positions in
// an order that is kept where nothing else is said.
type precedence struct {
	position map[string]int // of a trial, by name
	after    [][]int32
	waits    []int32 // how many must come before
}

func newPrecedence(records []scan.FileRecord) *precedence {
	g := &precedence{
		position: make(map[string]int, len(records)),
		after:    make([][]int32, len(records)),
		waits:    make([]int32, len(records)),
	}
	for i, r := range records {
		if _, taken := g.position[r.TrialName]; !taken {
			g.position[r.TrialName] = i
		}
	}
	return g
}

// lists takes an object of lists of trials: each list is in order, and so are
// the first trials of the lists. The key "nan" may stand in a file several
// times; only one of them is left, so it says nothing.
func (g *precedence) lists(obj *value.Object) {
	first := -1
	for key, v := range obj.All() {
		if key == "nan" {
			continue
		}
		list, _ := v.(value.List)
		previous := -1
		for _, item := range list {
			name, _ := item.(value.Str)
			i, known := g.position[string(name)]
			if !known {
				continue
			}
			if previous < 0 {
				g.edge(first, i)
				first = i
			}
			g.edge(previous, i)
			previous = i
		}
	}
}

func (g *precedence) edge(before, after int) {
	if before < 0 || before == after {
		return
	}
	g.after[before] = append(g.after[before], int32(after))
	g.waits[after]++
}

// sort returns all positions, each after those that must come before it and
// otherwise as early as possible. Positions that wait for each other come last.
func (g *precedence) sort() []int {
	var ready intHeap
	for i, n := range g.waits {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	heap.Init(&ready)
	out := make([]int, 0, len(g.waits))
	for ready.Len() > 0 {
		i := heap.Pop(&ready).(int)
		out = append(out, i)
		for _, next := range g.after[i] {
			if g.waits[next]--; g.waits[next] == 0 {
				heap.Push(&ready, int(next))
			}
		}
	}
	for i, n := range g.waits {
		if n > 0 {
			out = append(out, i)
		}
	}
	return out
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
