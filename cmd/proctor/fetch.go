package main

import (
	"context"
	"fmt"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
)

// fetchTasks brings tasks here that are not in local directories. An interrupt
// ends that.
func fetchTasks(ctx context.Context, env *Env) func(jobdir.Config) (*dataset.Fetched, error) {
	return func(cfg jobdir.Config) (fetched *dataset.Fetched, err error) {
		err = whileFetching(ctx, env, cfg.Quiet, func(ctx context.Context, o dataset.FetchOptions) (err error) {
			fetched, err = dataset.Fetch(ctx, cfg, o)
			return err
		})
		return fetched, err
	}
}

// whileFetching calls fetch with what it takes from the outside world. An interrupt
// ends it.
func whileFetching(ctx context.Context, env *Env, quiet bool, fetch func(context.Context, dataset.FetchOptions) error) error {
	ctx, stop := interruptible(ctx, env)
	defer stop()
	err := fetch(ctx, dataset.FetchOptions{
		Now: env.Now(), Home: env.Getenv("HOME"), Environ: env.Environ,
		Say: func(text string) {
			if !quiet {
				_, _ = fmt.Fprintf(env.Stderr, "proctor: %s\n", clean(text))
			}
		},
	})
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

// takeFromGit has the path of --path looked up in the repository of
// --task-git-url, see [dataset.TakeFromGit].
func takeFromGit(env *Env, set *job.Overrides, cfg *jobdir.Config) {
	if set.GitURL == nil || set.Path == nil {
		return
	}
	if path := schema.CleanPath(*set.Path); !dataset.TakeFromGit(cfg, path, *set.GitURL, set.GitCommit) && len(cfg.Datasets) > 0 {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: --task-git-url is ignored, for %q is a directory of tasks here\n", clean(path))
	}
}
