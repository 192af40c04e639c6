package cubetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

// maxLeaf is how many characters of a value a difference shows.
const maxLeaf = 120

// observationDiff tells what differs between two observations; "" when nothing
// does (CUBE, section 10.4).
func observationDiff(first, second *cube.Observation) (string, error) {
	a, err := cube.Dump(first)
	if err != nil {
		return "", err
	}
	b, err := cube.Dump(second)
	if err != nil {
		return "", err
	}
	var d differ
	d.compare("", a, b)
	if len(d.blocks) == 0 {
		return "", nil
	}
	return "Observation differences\n\n" + strings.Join(d.blocks, "\n\n"), nil
}

type differ struct{ blocks []string }

func (d *differ) report(path, first, second string) {
	d.blocks = append(d.blocks, fmt.Sprintf("%s\n  first:  %s\n  second: %s", path, first, second))
}

func (d *differ) compare(path string, a, b cube.Value) {
	if ao, ok := a.(*cube.Object); ok {
		if bo, ok := b.(*cube.Object); ok {
			d.objects(path, ao, bo)
			return
		}
	}
	if al, ok := a.(cube.List); ok {
		if bl, ok := b.(cube.List); ok {
			d.lists(path, al, bl)
			return
		}
	}
	if !same(a, b) {
		d.report(path, leaf(a), leaf(b))
	}
}

func (d *differ) objects(path string, a, b *cube.Object) {
	keys := map[string]bool{}
	for _, o := range []*cube.Object{a, b} {
		for k := range o.Keys() {
			keys[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		at := k
		if path != "" {
			at = path + "." + k
		}
		av, inA := a.Get(k)
		bv, inB := b.Get(k)
		switch {
		case !inA:
			d.report(at, "<missing>", leaf(bv))
		case !inB:
			d.report(at, leaf(av), "<missing>")
		default:
			d.compare(at, av, bv)
		}
	}
}

func (d *differ) lists(path string, a, b cube.List) {
	if len(a) != len(b) {
		d.report(path+".__len__", fmt.Sprintf("len=%d", len(a)), fmt.Sprintf("len=%d", len(b)))
	}
	for i := range min(len(a), len(b)) {
		d.compare(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
	}
}

// same is Python's == of leaves: 1, 1.0 and True are equal.
func same(a, b cube.Value) bool {
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			c, ordered := value.Compare(x, y)
			return ordered && c == 0
		}
	}
	return value.Repr(a) == value.Repr(b)
}

func number(v cube.Value) (value.Number, bool) {
	if b, ok := v.(cube.Bool); ok {
		if b {
			return value.NewInt(1), true
		}
		return value.NewInt(0), true
	}
	n, ok := v.(value.Number)
	return n, ok
}

func leaf(v cube.Value) string {
	switch v := v.(type) {
	case nil, cube.Null:
		return "null"
	case cube.Bool:
		if v {
			return "true"
		}
		return "false"
	case cube.Str:
		return cut(string(v))
	case cube.List, *cube.Object:
		return cut(string(value.AppendDumps(nil, v, value.DumpsOptions{SortKeys: true})))
	}
	return value.Repr(v)
}

func cut(s string) string {
	n := utf8.RuneCountInString(s)
	if n <= maxLeaf {
		return s
	}
	return string([]rune(s)[:maxLeaf]) + fmt.Sprintf("… (+%d chars)", n-maxLeaf)
}
