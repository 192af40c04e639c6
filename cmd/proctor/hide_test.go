package main

import (
	"slices"
	"testing"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

func TestHideTasks(t *testing.T) {
	t.Parallel()
	task := func(path string) jobdir.TrialConfig { return jobdir.TrialConfig{Task: jobdir.TaskConfig{Path: &path}} }
	o := backendOptions{mask: []string{"/data/tasks"}}
	o.hideTasks(&job.Prepared{Trials: []jobdir.TrialConfig{
		task("/data/tasks/a"), task("/data/tasks-of-others/b"), task("/data/tasks-of-others/b"), task("/registry/c"),
	}})
	if want := []string{"/data/tasks", "/data/tasks-of-others/b", "/registry/c"}; !slices.Equal(o.mask, want) {
		t.Errorf("hidden are %q, want %q", o.mask, want)
	}
}
