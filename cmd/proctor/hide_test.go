package main

import (
	"slices"
	"testing"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

func TestHidden(t *testing.T) {
	t.Parallel()
	task := func(path string) jobdir.TrialConfig { return jobdir.TrialConfig{Task: jobdir.TaskConfig{Path: &path}} }
	got := hiddenTasks(&job.Prepared{Trials: []jobdir.TrialConfig{
		task("/data/tasks-of-others/b"), task("/data/tasks-of-others/b"), task("/registry/c"),
	}})
	if want := []string{"/data/tasks-of-others/b", "/registry/c"}; !slices.Equal(got, want) {
		t.Errorf("hidden tasks are %q, want %q", got, want)
	}
	cfg := jobdir.Config{JobsDir: "/jobs", Tasks: []jobdir.TaskConfig{{Path: new("/tasks/a"), DownloadDir: new("/fetched")}}, Datasets: []jobdir.DatasetConfig{{Path: new("/data")}}}
	got = hiddenOfConfig(&Env{Environ: []string{"HOME=/home/me"}}, cfg)
	if want := []string{"/jobs", "/tasks/a", "/fetched", "/data", "/home/me/.cache/harbor"}; !slices.Equal(got, want) {
		t.Errorf("hidden of the configuration are %q, want %q", got, want)
	}
}
