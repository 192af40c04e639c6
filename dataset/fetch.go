package dataset

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/gitfetch"
	"github.com/proctor-run/proctor/internal/homedir"
	"github.com/proctor-run/proctor/jobdir"
)

// Fetched is what the tasks and datasets of a configuration that do not lie in
// a local directory are on this machine. [Fetch] makes it.
type Fetched struct {
	// Tasks has an entry for each of the configuration's tasks, Datasets one
	// for each of its datasets; those of local ones are empty.
	Tasks    []FetchedTask
	Datasets []FetchedDataset
	// Warnings that people should see before the job starts.
	Warnings []string
}

// FetchedTask is a task that has been found or brought here.
type FetchedTask struct {
	jobdir.Task
	Dir    string // its directory on this machine
	Commit string // of a git task: the full id of the commit it is from
	Digest string // of a package: its content hash, "sha256:…"
}

// FetchedDataset is a dataset that has been found, after filtering.
type FetchedDataset struct {
	Tasks   []FetchedTask
	Metrics []jobdir.MetricConfig // its own
	// Unmatched are the patterns of its filter that match nothing; nil for none.
	Unmatched *UnmatchedError
}

// FetchOptions are what Fetch takes from the outside world.
type FetchOptions struct {
	Now time.Time
	// Home is the home directory: the cache is ".cache/harbor" in it, the same
	// that Harbor uses.
	Home string
	// Environ are the variables for git, KEY=VALUE.
	Environ []string
	// Limit bounds what is fetched from one repository or registry; 0 means
	// gitfetch's and registries' own limits.
	Limit time.Duration
	// Say is called with what is being fetched; it may be nil.
	Say func(string)
}

// IsRemote reports whether anything of a configuration lies elsewhere than in a
// local directory, so that it takes [Fetch] to be run.
func IsRemote(cfg jobdir.Config) bool {
	return slices.ContainsFunc(cfg.Tasks, func(t jobdir.TaskConfig) bool { return t.Kind() != jobdir.LocalTask }) ||
		slices.ContainsFunc(cfg.Datasets, func(d jobdir.DatasetConfig) bool { return d.Kind() != jobdir.LocalDataset })
}

// Fetch looks up the registry and package datasets of a configuration and
// brings git tasks to the cache (Harbor job format, section 8). Git tasks are
// fetched again unless their commit is a full id that is in the cache. Packages
// are taken from the cache: there is no hub to ask.
//
// A git task lies in the cache under its configured identity, as with Harbor.
// What Fetch returns is its copy under the identity with the full commit:
// nobody replaces that, and so it stays as it is while the job runs.
func Fetch(ctx context.Context, cfg jobdir.Config, o FetchOptions) (*Fetched, error) {
	f := &fetcher{o: o, registries: map[string]*Registry{}}
	if err := agree(cfg); err != nil {
		return nil, err
	}
	out := &Fetched{Tasks: make([]FetchedTask, len(cfg.Tasks)), Datasets: make([]FetchedDataset, len(cfg.Datasets))}
	var all []*FetchedTask
	for i, t := range cfg.Tasks {
		if t.Kind() != jobdir.LocalTask {
			out.Tasks[i] = FetchedTask{Task: jobdir.Task{Config: t}}
			f.local(&out.Tasks[i], true)
			all = append(all, &out.Tasks[i])
		}
	}
	var errs []error
	for i, d := range cfg.Datasets {
		if d.Kind() == jobdir.LocalDataset {
			continue
		}
		found, err := f.dataset(ctx, d)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out.Datasets[i] = found
		for j := range found.Tasks {
			f.local(&found.Tasks[j], d.RegistryURL == nil)
			all = append(all, &found.Tasks[j])
		}
	}
	errs = append(errs, f.packages(all), f.gitTasks(ctx, all))
	out.Warnings = f.warnings
	return out, errors.Join(errs...)
}

// FetchTask is Fetch for one task that is not local.
func FetchTask(ctx context.Context, t jobdir.TaskConfig, o FetchOptions) (found FetchedTask, warnings []string, err error) {
	out, err := Fetch(ctx, jobdir.Config{Tasks: []jobdir.TaskConfig{t}}, o)
	if err != nil {
		return found, nil, err
	}
	return out.Tasks[0], out.Warnings, nil
}

// fetcher is one call of Fetch.
type fetcher struct {
	o          FetchOptions
	registries map[string]*Registry
	// fromHere are the tasks that a file on this machine names, which may
	// therefore lie in a repository on this machine.
	fromHere map[*FetchedTask]bool
	warnings []string
}

