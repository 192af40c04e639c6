package report

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/value"
)

// LongTrajectory reads some steps of a trajectory file without the others: of a long one
// only what is read is in memory.
type LongTrajectory struct {
	file  traces.File
	index *atif.Index
	sums  Totals
}

// IndexTrajectory reads a trajectory file once, step by step. The error is an
// [*InvalidError] for a file that cannot be read as one; steps that break the rules of the
// format are found where they are read.
func IndexTrajectory(ctx context.Context, file traces.File) (*LongTrajectory, error) {
	f, err := file.Open()
	if err != nil {
		return nil, &InvalidError{fmt.Errorf("%s: %w", file.Path(), err)}
	}
	defer func() { _ = f.Close() }()
	l := &LongTrajectory{file: file}
	l.index, err = atif.NewIndex(f, func(step value.Value) error {
		l.sums.add(atif.MetricsOf(step))
		return context.Cause(ctx)
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &InvalidError{fmt.Errorf("%s: %w", file.Path(), err)}
	}
	return l, nil
}

// Read reads the chosen steps. The document has these alone, the totals are those of all
// steps. The error is as that of [ReadTrajectory].
func (l *LongTrajectory) Read(chosen Steps) (*Trajectory, error) {
	f, err := l.file.Open()
	var t *atif.Trajectory
	if err == nil {
		defer func() { _ = f.Close() }()
		// Behind the end is no step, but all that surrounds them.
		behind := chosen.First > l.index.Len()
		if behind {
			chosen = Steps{max(l.index.Len(), 1), l.index.Len()}
		}
		if t, err = l.index.Read(f, chosen.First, chosen.Last); err == nil && behind {
			t.Steps = nil
		}
	}
	if err != nil {
		return nil, &InvalidError{fmt.Errorf("%s: %w", l.file.Path(), err)}
	}
	return &Trajectory{
		File: l.file.Path(), Document: t, Steps: t.Steps, Totals: l.sums.or(t.FinalMetrics), Trajectory: value.AppendPydantic(nil, t.Object(), 0),
	}, nil
}
