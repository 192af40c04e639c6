package need

import "testing"

func TestListed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list, name string
		want       bool
	}{
		{"", "root", false},
		{"root", "root", true},
		{"runc,root", "root", true},
		{"runc", "root", false},
		{"all", "root", true},
		{"all,-patience", "root", true},
		{"all,-patience", "patience", false},
		{"-patience,all", "patience", false},
	} {
		if got := listed(c.list, c.name); got != c.want {
			t.Errorf("listed(%q, %q) = %v", c.list, c.name, got)
		}
	}
}
