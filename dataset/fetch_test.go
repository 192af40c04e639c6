package dataset_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/jobtest"
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

// TestFetchGitTasks fetches tasks of several commits, and again when the
// branch has moved.
func TestFetchGitTasks(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "tasks/a", "tasks/b")
	first := r.Git("rev-parse", "HEAD")
	home := t.TempDir()
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{gitTask(r.URL(), "tasks/a", nil), gitTask(r.URL(), "tasks/b", &first)}
	var said []string
	o := fetchOptions(home)
	o.Say = func(s string) { said = append(said, s) }
	got, err := dataset.Fetch(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "fetching 2 tasks from file://") {
		t.Errorf("said %q, want one fetch of two tasks", said)
	}
	cache := filepath.Join(home, ".cache", "harbor", "tasks")
	for i, name := range []string{"a", "b"} {
		task := got.Tasks[i]
		if task.Commit != first || task.Name != name || jobtest.Instruction(t, task.Dir) != "Do tasks/"+name {
			t.Errorf("task %d is %+v", i, task)
		}
		// Harbor's own place in the cache holds it too.
		configured := filepath.Join(cache, filepath.FromSlash(harbor.GitCachePath(r.URL(), cfg.Tasks[i].GitCommitID, "tasks/"+name)))
		if jobtest.Instruction(t, configured) != "Do tasks/"+name {
			t.Errorf("%q does not hold the task", configured)
		}
	}

	jobtest.WriteTask(t, filepath.Join(r.Dir, "tasks", "a"), "Changed")
	second := r.Commit()
	again, err := dataset.Fetch(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if again.Tasks[0].Commit != second || jobtest.Instruction(t, again.Tasks[0].Dir) != "Changed" {
		t.Errorf("the branch has moved, and the task is %+v", again.Tasks[0])
	}
	if jobtest.Instruction(t, got.Tasks[0].Dir) != "Do tasks/a" {
		t.Error("a task that a job may be using was replaced")
	}
	if again.Tasks[1].Dir != got.Tasks[1].Dir {
		t.Error("a task of a full commit moved")
	}
	configured := filepath.Join(cache, filepath.FromSlash(harbor.GitCachePath(r.URL(), nil, "tasks/a")))
	if jobtest.Instruction(t, configured) != "Changed" {
		t.Error("the task under its configured identity is not the newest")
	}
	leaveNothing(t, cache)
}

