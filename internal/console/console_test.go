package console_test

import (
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

func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 3 << 19: "1.5 MiB", 5 << 30: "5.0 GiB"} {
		if got := console.Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
