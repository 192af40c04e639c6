package job_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

func gitTask(url, path string, commit *string) jobdir.TaskConfig {
	return jobdir.TaskConfig{Path: &path, GitURL: &url, GitCommitID: commit}
}

func fetchOptions(home string) dataset.FetchOptions {
	return dataset.FetchOptions{Now: time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC), Home: home, Environ: os.Environ()}
}

func sourcesConfig(t *testing.T, jobs string) jobdir.Config {
	t.Helper()
	cfg := jobdir.NewConfig(time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC))
	cfg.JobsDir = jobs
	return cfg
}

// TestFetchRegistry runs datasets of a registry file and of one that is served.
func TestFetchRegistry(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "tasks/git-one")
	local := filepath.Join(t.TempDir(), "local-one")
	jobtest.WriteTask(t, local, "local")
	e := jobtest.RegistryEntry("set", "1.0", map[string]any{"name": "misleading", "path": local}, map[string]any{"git_url": r.URL(), "path": "tasks/git-one"})
	e["metrics"] = []any{map[string]any{"type": "max"}}
	path := jobtest.Registry(t, jobtest.RegistryEntry("set", "0.9"), e, jobtest.RegistryEntry("other", "1"))
	for _, c := range []struct {
		name             string
		include, exclude []string
		limit            *int
		want             []string
		err              string
	}{
		{name: "all", want: []string{"local-one", "git-one"}},
		{name: "include", include: []string{"git-*"}, want: []string{"git-one"}},
		{name: "exclude", exclude: []string{"git-*"}, want: []string{"local-one"}},
		{name: "limit", limit: new(1), want: []string{"local-one"}},
		{name: "none", include: []string{"misleading"}, err: "No tasks matched the filter(s) ['misleading']. There are 2 tasks available in this dataset. Example task names: ['git-one', 'local-one']"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := sourcesConfig(t, t.TempDir())
			cfg.Datasets = []jobdir.DatasetConfig{{Name: new("set"), RegistryPath: &path, TaskNames: c.include, ExcludeTaskNames: c.exclude, NTasks: c.limit}}
			p, err := job.Prepare(cfg, sourceOptions(t))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, x := range p.Trials {
				names = append(names, filepath.Base(*x.Task.Path))
				if *x.Task.Source != "set" {
					t.Errorf("source is %q", *x.Task.Source)
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("got %q, want %q", names, c.want)
			}
			if m := p.Metrics["set"]; len(m) != 1 || m[0].Type != jobdir.MetricMax {
				t.Errorf("metrics are %v, want the dataset's", m)
			}
		})
	}
}

func sourceOptions(t *testing.T) job.PrepareOptions {
	t.Helper()
	home := t.TempDir()
	return job.PrepareOptions{
		Now:    time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC),
		Lookup: func(string) (string, bool) { return "", false }, Home: home,
		Random: func(int) int { return 0 },
		Fetch: func(cfg jobdir.Config) (*dataset.Fetched, error) {
			return dataset.Fetch(t.Context(), cfg, fetchOptions(home))
		},
	}
}

// cachePackage puts a package into a cache and returns its digest.
func cachePackage(t *testing.T, home, name, instruction string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "task")
	jobtest.WriteTask(t, dir, instruction)
	sum, _, err := harbor.PackageHash(dir)
	if err != nil {
		t.Fatal(err)
	}
	org, short, _ := strings.Cut(name, "/")
	jobtest.WriteTask(t, filepath.Join(home, ".cache", "harbor", "tasks", filepath.FromSlash(harbor.PackageCachePath(org, short, sum))), instruction)
	return sum
}

func TestFetchPackages(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	one := cachePackage(t, home, "org/one", "first")
	two, other := cachePackage(t, home, "org/two", "a"), cachePackage(t, home, "org/two", "b")
	changed := cachePackage(t, home, "org/changed", "x")
	dir := filepath.Join(home, ".cache", "harbor", "tasks", filepath.FromSlash(harbor.PackageCachePath("org", "changed", changed)))
	if err := os.WriteFile(filepath.Join(dir, "instruction.md"), []byte("tampered"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, ref string
		digest    string
		warning   string
		err       string
	}{
		{"org/one", one, one, "", ""},
		{"org/one", "latest", one, "taking the only one on this machine", ""},
		{"org/two", two, two, "", ""},
		{"org/two", "3", "", "", "2 are on this machine; name one: "},
		{"org/two", "sha256:" + strings.Repeat("0", 64), "", "", "is not on this machine"},
		{"org/none", "latest", "", "", `"org/none": version "latest" is not on this machine`},
		{"org/changed", changed, "", "", "it was changed"},
		{"org/../one", "latest", "", "", "is not a package"},
	} {
		cfg := sourcesConfig(t, t.TempDir())
		cfg.Tasks = []jobdir.TaskConfig{{Name: &c.name, Ref: &c.ref}}
		o := sourceOptions(t)
		o.Fetch = func(cfg jobdir.Config) (*dataset.Fetched, error) {
			return dataset.Fetch(t.Context(), cfg, fetchOptions(home))
		}
		p, err := job.Prepare(cfg, o)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s@%s: got %v, want %q", c.name, c.ref, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s@%s: %v", c.name, c.ref, err)
			continue
		}
		if got := p.Lock.Trials[0].Task; got.Digest != c.digest || got.Type != jobdir.PackageTask || got.Path != nil {
			t.Errorf("%s@%s: locked as %+v", c.name, c.ref, got)
		}
		if warned := strings.Join(p.Warnings, "\n"); !strings.Contains(warned, c.warning) || c.warning == "" && warned != "" {
			t.Errorf("%s@%s: warnings %q, want %q", c.name, c.ref, warned, c.warning)
		}
		if name := p.Trials[0].TrialName; !strings.HasPrefix(name, strings.TrimPrefix(c.name, "org/")+"__") {
			t.Errorf("trial is called %q", name)
		}
	}
	if other == two {
		t.Fatal("the two versions are the same")
	}
}
