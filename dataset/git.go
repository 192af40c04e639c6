package dataset

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/gitfetch"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
)

// gitTasks brings the git tasks among the given ones to the cache, with one
// clone per repository.
func (f *fetcher) gitTasks(ctx context.Context, tasks []*FetchedTask) error {
	var urls []string
	byURL := map[string][]*FetchedTask{}
	for _, t := range tasks {
		if t.Config.Kind() != jobdir.GitTask {
			continue
		}
		url := *t.Config.GitURL
		if byURL[url] == nil {
			urls = append(urls, url)
		}
		byURL[url] = append(byURL[url], t)
	}
	var errs []error
	for _, url := range urls {
		f.warnCredentials(url)
		if err := f.repository(ctx, url, byURL[url]); err != nil {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// repository fetches the tasks of one repository that are not here yet.
func (f *fetcher) repository(ctx context.Context, url string, tasks []*FetchedTask) error {
	cache, err := f.cacheFor(tasks[0].Config.DownloadDir)
	if err != nil {
		return err
	}
	local := true
	byCommit := map[string][]*FetchedTask{}
	var wants []gitfetch.Want
	for _, t := range tasks {
		local = local && f.fromHere[t]
		if t.Config.Path == nil {
			return fmt.Errorf("git repository %q: no path is given", gitfetch.Anonymous(url))
		}
		if cache.hasPinned(t) {
			continue
		}
		commit := ""
		if t.Config.GitCommitID != nil {
			if commit = *t.Config.GitCommitID; commit == "" {
				return fmt.Errorf("git repository %q: the commit is empty", gitfetch.Anonymous(url))
			}
		}
		i := slices.IndexFunc(wants, func(w gitfetch.Want) bool { return w.Commit == commit })
		if i < 0 {
			i, wants = len(wants), append(wants, gitfetch.Want{Commit: commit})
		}
		wants[i].Paths = append(wants[i].Paths, schema.CleanPath(*t.Config.Path))
		byCommit[commit] = append(byCommit[commit], t)
	}
	// What is cached is used no more freely than what is fetched.
	if _, err := gitfetch.CheckURL(url, local); err != nil || len(wants) == 0 {
		return err
	}
	temp, release, err := cache.workDir(f.o.Now)
	if err != nil {
		return err
	}
	defer release()
	f.say("fetching %s from %s", countTasks(byCommit), gitfetch.Anonymous(url))
	o := gitfetch.Options{Environ: f.o.Environ, Local: local, Limit: f.o.Limit, Dir: temp}
	return gitfetch.Fetch(ctx, url, wants, o, func(tree gitfetch.Tree) error {
		if tree.NoLFS {
			f.warnOnce(fmt.Sprintf("%s keeps files in git's large file storage and git-lfs is not installed: the tasks hold pointers instead of them", gitfetch.Anonymous(url)))
		}
		for _, t := range byCommit[tree.Want.Commit] {
			if err := cache.keep(t, tree, temp); err != nil {
				return err
			}
		}
		return nil
	})
}

func countTasks(byCommit map[string][]*FetchedTask) string {
	n := 0
	for _, list := range byCommit {
		n += len(list)
	}
	if n == 1 {
		return "1 task"
	}
	return fmt.Sprintf("%d tasks", n)
}

// hasPinned uses what is in the cache for a commit that is named by its full
// id, unless it is to be fetched in any case.
func (c taskCache) hasPinned(t *FetchedTask) bool {
	cfg := t.Config
	if cfg.GitCommitID == nil || !gitfetch.IsFullID(*cfg.GitCommitID) || cfg.Overwrite {
		return false
	}
	dir := c.path(harbor.GitCachePath(*cfg.GitURL, cfg.GitCommitID, *cfg.Path))
	if !isFilled(dir) || gitfetch.CheckPath(*cfg.Path) != nil {
		return false
	}
	t.Dir, t.Commit, t.Name = dir, *cfg.GitCommitID, path.Base(schema.CleanPath(*cfg.Path))
	return true
}

// keep puts a task into the cache: under the full commit, where the job reads
// it and nobody replaces it, and under the identity that is configured.
func (c taskCache) keep(t *FetchedTask, tree gitfetch.Tree, temp string) error {
	cfg := t.Config
	dir := schema.CleanPath(*cfg.Path)
	pinned := c.path(harbor.GitCachePath(*cfg.GitURL, &tree.Commit, dir))
	fill := func(to string) error { return tree.Copy(dir, to) }
	if cfg.Overwrite || !isFilled(pinned) {
		if err := c.place(pinned, temp, fill); err != nil {
			return fmt.Errorf("git repository %q: %w", gitfetch.Anonymous(*cfg.GitURL), err)
		}
	}
	t.Dir, t.Commit, t.Name = pinned, tree.Commit, path.Base(dir)
	configured := c.path(harbor.GitCachePath(*cfg.GitURL, cfg.GitCommitID, dir))
	if configured == pinned {
		return nil
	}
	return c.place(configured, temp, fill)
}
