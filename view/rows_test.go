package view

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRows: the parts of a list together have every trial once, with a script and without.
func TestRows(t *testing.T) {
	t.Parallel()
	const trials = 2*partsPerPage*partRows + 50
	dir := t.TempDir()
	manyTrials(t, filepath.Join(dir, "large"), trials)
	server := serve(t, Options{Dirs: []string{dir}})
	name := regexp.MustCompile(`<tr data-row aria-rowindex="(\d+)">.*?<td class="name"><a [^>]*>([^<]*)</a>`)
	type list struct{ names, places map[string]int }
	read := func(l list, page string) {
		for _, m := range name.FindAllStringSubmatch(page, -1) {
			l.places[m[1]]++
			l.names[m[2]]++
		}
	}
	check := func(how string, l list, want int) {
		t.Helper()
		if len(l.names) != want || len(l.places) != want || l.places["2"] != 1 || l.places[fmt.Sprint(want+1)] != 1 {
			t.Errorf("%s: %d names at %d places, want %d", how, len(l.names), len(l.places), want)
		}
		for n, times := range l.names {
			if times != 1 {
				t.Errorf("%s: %s is there %d times", how, n, times)
			}
		}
	}
	newList := func() list { return list{map[string]int{}, map[string]int{}} }

	parts := newList()
	for from := 0; from < trials; from += partRows {
		page, header := get(t, fmt.Sprintf("%s/jobs/0/large/rows?from=%d", server.URL, from), http.StatusOK)
		if !strings.HasPrefix(page, "<tr") || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			t.Fatalf("a part is %.80q", page)
		}
		read(parts, page)
	}
	check("parts", parts, trials)

	pages := newList()
	next := regexp.MustCompile(`<a rel="next" href="([^"]*)#trials">`)
	for path := "/jobs/0/large"; path != ""; {
		page, _ := get(t, server.URL+path, http.StatusOK)
		read(pages, page)
		path = ""
		if m := next.FindStringSubmatch(page); m != nil {
			path = m[1]
		}
	}
	check("pages", pages, trials)

	some := newList()
	page, _ := get(t, server.URL+"/jobs/0/large/rows?task=task-26", http.StatusOK) // task-26, and task-260 to 262
	read(some, page)
	check("a task", some, 14)
	page, _ = get(t, server.URL+"/jobs/0/large?task=task-1&from=100", http.StatusOK)
	if !strings.Contains(page, `data-rows="/jobs/0/large/rows?task=task-1"`) {
		t.Error("the parts are of another filter")
	}
	for _, path := range []string{"/jobs/0/large?from=-1", "/jobs/0/large/rows?from=x"} {
		if page, _ := get(t, server.URL+path, http.StatusBadRequest); !strings.Contains(page, "the number of a trial") {
			t.Errorf("%s: %s", path, page)
		}
	}
	if page, _ := get(t, server.URL+"/jobs/0/large/rows?from=999999999999", http.StatusOK); strings.Contains(page, "<tr") {
		t.Errorf("behind the end is %.80q", page)
	}
}

// TestMatrix: of many tasks a page shows some, and all when one asks for it.
func TestMatrix(t *testing.T) {
	t.Parallel()
	const tasks = mostTasks + 5
	dir := t.TempDir()
	manyTrials(t, filepath.Join(dir, "large"), 4*tasks)
	server := serve(t, Options{Dirs: []string{dir}})
	page, _ := get(t, server.URL+"/jobs/0/large", http.StatusOK)
	if n := strings.Count(page, `class="line"`); n != mostTasks || !strings.Contains(page, `5 more tasks: <a href="/jobs/0/large?tasks=all#matrix">`) {
		t.Errorf("%d tasks are shown, and the others are not offered", n)
	}
	page, _ = get(t, server.URL+"/jobs/0/large?tasks=all", http.StatusOK)
	if n := strings.Count(page, `class="line"`); n != tasks || strings.Contains(page, "more task") {
		t.Errorf("%d of %d tasks are shown", n, tasks)
	}
	if n := strings.Count(page, `class="cell `); n != 4*tasks {
		t.Errorf("%d attempts are shown", n)
	}
}
