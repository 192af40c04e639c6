package harbor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
)

func TestDiscover(t *testing.T) {
	t.Parallel()
	root := filepath.Join(realTempDir(t), "my-set")
	for _, name := range []string{"b", "a", "c10"} {
		plantTask(t, filepath.Join(root, name), "")
	}
	write(t, filepath.Join(root, "file"), nil, 0o644)
	write(t, filepath.Join(root, "broken", "task.toml"), []byte("[a"), 0o644)
	mkdir(t, filepath.Join(root, "broken", "environment"))
	plantTask(t, filepath.Join(root, "untested"), "")
	if err := os.RemoveAll(filepath.Join(root, "untested", "tests")); err != nil {
		t.Fatal(err)
	}

	check := func(path string, unverified bool, want harbor.Found) {
		t.Helper()
		got, err := harbor.Discover(path, unverified)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, verification disabled %v (-want +got):\n%s", path, unverified, diff)
		}
	}
	in := func(names ...string) (dirs []string) {
		for _, name := range names {
			dirs = append(dirs, filepath.Join(root, name))
		}
		return dirs
	}
	check(filepath.Join(root, "a"), false, harbor.Found{Dirs: in("a")})
	check(root, false, harbor.Found{Dirs: in("a", "b", "c10"), Source: "my-set", Skipped: []string{"broken", "untested"}})
	check(root, true, harbor.Found{Dirs: in("a", "b", "c10", "untested"), Source: "my-set", Skipped: []string{"broken"}})

	_, err := harbor.Discover(filepath.Join(root, "none"), false)
	assertRaised(t, err, exception.FileNotFoundError, fmt.Sprintf("[Errno 2] No such file or directory: '%s'", filepath.Join(root, "none")))
}

func TestFilter(t *testing.T) {
	t.Parallel()
	names := []string{"web-1", "web-2", "db-1", "api", "ui", "cli"}
	tests := []struct {
		name   string
		filter harbor.Filter
		want   []int
	}{
		{"none", harbor.Filter{}, []int{0, 1, 2, 3, 4, 5}},
		{"include", harbor.Filter{Include: []string{"web-*", "api"}}, []int{0, 1, 3}},
		{"exclude", harbor.Filter{Exclude: []string{"*-1"}}, []int{1, 3, 4, 5}},
		{"limit comes last", harbor.Filter{Include: []string{"*-?"}, Exclude: []string{"web-1"}, Limit: new(1)}, []int{1}},
		{"limit of nothing", harbor.Filter{Limit: new(0)}, []int{}},
		{"negative limit", harbor.Filter{Limit: new(-4)}, []int{0, 1}},
		{"exclude all", harbor.Filter{Exclude: []string{"*"}}, []int{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.filter.Apply(names)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	_, err := harbor.Filter{Include: []string{"x*", "it's"}}.Apply(names)
	assertRaised(t, err, exception.ValueError, `No tasks matched the filter(s) ['x*', "it's"]. There are 6 tasks available in this dataset. `+
		`Example task names: ['api', 'cli', 'db-1', 'ui', 'web-1']`)
}

func TestLocalNameFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mkdir(t, filepath.Join(dir, "real"))
	if err := os.Symlink("real", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	if got := harbor.LocalName(filepath.Join(dir, "alias")); got != "real" {
		t.Errorf("name %q", got)
	}
}

func TestGitCacheVectors(t *testing.T) {
	t.Parallel()
	var file struct {
		GitCacheKeys []struct {
			GitURL       string  `json:"git_url"`
			GitCommitID  *string `json:"git_commit_id"`
			Path         string
			CacheRelpath string `json:"cache_relpath"`
		} `json:"git_cache_keys"`
	}
	vector(t, "harbor-jobs/names/names.json", &file)
	for _, tt := range file.GitCacheKeys {
		if got := harbor.GitCachePath(tt.GitURL, tt.GitCommitID, tt.Path); got != tt.CacheRelpath {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	t.Logf("%d cases", len(file.GitCacheKeys))
	// The examples of section 1.7.
	for commit, want := range map[string]string{"": "92t9a6woZFPZqaTUCnzDxU/a", "0000000000000000000000000000000000000000": "igKEjMDKWj9Tixqt6CEHDR/a"} {
		var id *string
		if commit != "" {
			id = &commit
		}
		if got := harbor.GitCachePath("https://github.com/o/r.git", id, "tasks/a"); got != want {
			t.Errorf("commit %q: %s, want %s", commit, got, want)
		}
	}
}

// A directory without a task.toml is told apart from one that holds tasks, one level
// below and no deeper.
func TestWhyNoTaskFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"a group/b", "a group/a", "deep/er/task", "empty"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a group/b/task.toml", "a group/a/task.toml", "a group/0", "deep/er/task/task.toml"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const none = "it has no task.toml"
	for name, want := range map[string]string{
		"a group": none + `, but directories in it have one, such as "a": proctor run -p '` + filepath.Join(root, "a group") + "'",
		"deep":    none, "empty": none, "absent": none, "a group/0": none,
	} {
		dir := filepath.Join(root, name)
		if got := harbor.WhyNoTaskFile(dir, "proctor run -p"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if got := harbor.HasTaskIn(dir); got != (want != none) {
			t.Errorf("%s: holds tasks: %v", name, got)
		}
	}
}
