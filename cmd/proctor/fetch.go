package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/internal/schema"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// fetchTasks brings tasks here that are not in local directories. An interrupt
// ends that.
func fetchTasks(ctx context.Context, env *Env) func(jobdir.Config) (*dataset.Fetched, error) {
	return func(cfg jobdir.Config) (*dataset.Fetched, error) {
		ctx, stop := interruptible(ctx, env)
		defer stop()
		fetched, err := dataset.Fetch(ctx, cfg, dataset.FetchOptions{
			Now: env.Now(), Home: env.Getenv("HOME"), Environ: env.Environ,
			Say: func(text string) {
				if !cfg.Quiet {
					fmt.Fprintf(env.Stderr, "proctor: %s\n", clean(text))
				}
			},
		})
		if ctx.Err() != nil {
			return nil, errInterrupted
		}
		return fetched, err
	}
}

// fetchedDirs are the directories that hold fetched tasks with their solutions.
func fetchedDirs(env *Env, cfg *jobdir.Config) []string {
	var dirs []string
	add := func(dir string) {
		if abs, err := filepath.Abs(dir); err == nil {
			dirs = append(dirs, abs)
		}
	}
	if home := env.Getenv("HOME"); home != "" {
		add(filepath.Join(home, ".cache", "harbor"))
	}
	for _, t := range cfg.Tasks {
		if t.DownloadDir != nil {
			add(*t.DownloadDir)
		}
	}
	for _, d := range cfg.Datasets {
		if d.DownloadDir != nil {
			add(*d.DownloadDir)
		}
	}
	return dirs
}

// takeFromGit has a path of a git repository looked up there that is not on this
// machine. Harbor drops the repository unless there is such a task here, too,
// and then finds no tasks.
func takeFromGit(env *Env, set *job.Overrides, cfg *jobdir.Config) {
	if set.GitURL == nil || set.Path == nil || len(cfg.Datasets) == 0 {
		return
	}
	path := schema.CleanPath(*set.Path)
	if _, err := os.Lstat(path); err == nil {
		fmt.Fprintf(env.Stderr, "proctor: warning: --task-git-url is ignored, for %q is a directory of tasks here\n", clean(path))
		return
	}
	cfg.Datasets = nil
	cfg.Tasks = []jobdir.TaskConfig{{Path: &path, GitURL: set.GitURL, GitCommitID: set.GitCommit}}
}
