package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/job"
)

// fetchTasks brings tasks here that are not in local directories. An interrupt
// ends that.
func fetchTasks(ctx context.Context, env *Env) func(job.Config) (*job.Fetched, error) {
	return func(cfg job.Config) (*job.Fetched, error) {
		ctx, stop := interruptible(ctx, env)
		defer stop()
		fetched, err := job.Fetch(ctx, cfg, job.FetchOptions{
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
func fetchedDirs(env *Env, cfg *job.Config) []string {
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
