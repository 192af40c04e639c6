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
	names []Naming
}

// Naming is a place in a trajectory that names another one: a subagent of it, or what
// continues it.
type Naming struct {
	// Subagent is of which of the document's own subagents the step is, the first of which
	// is 1; 0 where it is a step of the trajectory itself.
	Subagent int
	// Step is the number of the step; 0 where the named one continues the trajectory.
	Step int
	// Path is where a file of its own is, relative to this one's directory, ID which of the
	// document's own subagents it is. One of them may be empty.
	Path, ID string
}

// mostNamings is how many of a trajectory are kept.
const mostNamings = 10_000

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
		l.name(0, l.sums.Steps, atif.SubagentsOf(step))
		return context.Cause(ctx)
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &InvalidError{fmt.Errorf("%s: %w", file.Path(), err)}
	}
	// What breaks the rules of the format names nothing.
	if t, err := l.index.Read(f, 1, 1); err == nil {
		l.nameOf(t)
	}
	return l, nil
}

// nameOf keeps what the document names besides its steps.
func (l *LongTrajectory) nameOf(t *atif.Trajectory) {
	if next := t.ContinuedTrajectoryRef; next != nil {
		l.names = append(l.names, Naming{Path: *next})
	}
	for i := range t.Subagents {
		for k := range t.Subagents[i].Steps {
			l.name(i+1, k+1, t.Subagents[i].Steps[k].Subagents())
		}
	}
}

// name keeps what a step names.
func (l *LongTrajectory) name(subagent, step int, named []atif.SubagentRef) {
	for _, s := range named {
		if len(l.names) >= mostNamings {
			return
		}
		n := Naming{Subagent: subagent, Step: step}
		if s.TrajectoryPath != nil {
			n.Path = *s.TrajectoryPath
		}
		if s.TrajectoryID != nil {
			n.ID = *s.TrajectoryID
		}
		l.names = append(l.names, n)
	}
}

// Len is how many steps the trajectory has.
func (l *LongTrajectory) Len() int { return l.index.Len() }

// Names says where the trajectory names others, in the order of its steps, its
// continuation and the steps of its own subagents.
func (l *LongTrajectory) Names() []Naming { return l.names }

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