func leaveNothing(t *testing.T, cache string) {
	t.Helper()
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

// TestFetchUsesTheCache takes a task of a full commit from the cache although
// the repository is gone, unless it is to be overwritten.
func TestFetchUsesTheCache(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "a")
	commit := r.Git("rev-parse", "HEAD")
	home, downloads := t.TempDir(), t.TempDir()
	for _, dir := range []*string{nil, &downloads} {
		cfg := sourcesConfig(t, t.TempDir())
		task := gitTask(r.URL(), "a", &commit)
		task.DownloadDir = dir
		cfg.Tasks = []jobdir.TaskConfig{task}
		if _, err := dataset.Fetch(t.Context(), cfg, fetchOptions(home)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(r.Dir); err != nil {
		t.Fatal(err)
	}
	cfg := sourcesConfig(t, t.TempDir())
	task := gitTask(r.URL(), "a", &commit)
	task.DownloadDir = &downloads
	cfg.Tasks = []jobdir.TaskConfig{task}
	got, err := dataset.Fetch(t.Context(), cfg, fetchOptions(home))
	if err != nil {
		t.Fatal(err)
	}
	if rel, err := filepath.Rel(downloads, got.Tasks[0].Dir); err != nil || filepath.ToSlash(rel) != harbor.GitCachePath(r.URL(), &commit, "a") {
		t.Errorf("the task is in %q, want below %q", got.Tasks[0].Dir, downloads)
	}
	cfg.Tasks[0].Overwrite = true
	if _, err := dataset.Fetch(t.Context(), cfg, fetchOptions(home)); err == nil || !strings.Contains(err.Error(), "git says") {
		t.Errorf("got %v, want the repository to be missed", err)
	}
}

// TestFetchOverwrite repairs a task in the cache that was changed.
func TestFetchOverwrite(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "a")
	commit := r.Git("rev-parse", "HEAD")
	home := t.TempDir()
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{gitTask(r.URL(), "a", &commit)}
	for _, overwrite := range []bool{false, true} {
		cfg.Tasks[0].Overwrite = overwrite
		got, err := dataset.Fetch(t.Context(), cfg, fetchOptions(home))
		if err != nil {
			t.Fatal(err)
		}
		dir := got.Tasks[0].Dir
		if text := jobtest.Instruction(t, dir); text != "Do a" {
			t.Errorf("overwrite %v: the instruction is %q", overwrite, text)
		}
		if err := os.WriteFile(filepath.Join(dir, "instruction.md"), []byte("tampered"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFetchTogether has several programs fetch the same tasks while the branch
// moves: nobody sees half a task.
func TestFetchTogether(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "a")
	home := t.TempDir()
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{gitTask(r.URL(), "a", nil)}
	for round := range 2 {
		jobtest.WriteTask(t, filepath.Join(r.Dir, "a"), fmt.Sprint("round ", round))
		r.Commit()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				got, err := dataset.Fetch(t.Context(), cfg, fetchOptions(home))
				if err != nil {
					t.Error(err)
					return
				}
				sum, files, err := harbor.PackageHash(got.Tasks[0].Dir)
				if err != nil || len(files) != 4 {
					t.Errorf("got %s %q, %v", sum, files, err)
				}
			})
		}
		wg.Wait()
	}
	leaveNothing(t, filepath.Join(home, ".cache", "harbor", "tasks"))
}

func TestFetchDisagreement(t *testing.T) {
	t.Parallel()
	dir := "downloads"
	a, b := gitTask("https://h/r", "a", nil), gitTask("https://h/r", "b", nil)
	b.Overwrite = true
	c := gitTask("https://h/r", "c", nil)
	c.DownloadDir = &dir
	for want, tasks := range map[string][]jobdir.TaskConfig{"overwrite": {a, b}, "download_dir": {a, c}} {
		cfg := sourcesConfig(t, t.TempDir())
		cfg.Tasks = tasks
		_, err := dataset.Fetch(t.Context(), cfg, fetchOptions(t.TempDir()))
		if err == nil || !strings.Contains(err.Error(), "must agree on "+want) {
			t.Errorf("got %v, want a disagreement on %s", err, want)
		}
	}
}

func TestFetchRegistryURL(t *testing.T) {
	t.Parallel()
	local := filepath.Join(t.TempDir(), "one")
	jobtest.WriteTask(t, local, "local")
	served, err := os.ReadFile(jobtest.Registry(t,
		jobtest.RegistryEntry("set", "1", map[string]any{"path": local}),
		jobtest.RegistryEntry("here", "1", map[string]any{"git_url": "file:///srv/secret", "path": "x"}),
		map[string]any{"name": "scripted", "version": "1", "description": "", "tasks": []any{}, "metrics": []any{map[string]any{"type": "uv-script", "kwargs": map[string]any{"script_path": "m.py"}}}},
	))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/registry.json" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(served)
	}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		name string
		d    jobdir.DatasetConfig
		want string
	}{
		{"found", jobdir.DatasetConfig{Name: new("set"), RegistryURL: new(srv.URL + "/registry.json")}, ""},
		{"not there", jobdir.DatasetConfig{Name: new("set"), RegistryURL: new(srv.URL + "/other")}, "answers 404"},
		{"not HTTP", jobdir.DatasetConfig{Name: new("set"), RegistryURL: new("file:///etc/passwd")}, "want the http or https address"},
		{"no registry", jobdir.DatasetConfig{Name: new("set")}, "Harbor's hosted registry"},
		{"not a dataset", jobdir.DatasetConfig{Name: new("nothing"), RegistryURL: new(srv.URL + "/registry.json")}, "Dataset nothing not found"},
		{"not a version", jobdir.DatasetConfig{Name: new("set"), Version: new("2"), RegistryURL: new(srv.URL + "/registry.json")}, "Version 2 of dataset set not found"},
		{"reaches for files here", jobdir.DatasetConfig{Name: new("here"), RegistryURL: new(srv.URL + "/registry.json")}, "only the command line, a configuration or a registry file here may name such"},
		{"script", jobdir.DatasetConfig{Name: new("scripted"), RegistryURL: new(srv.URL + "/registry.json")}, "metric script"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := sourcesConfig(t, t.TempDir())
			cfg.Datasets = []jobdir.DatasetConfig{c.d}
			got, err := dataset.Fetch(t.Context(), cfg, fetchOptions(t.TempDir()))
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want == "" && len(got.Datasets[0].Tasks) != 1:
				t.Errorf("got %+v", got)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestRegistryVersion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		versions []string
		want     string
	}{
		{[]string{"1.0", "head", "2.0"}, "head"},
		{[]string{"1.9", "1.10", "1.2"}, "1.10"},
		{[]string{"1.0", "2.0rc1"}, "2.0rc1"},
		{[]string{"zebra", "1.0", "apple"}, "1.0"},
		{[]string{"b", "c", "a"}, "c"},
	} {
		var r dataset.Registry
		for _, v := range c.versions {
			r.Datasets = append(r.Datasets, dataset.RegistryEntry{Name: "s", Version: v})
		}
		got, err := r.Find("s", nil)
		if err != nil || got.Version != c.want {
			t.Errorf("of %q: got %v, %v; want %q", c.versions, got, err, c.want)
		}
	}
}

