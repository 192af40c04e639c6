package view

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
)

// jobs is a directory with a copy of the jobs that Harbor wrote.
func jobs(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for _, src := range jobtest.Fixtures() {
		if err := os.CopyFS(filepath.Join(dir, filepath.Base(src)), os.DirFS(src)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func serve(t testing.TB, o Options) *httptest.Server {
	t.Helper()
	o.Now = time.Now
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server
}

// get asks for a page and returns it, after what holds of every page was looked at.
func get(t testing.TB, url string, want int) (body string, header http.Header) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != want {
		t.Fatalf("%s: %s, want %d\n%s", url, res.Status, want, data)
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("%s: policy %q", url, csp)
	}
	if res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: browsers may guess what it is", url)
	}
	return string(data), res.Header
}

var (
	address = regexp.MustCompile(`(?:href|src|action)="([^"]*)"`)
	// What is no tag has neither "<" nor ">" as such.
	tag    = regexp.MustCompile(`<[^<>]*>`)
	inline = regexp.MustCompile(`(?i)\son[a-z]+=|\sstyle=|javascript:`)
	script = regexp.MustCompile(`(?i)<script[^>]*>[^<]`)
)

// crawl asks for every page that can be reached, and returns them by their address.
func crawl(t testing.TB, server *httptest.Server) map[string]string {
	t.Helper()
	seen, todo := map[string]string{}, []string{"/"}
	for len(todo) > 0 && len(seen) < 500 {
		at := todo[0]
		todo = todo[1:]
		at, _, _ = strings.Cut(at, "#")
		if _, ok := seen[at]; ok || at == "" || strings.HasSuffix(at, "/changes") {
			continue
		}
		body, header := get(t, server.URL+at, http.StatusOK)
		seen[at] = body
		if !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
			continue
		}
		if found := script.FindString(body) + inline.FindString(strings.Join(tag.FindAllString(body, -1), "\n")); found != "" {
			t.Errorf("%s has %q", at, found)
		}
		for _, m := range address.FindAllStringSubmatch(body, -1) {
			to := strings.ReplaceAll(m[1], "&amp;", "&")
			if strings.Contains(to, "://") || !strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "#") {
				t.Errorf("%s leads to %q", at, to)
			}
			if strings.HasPrefix(to, "/") && to != "/compare" {
				todo = append(todo, to)
			}
		}
	}
	return seen
}

// TestPages: every page of jobs that Harbor wrote can be reached, and says what it is for.
func TestPages(t *testing.T) {
	t.Parallel()
	server := serve(t, Options{Dirs: []string{jobs(t)}})
	pages := crawl(t, server)
	for at, want := range map[string][]string{
		"/":                    {"mixed-oracle", "mixed-nop", "multi-oracle", "with a reward"},
		"/jobs/0/mixed-oracle": {"Scores", "95% interval", "Errors by cause", "RewardFileNotFoundError", "Tasks and attempts", "Time per phase"},
		"/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf":                   {"RewardFileNotFoundError", "Timeline", "verifier/test-stdout.txt"},
		"/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/files/result.json": {"no-reward__Ct8qpvf"},
	} {
		page, ok := pages[at]
		if !ok {
			t.Errorf("%s is not reached", at)
		}
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s has no %q", at, text)
			}
		}
	}
	if len(pages) < 30 {
		t.Errorf("only %d pages", len(pages))
	}
}

// TestFilter: what is filtered is part of the address.
func TestFilter(t *testing.T) {
	t.Parallel()
	server := serve(t, Options{Dirs: []string{jobs(t)}})
	page, _ := get(t, server.URL+"/jobs/0/mixed-oracle?error=RewardFileNotFoundError", http.StatusOK)
	if rows := strings.Count(page, "<tr data-row "); rows != 2 {
		t.Errorf("%d trials with the error", rows)
	}
	page, _ = get(t, server.URL+"/?q=nop", http.StatusOK)
	if !strings.Contains(page, "mixed-nop") || strings.Contains(page, `/multi-oracle"`) {
		t.Error("the list is not searched")
	}
	page, _ = get(t, server.URL+"/?q=nowhere", http.StatusOK)
	if !strings.Contains(page, "No job matches") {
		t.Error("nothing found is not said")
	}
}

