package view

import (
	"encoding/base64"
	"errors"
	"html"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// exported writes the pages of a directory of jobs.
func exported(t testing.TB, jobs string, o ExportOptions) (dir string, done Exported) {
	t.Helper()
	s, err := New(Options{Dirs: []string{jobs}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "pages")
	if done, err = s.Export(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	return dir, done
}

// TestExport: all that a page of an export leads to is there, and it leads nowhere else.
func TestExport(t *testing.T) {
	t.Parallel()
	jobs, _ := hostileJob(t)
	played(t, jobs)
	recorded(t, jobs)
	if err := os.CopyFS(filepath.Join(jobs, "odd %name"), os.DirFS(filepath.Join(jobs, "mixed-nop"))); err != nil {
		t.Fatal(err)
	}
	shown := 0
	dir, done := exported(t, jobs, ExportOptions{Progress: func(Exported) { shown++ }})
	files, size := map[string]string{}, int64(0)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator)))] = jobtest.Read(t, name)
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for name, text := range files {
		switch path.Ext(name) {
		case ".html":
			pages++
		case ".css", ".js", ".svg", ".png":
			continue
		default:
			t.Errorf("%s is exported", name)
		}
		if strings.Contains(text, "data-changes") || strings.Contains(text, " ago</") || !strings.Contains(text, `http-equiv="Content-Security-Policy"`) {
			t.Errorf("%s is no page that stays", name)
		}
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			to, err := url.Parse(html.UnescapeString(m[1]))
			if err != nil || to.IsAbs() || strings.HasPrefix(to.Path, "/") {
				t.Errorf("%s leads to %q", name, m[1])
				continue
			}
			if _, ok := files[path.Join(path.Dir(name), to.Path)]; to.Path != "" && !ok {
				t.Errorf("%s leads to %q, which is not there", name, m[1])
			}
		}
	}
	if pages != done.Pages || size != done.Bytes || shown <= pages || pages < 40 {
		t.Errorf("%d pages, %d bytes; it says %+v and told of %d", pages, size, done, shown)
	}
	const trial = "jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/"
	for name, want := range map[string]string{
		"index.html":                                "mixed-oracle",
		trial + "index.html":                        "RewardFileNotFoundError",
		trial + "raw/agent/images/a.png":            "PNG",
		trial + "files/agent/long.txt/at-end.html":  "the end",
		trial + "files/agent/page.html/index.html":  "&lt;script&gt;",
		trial + "trajectory/file-agent_trajectory-": "step-2",
		"compare/page-":                             "jobs beside",
		trial + "recording/file-agent_recording-":   "line 149</span>",
		trial + "episode/index.html":                "It is clicked.",
		trial + "episode/from-151.html":             "place 250<",
		trial + "episode/1-1.png":                   "PNG",
	} {
		found := false
		for file, text := range files {
			found = found || strings.HasPrefix(file, name) && strings.Contains(text, want)
		}
		if !found {
			t.Errorf("there is no %s with %q", name, want)
		}
	}
}

// TestExportPlaces: what was there is left alone, and a page that fails leaves nothing.
func TestExportPlaces(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Dirs: []string{jobs(t)}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "a", "pages")
	if _, err := s.Export(t.Context(), dir, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Export(t.Context(), dir, ExportOptions{})
	if _, ok := errors.AsType[*NotEmptyError](err); !ok {
		t.Errorf("once more: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside it: %v, %v", entries, err)
	}
}

// TestExportSecrets: neither what the environment nor what a job keeps secret is in any
// file, however it is spelled there.
func TestExportSecrets(t *testing.T) {
	t.Parallel()
	const own, ofJob = `own+secret&"<value>'0123`, "the-jobs-secret-4711"
	jobs, trial := hostileJob(t)
	const odd = "odd %name" // of the job
	if err := os.Rename(filepath.Join(jobs, "mixed-oracle"), filepath.Join(jobs, odd)); err != nil {
		t.Fatal(err)
	}
	trial = filepath.Join(jobs, odd, filepath.Base(trial))
	config := jobtest.Read(t, filepath.Join(jobs, odd, "config.json"))
	env := regexp.MustCompile(`"env": \{\}`)
	if !env.MatchString(config) {
		t.Fatal("the configuration has no place for it")
	}
	jobtest.Write(t, filepath.Join(jobs, odd, "config.json"), []byte(env.ReplaceAllString(config, `"env": {"SOME_API_KEY": "`+ofJob+`"}`)))
	jobtest.Write(t, filepath.Join(trial, "agent", "log.txt"), []byte("a "+own+" b "+ofJob+" c "+url.QueryEscape(own)+"\n"))
	jobtest.Write(t, filepath.Join(trial, "agent", ofJob+".txt"), []byte("its name"))
	dir, _ := exported(t, jobs, ExportOptions{Environ: []string{"MY_API_KEY=" + own, "HOME=/root"}})
	marks := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := html.UnescapeString(jobtest.Read(t, name))
		for _, bad := range []string{own, ofJob, url.QueryEscape(own)} {
			if strings.Contains(text, bad) || strings.Contains(name, bad) {
				t.Errorf("%s has %q", name, bad)
			}
		}
		marks += strings.Count(text, "[REDACTED:")
		return nil
	})
	if err != nil || marks < 3 {
		t.Errorf("%d marks, %v", marks, err)
	}
}

