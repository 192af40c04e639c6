package main

import (
	"errors"
	"fmt"
	"github.com/proctor-run/proctor/jobdir"
	"io/fs"
	"os"
)

// claimName makes the directory of a job that nobody gave a name. Jobs that
// start in the same second get "-2", "-3" behind the time. release removes the
// directories again that it made, when nothing was written to them.
func claimName(cfg *jobdir.Config, names given) (release func(), err error) {
	if names.jobName {
		return func() {}, nil
	}
	_, statErr := os.Stat(cfg.JobsDir)
	if err := os.MkdirAll(cfg.JobsDir, 0o755); err != nil {
		return nil, usageErrorf("making the jobs directory: %w", err)
	}
	first := cfg.JobName
	for n := 2; ; n++ {
		err := os.Mkdir(cfg.Dir(), 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, usageErrorf("making the job directory: %w", err)
		}
		cfg.JobName = fmt.Sprintf("%s-%d", first, n)
	}
	// Remove leaves alone what is not empty.
	jobsDir, dir := cfg.JobsDir, cfg.Dir()
	return func() {
		_ = os.Remove(dir)
		if errors.Is(statErr, fs.ErrNotExist) {
			_ = os.Remove(jobsDir)
		}
	}, nil
}