func (f *fetcher) local(t *FetchedTask, fromHere bool) {
	if f.fromHere == nil {
		f.fromHere = map[*FetchedTask]bool{}
	}
	f.fromHere[t] = fromHere
}

func (f *fetcher) say(format string, args ...any) {
	if f.o.Say != nil {
		f.o.Say(fmt.Sprintf(format, args...))
	}
}

// agree checks what all tasks of a job that come from elsewhere must share
// (Harbor job format, section 8).
func agree(cfg jobdir.Config) error {
	type place struct {
		overwrite bool
		dir       string
	}
	var first *place
	check := func(overwrite bool, dir *string) error {
		p := place{overwrite: overwrite}
		if dir != nil {
			p.dir = *dir
		}
		switch {
		case first == nil:
			first = &p
		case first.overwrite != p.overwrite:
			return errors.New("tasks and datasets that are fetched must agree on overwrite: some say true, some false")
		case first.dir != p.dir:
			return fmt.Errorf("tasks and datasets that are fetched must agree on download_dir: have %q and %q", first.dir, p.dir)
		}
		return nil
	}
	for _, t := range cfg.Tasks {
		if t.Kind() == jobdir.LocalTask {
			continue
		}
		if err := check(t.Overwrite, t.DownloadDir); err != nil {
			return err
		}
	}
	for _, d := range cfg.Datasets {
		if d.Kind() == jobdir.LocalDataset {
			continue
		}
		if err := check(d.Overwrite, d.DownloadDir); err != nil {
			return err
		}
	}
	return nil
}

// cacheFor is where tasks are kept: the download directory, or the task cache.
func (f *fetcher) cacheFor(downloadDir *string) (taskCache, error) {
	if downloadDir != nil {
		dir, err := filepath.Abs(homedir.Expand(*downloadDir, f.o.Home))
		return taskCache{dir}, err
	}
	dir, err := CacheDir(f.o.Home)
	return taskCache{filepath.Join(dir, "tasks")}, err
}

// CacheDir is where fetched tasks and datasets are kept, below a home directory: where
// Harbor keeps them. The error is that of an empty home.
func CacheDir(home string) (string, error) {
	if home == "" {
		return "", errors.New("finding the task cache: there is no home directory; set HOME, or download_dir in the configuration")
	}
	return filepath.Join(home, ".cache", "harbor"), nil
}

// dataset finds a registry's or a package's tasks and filters them.
func (f *fetcher) dataset(ctx context.Context, d jobdir.DatasetConfig) (FetchedDataset, error) {
	var found FetchedDataset
	var err error
	if d.Kind() == jobdir.PackageDataset {
		found, err = f.packageDataset(d)
	} else {
		found, err = f.registryDataset(ctx, d)
	}
	var rule jobdir.RuleError
	switch {
	case errors.As(err, &rule):
		return found, err // names the dataset itself
	case err != nil:
		return found, fmt.Errorf("dataset %q: %w", *d.Name, err)
	}
	names := make([]string, len(found.Tasks))
	for i, t := range found.Tasks {
		names[i] = TaskName(t.Task)
	}
	filter := harbor.Filter{Include: d.TaskNames, Exclude: d.ExcludeTaskNames, Limit: d.NTasks}
	kept, unmatched, err := Choose(*d.Name, filter, names)
	if err != nil {
		return found, err
	}
	found.Unmatched = unmatched
	all := found.Tasks
	found.Tasks = nil
	for _, i := range kept {
		found.Tasks = append(found.Tasks, all[i])
	}
	return found, nil
}

// TaskName is what filters and locks call a task: the resolved directory's name
// of a local one, else the package's name or the last part of the path (Harbor
// job format, section 2.2).
func TaskName(t jobdir.Task) string {
	if t.Config.Kind() == jobdir.LocalTask {
		return harbor.LocalName(*t.Config.Path)
	}
	return t.IDName()
}

// warnCredentials says what a URL with a password means for the job's files.
func (f *fetcher) warnCredentials(url string) {
	if gitfetch.HasCredentials(url) {
		f.warnOnce(fmt.Sprintf("the URL of %s holds a password or token, which the job's files record; use a credential helper instead", gitfetch.Anonymous(url)))
	}
}

func (f *fetcher) warnOnce(text string) {
	if !slices.Contains(f.warnings, text) {
		f.warnings = append(f.warnings, text)
	}
}
