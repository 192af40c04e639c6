package view

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/report"
)

// TestKept: a job is read anew when it has changed, or when a reader wants to be sure.
func TestKept(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	server := serve(t, Options{Dirs: []string{dir}})
	trial := filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf", "result.json")
	const page = "/jobs/0/mixed-oracle"
	had := func(path, text, cache string) bool {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cache-Control", cache)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		return strings.Contains(textOf(t, res), text)
	}
	if !had(page, "RewardFileNotFoundError", "") {
		t.Fatal("the job has no error")
	}
	was := jobtest.Read(t, trial)
	jobtest.Write(t, trial, []byte(strings.ReplaceAll(was, "RewardFileNotFoundError", "AnotherError")))
	if had(page, "AnotherError", "") {
		t.Error("a job that has not changed as a whole is read anew")
	}
	if !had(page, "AnotherError", "no-cache") {
		t.Error("a reader who wants to be sure gets what was kept")
	}
	result := filepath.Join(dir, "mixed-oracle", "result.json")
	jobtest.Write(t, trial, []byte(strings.ReplaceAll(was, "RewardFileNotFoundError", "ThirdError")))
	jobtest.Write(t, result, []byte(jobtest.Read(t, result)+"\n\n"))
	if !had(page, "ThirdError", "") {
		t.Error("a job whose result was written anew is not read")
	}
	if err := os.CopyFS(filepath.Join(dir, "another"), os.DirFS(filepath.Join(dir, "mixed-nop"))); err != nil {
		t.Fatal(err)
	}
	if !had("/", "another", "") {
		t.Error("a new job is not listed")
	}
	started := regexp.MustCompile(`"started_at": "\d+-`)
	file := filepath.Join(dir, "another", "result.json")
	jobtest.Write(t, file, []byte(started.ReplaceAllString(jobtest.Read(t, file), `"started_at": "1999-`)+"  \n"))
	if !had("/", "1999-", "") {
		t.Error("a job that has changed is listed as it was")
	}
}

// TestKeep: what was asked for longest ago makes room.
func TestKeep(t *testing.T) {
	t.Parallel()
	k := newKept()
	at := stamp{journal: 1}
	for _, name := range []string{"a", "b", "c"} {
		k.keep(keptJob{name, at, planned(mostKept / 3)})
	}
	if k.job("a", at) == nil || k.job("a", stamp{journal: 2}) != nil {
		t.Error("a job is not kept, or kept for another time")
	}
	k.keep(keptJob{"d", at, planned(mostKept / 3)})
	if k.job("b", at) != nil || k.job("a", at) == nil || k.job("d", at) == nil {
		t.Error("another one made room")
	}
	k.keep(keptJob{"large", at, planned(mostKept + 1)})
	if k.job("large", at) != nil {
		t.Error("one that is too large is kept")
	}
}

func planned(n int) *report.Job { return &report.Job{Planned: n} }

func textOf(t *testing.T, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
