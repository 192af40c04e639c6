// Package readjobs reads and scores job directories without running anything.
package readjobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/audit"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/job/junit"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// Records reads one small record for each trial, in parallel. Trials that cannot
// be read are an error beside those that can.
func Records(ctx context.Context, dir string) ([]jobdir.Record, error) {
	found, err := scan.Dir(ctx, dir)
	if err != nil {
		return nil, err
	}
	records := make([]jobdir.Record, 0, len(found.Records))
	for _, r := range found.Records {
		records = append(records, r.Record)
	}
	return records, errors.Join(found.Errors...)
}

// Tampered names what was changed in a job since it ran, as far as its files tell.
func Tampered(ctx context.Context, dir string) ([]string, error) {
	found, err := audit.Check(ctx, dir, audit.Options{})
	if err != nil {
		return nil, err
	}
	list := make([]string, 0, len(found.Findings))
	for _, f := range found.Findings {
		list = append(list, f.String())
	}
	return list, nil
}

// Describe says what a job came to: how many trials of each class there are, the
// mean of each group with the interval it lies in, and whether the trials give
// what the job's own result says.
func Describe(ctx context.Context, dir string) (string, error) {
	r, err := score.Rescore(ctx, dir, score.RescoreOptions{})
	if err != nil {
		return "", err
	}
	records := make([]jobdir.Record, 0, len(r.Records))
	for _, f := range r.Records {
		records = append(records, f.Record)
	}
	var out strings.Builder
	stats := score.NewStatistics(records, r.Result.NTotalTrials)
	for _, class := range jobdir.Classes() {
		if n := stats.Outcomes[class]; n > 0 {
			fmt.Fprintf(&out, "%s: %d\n", class, n)
		}
	}
	cancelled := stats.Errors[exception.CancelledError]
	fmt.Fprintf(&out, "cancelled: %d\n", cancelled)
	for _, g := range stats.Groups {
		for _, m := range g.Means {
			fmt.Fprintf(&out, "%s: %.3f in [%.3f, %.3f]\n", g.Group, m.Mean, m.Low, m.High)
		}
	}
	for _, d := range r.Check() {
		fmt.Fprintf(&out, "differs: %s\n", d)
	}
	return out.String(), nil
}

// Summary writes a job, finished or not, as one JSON object on a line: what proctor
// job show --json prints. Times are in UTC.
func Summary(ctx context.Context, w io.Writer, dir string) error {
	j, err := report.ReadJob(ctx, dir, time.UTC)
	if err != nil {
		return err
	}
	return report.WriteJSON(w, j)
}

// Line is the result line of a job, for programs that read one.
func Line(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, scan.ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		return outcome.Missing().Line()
	}
	if err != nil {
		return "", err
	}
	return outcome.Of(data).Line()
}

// Better reports whether job b is better than job a on the tasks of both, and
// how likely so uneven a result is by chance.
func Better(ctx context.Context, a, b string) (better bool, p float64, err error) {
	before, err := Records(ctx, a)
	if err != nil {
		return false, 0, err
	}
	after, err := Records(ctx, b)
	if err != nil {
		return false, 0, err
	}
	c, err := score.Compare(before, after, score.CompareOptions{})
	if err != nil {
		return false, 0, err
	}
	return c.Wins > c.Losses, c.SignP, nil
}

// Runs counts how often a job was begun and resumed, by its journal.
func Runs(dir string) (int, error) {
	j, err := journal.Load(dir)
	if err != nil {
		return 0, err
	}
	runs := 0
	for _, e := range j.Entries {
		if e.Kind == journal.JobStarted || e.Kind == journal.JobResumed {
			runs++
		}
	}
	return runs, nil
}

// JUnit writes a job for continuous integration; a trial with a reward of 1
// passed.
func JUnit(ctx context.Context, w io.Writer, dir string) error {
	suites, err := junit.Read(ctx, dir, junit.Options{PassAt: 1})
	if err != nil {
		return err
	}
	return suites.Write(w)
}

// One reads the record of one trial from its result.
func One(path string) (jobdir.Record, error) {
	r, err := scan.ReadRecord(path)
	return r.Record, err
}

// Failures lists the trials that a report counts as failed or in error.
func Failures(ctx context.Context, dir string) ([]junit.Case, error) {
	suites, err := junit.Read(ctx, dir, junit.Options{PassAt: 1})
	if err != nil {
		return nil, err
	}
	return notPassed(suites), nil
}

func notPassed(report *junit.Report) []junit.Case {
	var list []junit.Case
	for _, suite := range report.Suites {
		list = append(list, failed(suite)...)
	}
	return list
}

func failed(suite junit.Suite) []junit.Case {
	return slices.DeleteFunc(slices.Clone(suite.Cases), func(c junit.Case) bool { return !bad(c.State) })
}

func bad(s junit.State) bool {
	switch s {
	case junit.Failed, junit.Errored:
		return true
	case junit.Passed, junit.Skipped:
	}
	return false
}
