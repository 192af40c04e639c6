package report_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/report"
)

// TestLongTrajectory: read by parts a trajectory has the same steps and totals.
func TestLongTrajectory(t *testing.T) {
	t.Parallel()
	long, err := report.IndexTrajectory(t.Context(), file(t, trajectory))
	if err != nil {
		t.Fatal(err)
	}
	for _, chosen := range []report.Steps{report.AllSteps(), {First: 2, Last: 2}, {First: 1, Last: 2}} {
		want, err := report.ReadTrajectory(file(t, trajectory), chosen)
		if err != nil {
			t.Fatal(err)
		}
		got, err := long.Read(chosen)
		if err != nil {
			t.Fatal(err)
		}
		var a, b bytes.Buffer
		if err := errors.Join(report.WriteJSON(&a, want), report.WriteJSON(&b, got)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a.String(), b.String()); diff != "" || len(got.Steps) != len(want.Steps) || got.Totals.Steps != 3 {
			t.Errorf("%v: %d steps; want -, got +: %s", chosen, len(got.Steps), diff)
		}
	}
	bad := filepath.Join(t.TempDir(), "trajectory.json")
	if err := os.WriteFile(bad, []byte(`{"steps": [`), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = report.IndexTrajectory(t.Context(), file(t, bad))
	if _, ok := errors.AsType[*report.InvalidError](err); !ok {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := report.IndexTrajectory(ctx, file(t, trajectory)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
