package main

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/proctor-run/proctor/report"
)

// walked is a trajectory of four steps: one long, one with all that can be hidden.
var walked = `{"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a", "version": "1", "model_name": "m"}, "steps": [
{"step_id": 1, "source": "user", "message": "Look at everything that is there. ` + strings.Repeat("Then look once more. ", 60) + `"},
{"step_id": 2, "source": "agent", "message": "I will look.", "reasoning_content": "Where is it?",
 "tool_calls": [{"tool_call_id": "c1", "function_name": "shell", "arguments": {"command": "ls -la"}}],
 "observation": {"results": [{"source_call_id": "c1", "content": "total 0"}]}},
{"step_id": 3, "source": "agent", "message": "Nothing is there."},
{"step_id": 4, "source": "agent", "message": "Done with everything."}]}`

// walking is a walker over a trajectory of the tests.
func walking(t *testing.T, width, height int) *walker {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trajectory.json")
	if err := os.WriteFile(file, []byte(walked), 0o644); err != nil {
		t.Fatal(err)
	}
	shown, err := trajectoriesToShow(file, report.AllSteps())
	if err != nil {
		t.Fatal(err)
	}
	return newWalker(shown, func() (int, int) { return width, height })
}

// rows are the lines of a frame as they are seen.
func rows(w *walker) []string { return strings.Split(ansi.Strip(w.frame()), "\r\n") }

// TestWalk: keys lead through the steps and their lines, and a frame fits the terminal.
func TestWalk(t *testing.T) {
	t.Parallel()
	w := walking(t, 60, 12)
	last := len(w.steps)
	if last < 3 {
		t.Fatalf("%d steps", last)
	}
	for _, press := range []struct {
		key  string
		step int
	}{
		{keyLeft, 1}, {keyRight, 2}, {"n", 3}, {"p", 2}, {"G", last}, {keyRight, last}, {keyHome, 1}, {"x", 1},
	} {
		if !w.press(press.key) || w.at != press.step-1 {
			t.Errorf("%q leads to step %d, want %d", press.key, w.at+1, press.step)
		}
		got := rows(w)
		if len(got) != 12 || !strings.Contains(got[0], "step ") || !strings.Contains(got[11], "q quit") && !strings.Contains(got[11], "…") {
			t.Errorf("%q: %q", press.key, got)
		}
		for _, row := range got {
			if ansi.StringWidth(row) > 60 {
				t.Errorf("too wide: %q", row)
			}
		}
	}
	for range 500 { // the space bar leads through everything
		w.press(" ")
	}
	if w.at != last-1 {
		t.Errorf("the space bar ends at step %d of %d", w.at+1, last)
	}
	for _, key := range []string{"q", "\x03"} {
		if w.press(key) {
			t.Errorf("%q does not end it", key)
		}
	}
}

// TestWalkScrolls: a step that is longer than the terminal is shown in parts, none of which
// is beyond it.
func TestWalkScrolls(t *testing.T) {
	t.Parallel()
	w := walking(t, 20, 4)
	w.press("n")
	all := len(w.lines(20))
	if all < 4 {
		t.Fatalf("%d lines", all)
	}
	w.press(keyDown)
	if w.top != 1 {
		t.Errorf("one line on is %d", w.top)
	}
	for range 100 {
		w.press(keyPageDown)
	}
	if w.top != all-2 || rows(w)[2] == "" {
		t.Errorf("the end is line %d of %d: %q", w.top, all, rows(w))
	}
	w.press("b")
	w.press(keyUp)
	if w.top != all-5 {
		t.Errorf("back is line %d of %d", w.top, all)
	}
}

// TestWalkSearches: what is searched is found in the steps behind, and begins again.
func TestWalkSearches(t *testing.T) {
	t.Parallel()
	w := walking(t, 100, 30)
	last := w.steps[len(w.steps)-1].step
	word := strings.Fields(last.Message.Text)[0]
	for _, key := range append([]string{"/"}, strings.Split(word+"x", "")...) {
		w.press(key)
	}
	w.press(keyBack)
	if got := rows(w); got[len(got)-1] != "/"+word {
		t.Errorf("the last line is %q", got[len(got)-1])
	}
	w.press(keyEnter)
	first := w.at
	if !strings.Contains(strings.Join(rows(w), "\n"), word) || first == 0 {
		t.Errorf("%q is not in step %d", word, first+1)
	}
	for range len(w.steps) {
		w.press("N")
	}
	for _, key := range []string{"/", "\U0001F600", keyEnter} {
		w.press(key)
	}
	if got := rows(w); !strings.Contains(got[len(got)-1], "is in no step") {
		t.Errorf("the last line is %q", got[len(got)-1])
	}
	w.press("/")
	if w.press(keyEscape); w.asking {
		t.Error("it still asks")
	}
}

// TestWalkHides: kinds of content can be hidden, and come back.
func TestWalkHides(t *testing.T) {
	t.Parallel()
	w := walking(t, 100, 40)
	at := slices.IndexFunc(w.steps, func(s walkStep) bool { return len(s.step.ToolCalls) > 0 && s.step.Observation != nil })
	if at < 0 {
		t.Fatal("no step has calls")
	}
	w.to(at)
	whole := len(w.lines(100))
	for _, key := range []string{"r", "c", "o"} {
		before := len(w.lines(100))
		if w.press(key); len(w.lines(100)) >= before {
			t.Errorf("%s hides nothing", key)
		}
	}
	if less := len(w.lines(100)); less >= whole {
		t.Errorf("%d lines, %d before", less, whole)
	}
	for _, key := range []string{"r", "c", "o"} {
		w.press(key)
	}
	if again := len(w.lines(100)); again != whole || w.steps[at].step.Observation == nil {
		t.Errorf("%d lines, %d before", again, whole)
	}
}

func TestReadKey(t *testing.T) {
	t.Parallel()
	r := bufio.NewReader(strings.NewReader("a\x1b[A\x1bOC\x1b[5~é\r\x7f\x1b[24~q"))
	want := []string{"a", keyUp, keyRight, keyPageUp, "é", keyEnter, keyBack, keyEscape, "q"}
	for _, w := range want {
		got, err := readKey(r)
		if err != nil || got != w {
			t.Errorf("%q, %v, want %q", got, err, w)
		}
	}
}
