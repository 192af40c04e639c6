package pep440_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/pep440"
)

// TestOrder compares every pair of a list in ascending order.
func TestOrder(t *testing.T) {
	t.Parallel()
	ordered := []string{
		"0.9", "1.0.dev1", "1.0.dev2", "1.0a1.dev3", "1.0a1", "1.0a2", "1.0b1", "1.0rc1", "1.0",
		"1.0+abc", "1.0+abc.5", "1.0+5", "1.0+5.1", "1.0.post1.dev2", "1.0.post1", "1.0.1", "1.1", "1.2", "1.10", "2", "10.0",
		"99999999999999999999999", "1!0.1",
	}
	for i, a := range ordered {
		for j, b := range ordered {
			v, ok := pep440.Parse(a)
			w, ok2 := pep440.Parse(b)
			if !ok || !ok2 {
				t.Fatalf("%q or %q is not read", a, b)
			}
			got := v.Compare(w)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q against %q: %d", a, b, got)
			}
		}
	}
}

func TestSameVersion(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"1.0", "1"}, {"1.0.0", "v1"}, {"1.0a1", "1.0-ALPHA.1"}, {"1.0rc1", "1.0_preview_1"}, {"1.0c1", "1.0rc1"},
		{"1.0-1", "1.0.post1"}, {"1.0r1", "1.0.rev1"}, {"1.0.post", "1.0.post0"}, {"1.0dev", "1.0.dev0"}, {"0!1", "1"},
		{" 1.0 ", "1.0"}, {"1.0+a-b_c", "1.0+a.b.c"}, {"01.00", "1.0"}, {"1.0a", "1.0a0"},
	} {
		v, ok := pep440.Parse(c[0])
		w, ok2 := pep440.Parse(c[1])
		if !ok || !ok2 || v.Compare(w) != 0 {
			t.Errorf("%q and %q: %v %v %d, want the same version", c[0], c[1], ok, ok2, v.Compare(w))
		}
	}
}

func TestNoVersion(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "head", "latest", "1.0-", "1..0", "1.0.x", "v", "2024-01-01", "1.0 beta gamma", "１.0", "1.0+"} {
		if _, ok := pep440.Parse(s); ok {
			t.Errorf("%q is read as a version", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1.0a1.post2.dev3+x.1", "1!2")
	f.Fuzz(func(t *testing.T, a, b string) {
		v, ok := pep440.Parse(a)
		w, ok2 := pep440.Parse(b)
		if !ok || !ok2 {
			return
		}
		if v.Compare(w) != -w.Compare(v) || v.Compare(v) != 0 {
			t.Errorf("%q and %q have no order", a, b)
		}
	})
}
