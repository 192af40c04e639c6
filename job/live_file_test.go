package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestResultIsValidAtAnyMoment reads the job's result as fast as it can for as
// long as the job runs: it is valid at any moment, and its counts add up
// (Harbor job format, acceptance 4).
func TestResultIsValidAtAnyMoment(t *testing.T) {
	t.Parallel()
	names := make([]string, 40)
	for i := range names {
		names[i] = fmt.Sprintf("task-%02d", i)
	}
	seen := make(chan struct{}) // no trial ends before the first read
	h := newHarness(t, writeDataset(t, names...), fake.Config{Rules: []fake.Rule{
		fake.On("solve.sh", func(context.Context, *fake.Process) (int, error) {
			<-seen
			return 0, nil
		}),
		grant("1"),
	}})
	prepared := h.prepare(t)
	done := make(chan struct{})
	var runErr error
	go func() {
		defer close(done)
		_, runErr = h.runner.Run(t.Context(), prepared)
	}()
	path := filepath.Join(h.dir(), scan.ResultFile)
	var once sync.Once
	reads, running := 0, 0
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true // and it is read once more
		default:
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && reads == 0 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		reads++
		once.Do(func() { close(seen) })
		if !json.Valid(data) {
			t.Fatalf("read %d is no JSON:\n%s", reads, data)
		}
		result, err := jobdir.ParseResult(data)
		if err != nil {
			t.Fatalf("read %d: %v", reads, err)
		}
		s := result.Stats
		if result.NTotalTrials != len(names) || s.NCompletedTrials+s.NRunningTrials+s.NPendingTrials != len(names) || result.UpdatedAt == nil {
			t.Fatalf("read %d: %d completed, %d running and %d pending of %d", reads, s.NCompletedTrials, s.NRunningTrials, s.NPendingTrials, result.NTotalTrials)
		}
		if naive := result.UpdatedAt.String()[len(result.UpdatedAt.String())-1] != 'Z'; result.FinishedAt != nil && !naive {
			t.Fatalf("finished and updated at %v", result.UpdatedAt)
		}
		if result.FinishedAt == nil {
			running++
		} else if ended && s.NCompletedTrials != len(names) {
			t.Fatalf("finished with %d trials", s.NCompletedTrials)
		}
	}
	if runErr != nil {
		t.Fatal(runErr)
	}
	if running == 0 {
		t.Error("it was not read while it ran")
	}
	t.Logf("%d reads, %d of them while it ran", reads, running)
}