// TestCompare: two jobs of the list are held against each other, the older one first.
func TestCompare(t *testing.T) {
	t.Parallel()
	const odd = "odd %name"
	dir := jobs(t)
	if err := os.CopyFS(filepath.Join(dir, odd), os.DirFS(filepath.Join(dir, "mixed-nop"))); err != nil {
		t.Fatal(err)
	}
	server := serve(t, Options{Dirs: []string{dir}})
	page, _ := get(t, server.URL+"/compare?job=0/mixed-nop&job=0/mixed-oracle", http.StatusOK)
	for _, want := range []string{"mixed-oracle</a> → <a", "Difference", "<circle", "sign test"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	trials := regexp.MustCompile(`<a href="(/jobs/0/mixed-oracle\?task=[^"#]*third)#trials">`).FindStringSubmatch(page)
	if trials == nil {
		t.Fatal("no link to the trials of a task")
	}
	if of, _ := get(t, server.URL+trials[1], http.StatusOK); strings.Count(of, "<tr data-row ") != 2 {
		t.Errorf("%s does not lead to the trials of the task", trials[1])
	}
	get(t, server.URL+"/compare?job=0/mixed-nop", http.StatusBadRequest)
	list, _ := get(t, server.URL+"/", http.StatusOK)
	if !strings.Contains(list, `value="0/`+odd+`"`) {
		t.Error("the job with an odd name is not to be chosen")
	}
	page, _ = get(t, server.URL+"/compare?"+url.Values{"job": {"0/mixed-nop", "0/" + odd}}.Encode(), http.StatusOK)
	if !strings.Contains(page, `href="/jobs/0/odd%20%25name"`) {
		t.Error("the job with an odd name is not compared")
	}
	get(t, server.URL+"/compare?a=7/x&b=0/mixed-nop", http.StatusBadRequest)
	get(t, server.URL+"/compare?job=0/mixed-nop&job=0/nowhere&job=0/mixed-oracle", http.StatusOK)
}

// TestCompareSeveral: several jobs are held beside the oldest, however they were chosen.
func TestCompareSeveral(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	better := filepath.Join(dir, "better")
	if err := os.CopyFS(better, os.DirFS(filepath.Join(dir, "mixed-oracle"))); err != nil {
		t.Fatal(err)
	}
	for _, result := range jobtest.Glob(t, filepath.Join(better, "*", "result.json")) {
		jobtest.Write(t, result, []byte(strings.ReplaceAll(jobtest.Read(t, result), `"reward": 0.1`, `"reward": 0.9`)))
	}
	started := regexp.MustCompile(`"started_at": "\d+-`)
	file := filepath.Join(better, "result.json")
	jobtest.Write(t, file, []byte(started.ReplaceAllString(jobtest.Read(t, file), `"started_at": "2030-`)))
	server := serve(t, Options{Dirs: []string{dir}})
	page, _ := get(t, server.URL+"/compare?job=0/better&job=0/mixed-nop&job=0/mixed-oracle&job=0/multi-oracle", http.StatusOK)
	for _, want := range []string{
		`3 jobs beside <a href="/jobs/0/mixed-oracle">`, "&#43;0.200", "-0.358", "they have no task in common", // tenth has 0.9 for 0.1: 0.8 over 4 tasks
		`href="/compare?a=0%2Fmixed-oracle&amp;b=0%2Fbetter"`, `<td class="num full"><a href="/jobs/0/better?task=mixed%2Ftenth#trials">0.900</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
	if first := strings.Index(page, `class="name">mixed/write-greeting<`); first < 0 || first > strings.Index(page, `class="name">mixed/tenth<`) {
		t.Error("what differs most is not the first")
	}
	q := url.Values{}
	for range mostCompared + 1 {
		q.Add("job", "0/mixed-nop")
	}
	get(t, server.URL+"/compare?"+q.Encode(), http.StatusBadRequest)
}

// hostile is what a task or an agent may write.
const hostile = `<script>fetch('/beacon')</script><img src=x onerror="fetch('/beacon')"> javascript:alert(1) ` + "\x1b[31mred\x1b[0m \u202egnp.exe"

// hostileJob is a job whose names, texts and files are hostile.
func hostileJob(t testing.TB) (dir, trial string) {
	t.Helper()
	dir = jobs(t)
	trial = filepath.Join(dir, "mixed-oracle", "no-reward__Ct8qpvf")
	result := jobtest.Read(t, filepath.Join(trial, "result.json"))
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	message := regexp.MustCompile(`"exception_message": "[^"]*"`)
	if !message.MatchString(result) {
		t.Fatal("the result has no message")
	}
	result = message.ReplaceAllLiteralString(result, `"exception_message": `+string(text))
	jobtest.Write(t, filepath.Join(trial, "result.json"), []byte(result))
	jobtest.Write(t, filepath.Join(trial, "agent", "page.html"), []byte("<html>"+hostile))
	jobtest.Write(t, filepath.Join(trial, "agent", "drawing.svg"), []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>fetch('/beacon')</script></svg>`))
	jobtest.Write(t, filepath.Join(trial, "agent", "<script>x<"), []byte("name"))
	jobtest.Write(t, filepath.Join(trial, "agent", "images", "a.png"), []byte("\x89PNG\r\n\x1a\n"))
	jobtest.Write(t, filepath.Join(trial, "agent", "zeros.bin"), make([]byte, 100))
	jobtest.Write(t, filepath.Join(trial, "agent", "long.txt"), []byte(strings.Repeat("x", 3*sliceSize)+"\nthe end\n"))
	jobtest.Write(t, filepath.Join(trial, "agent", "trajectory.json"), []byte(`{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":`+string(text)+`,"version":"1"},"steps":[
		{"step_id":1,"source":"user","message":`+string(text)+`},
		{"step_id":2,"source":"agent","message":[{"type":"text","text":`+string(text)+`},{"type":"image","source":{"media_type":"image/png","path":"../../../../../etc/x.png"}},
		{"type":"image","source":{"media_type":"image/png","path":"http://elsewhere/x.png"}},{"type":"image","source":{"media_type":"image/png","path":"images/a.png"}}],
		"reasoning_content":`+string(text)+`,"tool_calls":[{"tool_call_id":"c","function_name":`+string(text)+`,"arguments":{`+string(text)+`:`+string(text)+`}}],
		"observation":{"results":[{"source_call_id":"c","content":`+string(text)+`}]}}]}`))
	huge(t, dir)
	return dir, trial
}

// huge makes a trial with names of 1 MB.
func huge(t testing.TB, dir string) {
	t.Helper()
	const name = "write-greeting__PPSRCbx"
	long := strings.Repeat("n", 1<<20)
	trial := filepath.Join(dir, "mixed-oracle", name)
	result := jobtest.Read(t, filepath.Join(trial, "result.json"))
	for _, member := range []string{"task_name", "source"} {
		with := regexp.MustCompile(`"` + member + `": "[^"]*"`)
		if !with.MatchString(result) {
			t.Fatalf("the result has no %s", member)
		}
		result = with.ReplaceAllString(result, `"`+member+`": "`+long+`"`)
	}
	jobtest.Write(t, filepath.Join(trial, "result.json"), []byte(result))
	jobtest.Write(t, filepath.Join(trial, "agent", "trajectory.json"), []byte(`{"schema_version":"ATIF-v1.7","session_id":"s","agent":{"name":"`+long+`","version":"1"},"steps":[
		{"step_id":1,"source":"agent","message":"`+long+`","tool_calls":[{"tool_call_id":"`+long+`","function_name":"`+long+`","arguments":{"`+long+`":1}}]}]}`))
}

