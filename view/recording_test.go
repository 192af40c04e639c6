package view

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/jobtest"
)

const recordingOf = "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/recording"

// recorded puts a recording of many moments into a trial.
func recorded(t testing.TB, dir string) {
	t.Helper()
	var text strings.Builder
	text.WriteString(`{"version": 2, "width": 40, "height": 5}` + "\n")
	for i := range 150 {
		fmt.Fprintf(&text, `[%d.5, "o", "\u001b[3%dmline %d\u001b[0m <script>fetch('/beacon')</script>\r\n"]`+"\n", i, i%8, i)
	}
	jobtest.Write(t, filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf", "agent", "recording.cast"), []byte(text.String()))
}

// TestRecording: a moment of a recording is a page, and a player gets many at once.
func TestRecording(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	recorded(t, dir)
	trial := filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf", "agent")
	jobtest.Write(t, filepath.Join(trial, "other.cast"), []byte("hello"))
	server := serve(t, Options{Dirs: []string{dir}})
	at := func(parameters ...string) string {
		return server.URL + query(recordingOf, append([]string{"file", "agent/recording.cast"}, parameters...)...)
	}
	page, _ := get(t, server.URL+strings.TrimSuffix(recordingOf, "/recording"), http.StatusOK)
	if !strings.Contains(page, `href="`+recordingOf+`?file=agent%2Frecording.cast"`) {
		t.Error("the trial does not link to its recording")
	}
	page, _ = get(t, at(), http.StatusOK)
	for _, want := range []string{"150 moments", `>line 0</span>`, "&lt;script&gt;fetch", "moment=150", "&#43;500ms"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, last := range []string{at("moment", "150"), at("moment", "9999"), at("at", "1e6")} {
		if page, _ = get(t, last, http.StatusOK); !strings.Contains(page, `<span class="fore-5">line 149</span>`) || strings.Contains(page, "line 1<") {
			t.Errorf("%s is not the end", last)
		}
	}
	if page, _ = get(t, at("at", "3.7"), http.StatusOK); !strings.Contains(page, "line 3<") || strings.Contains(page, "line 4<") {
		t.Error("a time is another moment")
	}
	moments := server.URL + query(recordingOf+"/moments", "file", "agent/recording.cast", "moment", "101")
	if page, _ = get(t, moments, http.StatusOK); strings.Count(page, "<pre data-at=") != 50 || !strings.Contains(page, `data-at="149.5" data-since="&#43;2m30s"`) {
		t.Errorf("got %.300q", page)
	}
	for path, want := range map[string]int{
		at("moment", "x"): http.StatusBadRequest, at("at", "x"): http.StatusBadRequest,
		server.URL + recordingOf + "?file=agent/other.cast":                   http.StatusBadRequest,
		server.URL + recordingOf + "?file=agent/none.cast":                    http.StatusNotFound,
		server.URL + recordingOf + "?file=result.json":                        http.StatusNotFound,
		server.URL + recordingOf:                                              http.StatusNotFound,
		server.URL + recordingOf + "?file=" + url.QueryEscape("../../x.cast"): http.StatusNotFound,
	} {
		get(t, path, want)
	}
}
