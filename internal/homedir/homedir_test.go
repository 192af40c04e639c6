package homedir

import "testing"

func TestExpand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, home, want string }{
		{"~", "/home/a", "/home/a"}, {"~/x/y", "/home/a", "/home/a/x/y"}, {"~b/x", "/home/a", "~b/x"},
		{"~/x", "", "~/x"}, {"/x", "/home/a", "/x"}, {"x~", "/home/a", "x~"}, {"", "/home/a", ""},
	} {
		if got := Expand(c.path, c.home); got != c.want {
			t.Errorf("Expand(%q, %q) is %q, want %q", c.path, c.home, got, c.want)
		}
	}
}
