package console_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/console"
)

func TestDetached(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	d := console.Detach(&out)
	want := ""
	for i := range 100 {
		line := fmt.Sprintln(i)
		want += line
		if n, err := d.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	d.Close(time.Minute)
	_, _ = d.Write([]byte("late\n"))
	d.Close(time.Minute)
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

// TestDetachedFromNobody: a pipe that nobody reads holds up neither writes nor the end.
func TestDetachedFromNobody(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	d := console.Detach(w)
	for range 10_000 {
		_, _ = d.Write([]byte("a line\n"))
	}
	d.Close(time.Millisecond)
	_ = r.Close() // which ends the goroutine
}
