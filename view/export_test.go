package view

import (
	"errors"
	"html"
	"io/fs"
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
		rel, err := filepath.Rel(dir, name)
		files[filepath.ToSlash(rel)] = jobtest.Read(t, name)
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
