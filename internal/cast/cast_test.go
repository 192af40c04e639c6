package cast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/cast"
)

func read(t *testing.T, text string) *cast.Recording {
	t.Helper()
	r, err := cast.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func frames(t *testing.T, r *cast.Recording, from, count int) []cast.Frame {
	t.Helper()
	f, err := r.Frames(t.Context(), from, count)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// lines are the texts of a frame's rows.
func lines(f cast.Frame) string {
	texts := make([]string, 0, len(f.Rows))
	for _, row := range f.Rows {
		text := ""
		for _, run := range row {
			text += run.Text
		}
		texts = append(texts, text)
	}
	return strings.TrimRight(strings.Join(texts, "\n"), "\n")
}

const second = `{"version": 2, "width": 20, "height": 3, "timestamp": 1}
[0.1, "o", "$ ls\r\n"]
[0.12, "o", "\u001b[31mred\u001b[0m and \u001b[1;38;2;0;0;255mblue\u001b[0m"]
[1.5, "i", "q"]
[2.0, "o", "\u001b[2J\u001b[Hé 漢字 done"]
`

// TestFrames: what is written at once is one frame, with its colours.
func TestFrames(t *testing.T) {
	t.Parallel()
	r := read(t, second)
	if r.Len() != 2 || r.Columns != 20 || r.Rows != 3 || r.Seconds != 2 || r.Problem != "" {
		t.Fatalf("got %d frames, %+v", r.Len(), r)
	}
	all := frames(t, r, 0, 10)
	if len(all) != 2 || lines(all[0]) != "$ ls\nred and blue" || lines(all[1]) != "é 漢字 done" || all[1].At != 2 {
		t.Errorf("got %+v", all)
	}
	row := all[0].Rows[1]
	if len(row) != 3 || row[0].Fore != 1 || row[1].Fore != -1 || !row[2].Bold || row[2].Fore != 12 && row[2].Fore != 4 {
		t.Errorf("got %+v", row)
	}
	if last := frames(t, r, 1, 1); len(last) != 1 || lines(last[0]) != lines(all[1]) {
		t.Errorf("alone the last frame is %+v", last)
	}
	if behind := frames(t, r, 2, 5); len(behind) != 0 {
		t.Errorf("behind the end is %+v", behind)
	}
	for at, want := range map[float64]int{0: 0, 0.1: 0, 1.9: 0, 2: 1, 99: 1} {
		if got := r.FrameAt(at); got != want {
			t.Errorf("after %v s frame %d, want %d", at, got, want)
		}
	}
}

// TestVersion3: times are since the event before, and there are comments.
func TestVersion3(t *testing.T) {
	t.Parallel()
	r := read(t, `{"version":3,"term":{"cols":10,"rows":2}}
# a comment
[1.0, "o", "one"]
[0.5, "r", "30x4"]
[1.0, "o", " and everything"]
[0.1, "x", "0"]
`)
	all := frames(t, r, 0, 10)
	if len(all) != 3 || all[1].At != 1.5 || all[2].At != 2.5 || len(all[0].Rows) != 2 || len(all[1].Rows) != 4 || lines(all[2]) != "one and everything" {
		t.Errorf("got %+v", all)
	}
}

// TestBroken: what was recorded before it breaks is shown.
func TestBroken(t *testing.T) {
	t.Parallel()
	r := read(t, second+`[3.0, "o", "cut of`)
	if r.Len() != 2 || !strings.Contains(r.Problem, "line 6") {
		t.Errorf("%d frames, %q", r.Len(), r.Problem)
	}
	for _, text := range []string{"", "\n", "hello", `{"version": 1}`, `[1]`, `{"version": 2`} {
		if _, err := cast.Read(strings.NewReader(text)); !errors.Is(err, cast.ErrNoRecording) {
			t.Errorf("%q: %v", text, err)
		}
	}
	huge := read(t, `{"version": 2, "width": 1000000000, "height": -5}`+"\n"+`[0, "r", "999999999x999999999"]`+"\n"+`[1, "o", "x"]`+"\n"+`[NaN, "o", "y"]`)
	if f := frames(t, huge, 0, 9); len(f) != 2 || len(f[0].Rows) != 200 || huge.Problem == "" {
		t.Errorf("got %d frames, %q", len(f), huge.Problem)
	}
}

// TestAsked: a terminal that is asked for something does not wait until somebody hears the
// answer.
func TestAsked(t *testing.T) {
	t.Parallel()
	r := read(t, `{"version": 2, "width": 20, "height": 3}
[0, "o", "\u001b[c\u001b[>c\u001b[6n\u001b[5n\u001b]10;?\u0007\u001b]11;?\u0007\u001b[?2026$pstill here"]
`)
	if f := frames(t, r, 0, 1); lines(f[0]) != "still here" {
		t.Errorf("got %q", lines(f[0]))
	}
}

// TestMuchWork: drawing ends with its context.
func TestMuchWork(t *testing.T) {
	t.Parallel()
	text := `{"version": 2, "width": 500, "height": 200}` + "\n" + fmt.Sprintf(`[0, "o", "x%s"]`, strings.Repeat(`\u001b[65535b`, 100_000))
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := read(t, text).Frames(ctx, 0, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// FuzzFrames: whatever is recorded, it is drawn or refused.
func FuzzFrames(f *testing.F) {
	f.Add(second)
	f.Add(`{"version":3,"term":{"cols":10,"rows":2}}` + "\n" + `[0.5, "r", "30x4"]` + "\n" + `[1, "o", "\u001b[?1049h\u001b[5;5Hx\u001b[3L\u001b[9999@"]`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := cast.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		all, err := r.Frames(ctx, 0, 5)
		if err != nil {
			return
		}
		for _, frame := range all {
			if len(frame.Rows) < 1 || len(frame.Rows) > 200 {
				t.Errorf("%d rows", len(frame.Rows))
			}
		}
	})
}
