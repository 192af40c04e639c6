package main

import (
	"slices"
	"testing"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/trial"
)

func TestHideTasks(t *testing.T) {
	t.Parallel()
	task := func(path string) trial.Config { return trial.Config{Task: trial.TaskConfig{Path: &path}} }
	o := backendOptions{mask: []string{"/data/tasks"}}
	o.hideTasks(&job.Prepared{Trials: []trial.Config{
		task("/data/tasks/a"), task("/data/tasks-of-others/b"), task("/data/tasks-of-others/b"), task("/registry/c"),
	}})
	if want := []string{"/data/tasks", "/data/tasks-of-others/b", "/registry/c"}; !slices.Equal(o.mask, want) {
		t.Errorf("hidden are %q, want %q", o.mask, want)
	}
}
