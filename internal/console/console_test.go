package console_test

import (
	"math"
	"testing"

	"github.com/proctor-run/proctor/internal/console"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		n          int
		what, want string
	}{
		{1, "process", "1 process"}, {2, "process", "2 processes"}, {0, "task", "0 tasks"},
		{14, "capability", "14 capabilities"}, {1, "capability", "1 capability"}, {3, "day", "3 days"},
	} {
		if got := console.Count(tt.n, tt.what); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	for s, want := range map[float64]string{0.25: "250ms", 61: "1m1s", -2: "-2s", 1e300: "2562047h47m16s", math.Inf(1): "2562047h47m16s"} {
		if got := console.Seconds(s); got != want {
			t.Errorf("%v s are %s, want %s", s, got, want)
		}
	}
	if got := console.Seconds(math.NaN()); got != "-" {
		t.Errorf("no number is %s", got)
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.0 GiB"} {
		if got := console.Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
