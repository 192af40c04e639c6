package view

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/jobdir/scan"
)

// TestSpark: the line of a job's progress goes from nothing to what has ended, never down.
func TestSpark(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "trials")
		var records []scan.FileRecord
		for range n {
			began := rapid.Int64Range(1, 1<<50).Draw(t, "began")
			records = append(records, scan.FileRecord{StartedAt: began, Phases: []scan.Phase{{Started: began, Finished: began + rapid.Int64Range(1, 1<<40).Draw(t, "took")}}})
		}
		planned := rapid.IntRange(0, 60).Draw(t, "planned")
		line := sparkOf(records, planned)
		if n < 2 {
			if line != "" {
				t.Fatalf("%d trials have the line %q", n, line)
			}
			return
		}
		points := strings.Fields(line)
		if len(points) != sparkPoints+1 {
			t.Fatalf("%d points", len(points))
		}
		was := 20.0
		for _, p := range points {
			var x, y float64
			if _, err := fmt.Sscanf(p, "%g,%g", &x, &y); err != nil || y > was || y < 0 || x < 0 || x > 100 {
				t.Fatalf("%s behind %v: %v", p, was, err)
			}
			was = y
		}
		if want := 20 - 20*float64(n)/float64(max(n, planned)); was < want-0.06 || was > want+0.06 {
			t.Fatalf("it ends at %v, want %v", was, want)
		}
	})
}