// TestHostile: what others wrote is shown as text, whatever it is.
func TestHostile(t *testing.T) {
	t.Parallel()
	dir, _ := hostileJob(t)
	server := serve(t, Options{Dirs: []string{dir}})
	pages := crawl(t, server)
	shown := 0
	for at, page := range pages {
		if strings.Contains(at, "/raw/") || strings.Contains(at, "/static/") {
			continue
		}
		for _, bad := range []string{"<script>fetch", "<img src=x", "\x1b[", "\u202e", "elsewhere/x.png\"", "etc/x.png\""} {
			if strings.Contains(page, bad) {
				t.Errorf("%s has %q", at, bad)
			}
		}
		if strings.Contains(page, "&lt;script&gt;fetch") {
			shown++
		}
		if len(page) > 1<<20 {
			t.Errorf("%s has %d bytes", at, len(page))
		}
	}
	const trial = "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf"
	if page := pages[trial+"/trajectory?file=agent%2Ftrajectory.json"]; !strings.Contains(page, trial+"/raw/agent/images/a.png") {
		t.Error("an image of the trial's own is not shown")
	}
	if shown < 4 {
		t.Errorf("the text is on %d pages", shown)
	}
	for name, kind := range map[string]string{"agent/page.html": "application/octet-stream", "agent/drawing.svg": "application/octet-stream"} {
		_, header := get(t, server.URL+trial+"/raw/"+name, http.StatusOK)
		if header.Get("Content-Type") != kind || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment") || !strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %v", name, header)
		}
	}
	if page, _ := get(t, server.URL+trial+"/files/agent/zeros.bin", http.StatusOK); !strings.Contains(page, "This is no text") {
		t.Error("zeros are shown as text")
	}
	page, _ := get(t, server.URL+trial+"/files/agent/long.txt?at=end&q=END", http.StatusOK)
	if !strings.Contains(page, "the end") || !strings.Contains(page, "1 line") || len(page) > 2*sliceSize {
		t.Errorf("the end of a long file: %d bytes", len(page))
	}
}