func TestSafeName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"hello-world__AbCdEfG": "hello-world__AbCdEfG", "log.txt": "log.txt", ".hidden": "_hidden-", "a b.txt": "a_b-", "..": "_.-", "a:b": "a_b-", strings.Repeat("x", 300): strings.Repeat("x", 70) + "-",
	} {
		got := safeName(name)
		if !strings.HasPrefix(got, want) || len(got) > 100 || got != name && got == want {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	if safeName("a b") == safeName("a_b") || safeName("a b") == safeName("a:b") {
		t.Error("two names are one")
	}
}

// TestExportPage: a trial with its trajectory, and a trajectory by itself, are one page.
func TestExportPage(t *testing.T) {
	t.Parallel()
	const ofJob = "the-jobs-secret-4711"
	dir, trial := hostileJob(t)
	picture := played(t, dir)
	config := filepath.Join(trial, "config.json")
	jobtest.Write(t, config, []byte(strings.Replace(jobtest.Read(t, config), `"env": {}`, `"env": {"SOME_API_KEY": "`+ofJob+`"}`, 1)))
	jobtest.Write(t, filepath.Join(trial, "agent", "log.txt"), []byte("it is "+ofJob+"\n"))
	jobtest.Write(t, filepath.Join(trial, "agent", ofJob+".txt"), []byte("its name\n"))
	for name, of := range map[string]struct {
		dir  string
		want []string
	}{
		"trial":      {trial, []string{"RewardFileNotFoundError", `href="#p`, `id="p1-step-2"`, "it is [REDACTED:SOME_API_KEY]", "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture), "&lt;script&gt;fetch", "place 250<"}},
		"trajectory": {filepath.Join(trial, "agent", "trajectory.json"), []string{`id="p0-step-2"`, "data:image/png;base64,", "&lt;script&gt;fetch"}},
	} {
		s, err := New(Options{Dirs: []string{of.dir}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "page.html")
		done, err := s.ExportPage(t.Context(), file, ExportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		page := jobtest.Read(t, file)
		if done.Pages != 1 || done.Bytes < int64(len(page)) {
			t.Errorf("%s: %+v", name, done)
		}
		for _, want := range of.want {
			if !strings.Contains(page, want) {
				t.Errorf("%s: no %q", name, want)
			}
		}
		if strings.Contains(page, ofJob) || strings.Contains(page, "<form class") || strings.Contains(page, "<link") {
			t.Errorf("%s: it has a secret, or needs something", name)
		}
		seen := map[string]bool{}
		for _, m := range regexp.MustCompile(`\bid="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			if seen[m[1]] {
				t.Errorf("%s: two things are called %q", name, m[1])
			}
			seen[m[1]] = true
		}
		for _, m := range address.FindAllStringSubmatch(page, -1) {
			if to, ok := strings.CutPrefix(m[1], "#"); (!ok || !seen[to]) && !strings.HasPrefix(m[1], "data:image/png;") {
				t.Errorf("%s: it leads to %q", name, m[1])
			}
		}
	}
	fails := func(of string) error {
		s, err := New(Options{Dirs: []string{of}, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "page.html")
		_, err = s.ExportPage(t.Context(), file, ExportOptions{})
		if _, stat := os.Stat(file); err == nil || stat == nil {
			t.Errorf("%s is exported", of)
		}
		return err
	}
	if _, ok := errors.AsType[*ManyPagesError](fails(filepath.Dir(trial))); !ok {
		t.Error("a job fails otherwise")
	}
	if err := fails(config); !strings.Contains(err.Error(), config) {
		t.Errorf("what is no trajectory: %v", err)
	}
}

// TestByThemselves: a trial and a trajectory can be given, and lead to nothing beside them.
func TestByThemselves(t *testing.T) {
	t.Parallel()
	_, trial := hostileJob(t)
	one := serve(t, Options{Dirs: []string{trial}})
	if page, _ := get(t, one.URL+"/", http.StatusOK); !strings.Contains(page, "RewardFileNotFoundError") {
		t.Error("the trial is not the first page")
	}
	if err := os.Rename(filepath.Join(trial, "agent", "trajectory.json"), filepath.Join(trial, "agent", "what i did.json")); err != nil {
		t.Fatal(err)
	}
	bare := serve(t, Options{Dirs: []string{filepath.Join(trial, "agent", "what i did.json")}})
	if page, _ := get(t, bare.URL+"/", http.StatusOK); !strings.Contains(page, "step-2") {
		t.Error("the trajectory is not the first page")
	}
	get(t, bare.URL+"/trajectories/0/raw/images/a.png", http.StatusOK)
	for _, path := range []string{"/trajectories/0/raw/log.txt", "/trajectories/0/raw/..%2fresult.json", "/trajectories/0/trajectory?file=../config.json", "/trajectories/1/trajectory", "/jobs/0/images", "/jobs/0/agent"} {
		get(t, bare.URL+path, http.StatusNotFound)
	}
	both := serve(t, Options{Dirs: []string{trial, filepath.Join(trial, "agent", "what i did.json")}})
	if page, _ := get(t, both.URL+"/", http.StatusOK); !strings.Contains(page, "/trajectories/1/trajectory") || !strings.Contains(page, "/trials/no-reward__Ct8qpvf") {
		t.Error("what was given is not listed")
	}
}
