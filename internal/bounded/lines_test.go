package bounded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/bounded"
)

func TestLines(t *testing.T) {
	t.Parallel()
	mark := func(c bounded.Cut) []byte { return fmt.Appendf(nil, "cut %d %d\n", c.Lines, c.Bytes) }
	for _, c := range []struct {
		name, lines, want string
		limit             int64
	}{
		{"all fit", "a b c", "a b c", 6},
		{"the middle is left out", "a b c d e f g h", "a b c cut 2 4 f g h", 12},
		{"a long line is left out whole", "a bbbbbbbbbbbb c", "a cut 1 13 c", 8},
		{"nothing", "", "", 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l, err := bounded.CreateLines(dir, "log", c.limit, mark)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.FieldsSeq(c.lines) {
				l.Add([]byte(line + "\n"))
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l.Add([]byte("late\n"))
			if err := l.Close(); err != nil {
				t.Errorf("a second Close: %v", err)
			}
			data, err := os.ReadFile(filepath.Join(dir, "log"))
			got := strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", " ")
			if err != nil || got != c.want {
				t.Errorf("kept %q (%v), want %q", got, err, c.want)
			}
		})
	}
}