func TestRegistryNear(t *testing.T) {
	t.Parallel()
	r := dataset.Registry{Datasets: []dataset.RegistryEntry{
		{Name: "terminal-bench", Version: "2"}, {Name: "terminal-bench", Version: "1"}, {Name: "aime", Version: "1"},
	}}
	for name, want := range map[string][]string{"terminal-bnch": {"terminal-bench"}, "Aime": {"aime"}, "nothing": nil} {
		_, err := r.Find(name, nil)
		missing, ok := errors.AsType[*dataset.MissingError](err)
		if !ok || !slices.Equal(missing.Near, want) {
			t.Errorf("%s: got %v, want the nearest to be %q", name, err, want)
		}
	}
}

func TestParseRegistryErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{`:                           "reading a dataset registry",
		`{}`:                          "list",
		`[{"name": "x"}]`:             "version",
		`[{"name": 1, "version": 1}]`: "name",
		`[{"name":"x","version":"1","description":"","tasks":[{}]}]`: "path",
	} {
		if _, err := dataset.ParseRegistry([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error about %q", text, err, want)
		}
	}
}

func FuzzParseRegistry(f *testing.F) {
	f.Add([]byte(`[{"name":"x","version":"1","description":"","tasks":[{"path":"a","git_url":"b"}],"metrics":[{"type":"mean"}]}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := dataset.ParseRegistry(data)
		if err != nil {
			return
		}
		for _, e := range r.Datasets {
			if _, err := r.Find(e.Name, nil); err != nil {
				t.Errorf("dataset %q has no newest version: %v", e.Name, err)
			}
		}
	})
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

// TestFetchPackageDataset takes a dataset's list of tasks from its manifest in
// the cache.
func TestFetchPackageDataset(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a, b := cachePackage(t, home, "org/a", "a"), cachePackage(t, home, "org/b", "b")
	text := fmt.Sprintf("[dataset]\nname = \"org/set\"\n\n[[tasks]]\nname = \"org/b\"\ndigest = %q\n\n[[tasks]]\nname = \"org/a\"\ndigest = %q\n", b, a)
	hexes := []string{strings.TrimPrefix(a, "sha256:"), strings.TrimPrefix(b, "sha256:")}
	slices.Sort(hexes)
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(hexes, ","))))
	put := func(hash string) {
		dir := filepath.Join(home, ".cache", "harbor", "datasets", "org", "set", hash)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "dataset.toml"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put(hash)
	fetch := func(ref string, include ...string) (*dataset.Fetched, error) {
		cfg := sourcesConfig(t, t.TempDir())
		cfg.Datasets = []jobdir.DatasetConfig{{Name: new("org/set"), Ref: &ref, TaskNames: include}}
		return dataset.Fetch(t.Context(), cfg, fetchOptions(home))
	}
	got, err := fetch("latest")
	if err != nil {
		t.Fatal(err)
	}
	if tasks := got.Datasets[0].Tasks; len(tasks) != 2 || *tasks[0].Config.Name != "org/b" || tasks[0].Digest != b {
		t.Errorf("got %+v, want the manifest's order", tasks)
	}
	if got, err = fetch("sha256:"+hash, "org/a"); err != nil || len(got.Datasets[0].Tasks) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
	put(strings.Repeat("0", 64))
	if _, err = fetch("latest"); err == nil || !strings.Contains(err.Error(), "2 are on this machine") {
		t.Errorf("got %v, want an ambiguity", err)
	}
	if _, err = fetch("sha256:" + strings.Repeat("0", 64)); err == nil || !strings.Contains(err.Error(), "it was changed") {
		t.Errorf("got %v, want a wrong hash", err)
	}
	if _, err = fetch("sha256:" + strings.Repeat("1", 64)); err == nil || !strings.Contains(err.Error(), "Harbor's hub only") {
		t.Errorf("got %v, want nothing there", err)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add("[dataset]\nname = \"org/set\"\n[[tasks]]\nname = \"o/t\"\ndigest = \"sha256:x\"\n[[files]]\npath = \"metric.py\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := dataset.ParseManifest(text); err == nil && len(m.Hash()) != 64 {
			t.Errorf("hash %q", m.Hash())
		}
	})
}
