package view

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// longOne writes a trajectory of so many steps of 64 KiB.
func longOne(t testing.TB, file string, steps int) {
	t.Helper()
	var text strings.Builder
	text.WriteString(`{"schema_version": "ATIF-v1.6", "agent": {"name": "a", "version": "1"}, "steps": [`)
	for i := range steps {
		if i > 0 {
			text.WriteString(",\n")
		}
		fmt.Fprintf(&text, `{"step_id": %d, "source": "agent", "message": "step number %d. %s", "metrics": {"prompt_tokens": 2, "cost_usd": 0.5}}`, i+1, i+1, strings.Repeat("word ", 64<<10/5))
	}
	text.WriteString(`], "notes": "the end"}`)
	jobtest.Write(t, file, []byte(text.String()))
}

// TestLongTrajectory: a trajectory that is read by parts is shown as a short one is, and
// read anew when it has changed.
func TestLongTrajectory(t *testing.T) {
	t.Parallel()
	const steps = 250
	file := filepath.Join(t.TempDir(), "trajectory.json")
	longOne(t, file, steps)
	if info, err := os.Stat(file); err != nil || info.Size() < longTrajectory {
		t.Fatalf("%v, %v", info, err)
	}
	server := serve(t, Options{Dirs: []string{file}})
	page := func(parameters string) string {
		text, _ := get(t, server.URL+"/trajectories/0/trajectory"+parameters, http.StatusOK)
		return text
	}
	shows := func(text string, from, to int) {
		t.Helper()
		for n, want := range map[int]bool{from - 1: false, from: true, to: true, to + 1: false} {
			if has := strings.Contains(text, fmt.Sprintf("step number %d.", n)); has != want {
				t.Errorf("step %d is there: %v", n, has)
			}
		}
		if !strings.Contains(text, fmt.Sprintf("%d to %d<", from, to)) || !strings.Contains(text, "250 steps") || !strings.Contains(text, "the end") {
			t.Errorf("the page of %d to %d does not say so", from, to)
		}
	}
	shows(page(""), 1, 100)
	shows(page("?from=101"), 101, 200)
	shows(page("?from=201"), 201, 250)
	shows(page("?from=999"), 151, 250)
	if text := page(""); !strings.Contains(text, "$125.00") {
		t.Error("the cost is not that of all steps")
	}
	longOne(t, file, 150)
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if text := page("?from=101"); !strings.Contains(text, "101 to 150<") {
		t.Error("a file that has changed is shown as it was")
	}
	jobtest.Write(t, file, []byte(strings.Replace(jobtest.Read(t, file), `"step_id": 120,`, `"step_id": "x",`, 1)))
	shown := page("")
	if !strings.Contains(shown, "step number 100.") {
		t.Error("what is wrong elsewhere hides a page")
	}
	if text, _ := get(t, server.URL+"/trajectories/0/trajectory?from=101", http.StatusInternalServerError); !strings.Contains(text, "step_id") {
		t.Errorf("what is wrong is not said: %.300s", text)
	}
}