// TestPaths: nothing outside of the directories, and nothing that is no file, is read.
func TestPaths(t *testing.T) {
	t.Parallel()
	dir, trial := hostileJob(t)
	secret := filepath.Join(t.TempDir(), "secret")
	jobtest.Write(t, secret, []byte("the secret"))
	jobtest.Write(t, filepath.Join(dir, ".hidden", "result.json"), []byte("{}"))
	for name, to := range map[string]string{"link.txt": secret, "up": "../../..", "outer.txt": "../../../../" + filepath.Base(filepath.Dir(secret)) + "/secret"} {
		if err := os.Symlink(to, filepath.Join(trial, "agent", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "mixed-oracle", "linked__AAAAAAA")); err != nil {
		t.Fatal(err)
	}
	server := serve(t, Options{Dirs: []string{dir}})
	const at = "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf"
	for _, path := range []string{
		at + "/raw/agent/link.txt", at + "/files/agent/link.txt", at + "/raw/agent/outer.txt", at + "/raw/agent/up/mixed-nop/result.json",
		at + "/raw/..%2f..%2f..%2fsecret", at + "/raw/%2e%2e/%2e%2e/result.json", at + "/files/agent", at + "/raw/", at + "/trajectory?file=../result.json",
		"/jobs/0/.hidden", "/jobs/0/..", "/jobs/0/%2e%2e%2f", "/jobs/1/mixed-oracle", "/jobs/-1/mixed-oracle", "/jobs/x/mixed-oracle",
		"/jobs/0/mixed-oracle/trials/linked__AAAAAAA", "/jobs/0/mixed-oracle/trials/linked__AAAAAAA/raw/secret", "/static/../pages/job.html", "/nothing", "/jobs",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req) // follows no redirection
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(res.Body)
		if err = errorsOf(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK || strings.Contains(string(data), "the secret") || strings.Contains(string(data), dir) {
			t.Errorf("%s: %s\n%s", path, res.Status, data)
		}
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// answer is what matters of one.
type answer struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
}

// TestWhoLooks: pages elsewhere cannot read through a browser, and with a token nobody else
// can.
func TestWhoLooks(t *testing.T) {
	t.Parallel()
	ask := func(server *httptest.Server, path, host string, cookies []*http.Cookie) answer {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if host != "" {
			req.Host = host
		}
		for _, c := range cookies {
			req.AddCookie(c)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		return answer{res.StatusCode, res.Header, res.Cookies()}
	}
	dir := jobs(t)
	open := serve(t, Options{Dirs: []string{dir}})
	for host, want := range map[string]int{"": 200, "localhost:1": 200, "[::1]:80": 200, "127.9.9.9": 200, "evil.example": 403, "localhost.evil.example:80": 403, "192.0.2.1": 403} {
		if res := ask(open, "/", host, nil); res.status != want {
			t.Errorf("asked as %q: %d", host, res.status)
		}
	}
	res, err := http.Post(open.URL, "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _ = res.Body.Close(); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("posting: %s", res.Status)
	}
	closed := serve(t, Options{Dirs: []string{dir}, Token: "right"})
	for _, path := range []string{"/", "/?token=wrong", "/static/view.css", "/?token="} {
		if res := ask(closed, path, "", nil); res.status != http.StatusForbidden {
			t.Errorf("%s without the token: %d", path, res.status)
		}
	}
	shown := ask(closed, "/?token=right&q=x", "evil.example", nil)
	if shown.status != http.StatusSeeOther || shown.header.Get("Location") != "/?q=x" || len(shown.cookies) != 1 || !shown.cookies[0].HttpOnly {
		t.Errorf("with it: %+v", shown)
	}
	if res := ask(closed, "/", "", shown.cookies); res.status != http.StatusOK {
		t.Errorf("with the cookie: %d", res.status)
	}
}

// TestChanges: a page hears that its job has changed.
func TestChanges(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	server := serve(t, Options{Dirs: []string{dir}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/jobs/0/mixed-oracle/changes", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	jobtest.Write(t, filepath.Join(dir, "mixed-oracle", "journal.jsonl"), []byte("{}\n"))
	var got []byte
	for !strings.Contains(string(got), "event: change\n") {
		buf := make([]byte, 100)
		n, err := res.Body.Read(buf)
		if got = append(got, buf[:n]...); err != nil {
			t.Fatalf("%v, after %q", err, got)
		}
	}
}

// TestOneJob: a job can be shown alone, and then nothing beside it.
func TestOneJob(t *testing.T) {
	t.Parallel()
	dir := jobs(t)
	server := serve(t, Options{Dirs: []string{filepath.Join(dir, "mixed-oracle"), filepath.Join(dir, "multi-oracle")}})
	page, _ := get(t, server.URL+"/", http.StatusOK)
	if strings.Contains(page, "mixed-nop") || !strings.Contains(page, "/jobs/1/multi-oracle") {
		t.Error("the list has other jobs, or lacks one")
	}
	get(t, server.URL+"/jobs/0/mixed-nop", http.StatusNotFound)
	if _, err := New(Options{Dirs: []string{filepath.Join(dir, "nowhere")}, Now: time.Now}); err == nil {
		t.Error("a directory that is not there is no error")
	}
	if _, err := New(Options{Now: time.Now}); err == nil {
		t.Error("no directory is no error")
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\x1b[1mb\x1b]0;title\x07c": "abc", "a\r\nb\tc": "a\nb\tc", "\xff\x00": "\uFFFD\uFFFD", "\u202eabc": "\uFFFDabc", "ok é 漢": "ok é 漢",
	} {
		if got := plain(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if head, more := cut("aé", 2); head != "a" || more != 2 {
		t.Errorf("%q, %d", head, more)
	}
	if !slices.Equal(stack([]share{{Percent: 10}, {Percent: 20}, {Percent: 5}}), []float64{0, 10, 30}) {
		t.Error("shares are not one behind the other")
	}
}
