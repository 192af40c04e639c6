package view

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/procid"
)

// The rules of accessibility, as a program that looks at a page.
const (
	axePackage   = "axe-core@4.14.1"
	axeIntegrity = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axe is that program.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), need.Program(t, "npm"), "pack", "--silent", "--pack-destination", dir, axePackage)
	cmd.Env = append(os.Environ(), "npm_config_cache="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("getting %s: %v\n%s", axePackage, err, out)
	}
	data := jobtest.Glob(t, filepath.Join(dir, "*.tgz"))[0]
	f, err := os.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	sum := sha512.New()
	zipped, err := gzip.NewReader(io.TeeReader(f, sum))
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for r := tar.NewReader(zipped); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Name == "package/axe.min.js" {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			script = string(text)
		}
	}
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum.Sum(nil)); got != axeIntegrity || script == "" {
		t.Fatalf("%s is %s with %d bytes of script", axePackage, got, len(script))
	}
	return script
}

// browser is one without a window.
type browser struct {
	*testing.T
	ctx  context.Context
	base string

	mu    sync.Mutex
	heard []string // errors of pages
}

// open starts a browser for a server's pages.
func open(t *testing.T, base string) *browser {
	t.Helper()
	o := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(need.Program(t, "chromium")), chromedp.NoSandbox)
	ctx, stop := chromedp.NewExecAllocator(t.Context(), o...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{T: t, ctx: ctx, base: base}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // which starts it
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) listen(e any) {
	text := ""
	switch e := e.(type) {
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprint(e.Type, " ", e.Args)
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint("exception: ", e.ExceptionDetails)
	case *log.EventEntryAdded:
		text = fmt.Sprint(e.Entry.Level, ": ", e.Entry.Text, " ", e.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, text)
}

// said are the errors since it was asked last.
func (b *browser) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	heard := b.heard
	b.heard = nil
	return heard
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 2*time.Minute) // what is waited for may never be there
	defer stop()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("%v at %s", err, b.text("location.href"))
	}
}

func (b *browser) look(path, theme string, width int64) {
	b.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, 800), chromedp.Navigate(b.base+path))
}

// text is what an expression comes to.
func (b *browser) text(expression string) string {
	b.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%.60s: %v", expression, err)
	}
	return text
}

// until waits for a page of which an expression is true.
func (b *browser) until(expression string) {
	b.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		// While a page follows another one there is nothing to ask.
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("document.readyState === 'complete' && Boolean("+expression+")"))
		if ok {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("not true: %s (%v) at %s", expression, err, b.text("location.href"))
		}
	}
}

func (b *browser) press(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// TestBrowser looks at pages in a real browser, with content that is hostile.
func TestBrowser(t *testing.T) {
	t.Parallel()
	dir, _ := hostileJob(t)
	recorded(t, dir)
	played(t, dir)
	changed(t, dir)
	namingTrajectories(t, filepath.Join(dir, "mixed-oracle", "third__BrSvs2b", "agent"))
	agents := agentsJob(t, dir)
	live := liveJob(t, dir)
	large := t.TempDir()
	manyTrials(t, filepath.Join(large, "large"), largeJob)
	s, err := New(Options{Dirs: []string{dir, large}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var beacons []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "beacon") {
			mu.Lock()
			beacons = append(beacons, r.URL.String())
			mu.Unlock()
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := open(t, server.URL)
	everyPage(b)
	everyAgent(b, agents)
	walkByKeys(b)
	scrollThrough(b)
	playIt(b)
	seeItRun(b, live)
	fromDisk(b, dir)
	if said := b.said(); len(said) > 0 {
		t.Errorf("errors in the browser:\n%s", strings.Join(said, "\n"))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(beacons) > 0 {
		t.Errorf("something hostile ran: %q", beacons)
	}
}

// everyPage: none is wider than its window, and none is hard to use for who cannot see.
func everyPage(b *browser) {
	const job, trial = "/jobs/0/mixed-oracle", "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf"
	script := axe(b.T)
	for name, path := range map[string]string{
		"jobs": "/", "no job": "/?q=nowhere", "job": job, "errors": job + "?error=RewardFileNotFoundError", "rewards": "/jobs/0/multi-oracle", "large job": "/jobs/1/large?from=700", "trial": trial,
		"trajectory": trial + "/trajectory", "file": trial + "/files/result.json?q=task", "long file": trial + "/files/agent/long.txt?at=end",
		"episode": episodeAt, "agents": "/jobs/0/agents", "agent": "/jobs/0/agents/trials/task-0__0000000/trajectory",
		"difference":     "/jobs/0/mixed-oracle/trials/third__BrSvs2b/files/answer.txt?with=third__cpKhv8Q",
		"subagents":      "/jobs/0/mixed-oracle/trials/third__BrSvs2b/trajectory",
		"subagent":       "/jobs/0/mixed-oracle/trials/third__BrSvs2b/trajectory?file=agent/sub/one.json",
		"rewards of two": "/compare?a=0/multi-oracle&b=0/multi-oracle&reward=speed",
		"recording":      recordingOf + "?file=agent/recording.cast&moment=120",
		"comparison":     "/compare?a=0/mixed-nop&b=0/mixed-oracle", "several": "/compare?job=0/mixed-nop&job=0/mixed-oracle&job=0/multi-oracle",
	} {
		for theme, width := range map[string]int64{"light": 1280, "dark": 360} {
			b.look(path, theme, width)
			if wider := b.text("String(document.documentElement.scrollWidth - innerWidth)"); wider != "0" {
				b.Errorf("%s, %d wide: wider than its window by %s", name, width, wider)
			}
			if name == "large job" && theme == "light" {
				continue // its rows have the colours of other pages, and there are many
			}
			b.text(script + "; 'read'")
			if found := b.text(`axe.run().then((r) => r.violations.map((v) => v.impact + " " + v.id + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join(", ")).join("\n"))`); found != "" {
				b.Errorf("%s, %s: %s", name, theme, found)
			}
		}
	}
}

// agentsJob makes a job of trials with the trajectories of real agents, and returns their
// names.
func agentsJob(t *testing.T, jobs string) []string {
	t.Helper()
	files := jobtest.Glob(t, filepath.Join("testdata", "agents", "*.json"))
	dir := filepath.Join(jobs, "agents")
	manyTrials(t, dir, len(files))
	names := make([]string, len(files))
	for i, trial := range jobtest.Glob(t, filepath.Join(dir, "task-*")) {
		names[i] = strings.TrimSuffix(filepath.Base(files[i]), ".json")
		jobtest.Write(t, filepath.Join(trial, "agent", "trajectory.json"), []byte(jobtest.Read(t, files[i])))
	}
	return names
}

// everyAgent: what each of the agents did can be read in a narrow window too.
func everyAgent(b *browser, names []string) {
	for i, name := range names {
		b.look(fmt.Sprintf("/jobs/0/agents/trials/task-%d__%07d/trajectory", i/4, i), "light", 360)
		if got := b.text("document.querySelector('.about').textContent + ' ' + document.querySelectorAll('.step').length"); !strings.HasPrefix(got, name) || strings.HasSuffix(got, " 0") {
			b.Errorf("the trajectory of %s: %q", name, got)
		}
		if wider := b.text("String(document.documentElement.scrollWidth - innerWidth)"); wider != "0" {
			b.Errorf("the trajectory of %s is wider than its window by %s", name, wider)
		}
	}
}

// changed puts a file into two attempts at a task, with a difference.
func changed(t *testing.T, jobs string) {
	t.Helper()
	for trial, text := range map[string]string{"third__BrSvs2b": "one\ntwo\nthree\n", "third__cpKhv8Q": "one\n2\nthree\n" + hostile} {
		jobtest.Write(t, filepath.Join(jobs, "mixed-oracle", trial, "answer.txt"), []byte(text))
	}
}

// walkByKeys goes from the list to what an agent did in a trial that failed.
func walkByKeys(b *browser) {
	b.look("/", "light", 1280)
	b.press("/")
	b.until("document.activeElement.id === 'q'")
	// A real keyboard types no "/" there; what drives this browser types it all the same.
	b.press(kb.Backspace + "mixed-oracle")
	b.press(kb.Enter)
	b.until("location.search.includes('q=mixed-oracle') && document.querySelectorAll('tr[data-row]').length === 1")
	b.press("j")
	b.press(kb.Enter)
	b.until("location.pathname.endsWith('/mixed-oracle')")
	for range 20 {
		b.press("j")
		if b.text("document.activeElement.textContent") == "no-reward__Ct8qpvf" {
			break
		}
	}
	b.press(kb.Enter)
	b.until("location.pathname.endsWith('/trials/no-reward__Ct8qpvf') && document.body.textContent.includes('RewardFileNotFoundError')")
	b.press("t")
	b.until("location.pathname.endsWith('/trajectory')")
	b.press("jj")
	if got := b.text("document.activeElement.closest('.step').querySelector('.call').textContent"); !strings.Contains(got, "<script>fetch") {
		b.Errorf("the keys lead to %q", got)
	}
	b.press("u")
	b.until("location.pathname.endsWith('/trials/no-reward__Ct8qpvf')")
	b.press("?")
	b.until("document.getElementById('help').open")
}

// scrollThrough: of a job with many trials only those near the window are there, and the
// page is as long as if all were.
func scrollThrough(b *browser) {
	const rows, height = "document.querySelectorAll('#list tr[data-row]').length", "document.documentElement.scrollHeight"
	has := func(n int) string { return fmt.Sprintf(`document.querySelector('#list tr[aria-rowindex="%d"]')`, n) }
	b.look("/jobs/1/large", "light", 1280)
	b.until("document.querySelectorAll('#list tbody').length === " + strconv.Itoa(largeJob/partRows))
	b.until(rows + " <= 500")
	before := b.text("String(" + height + ")")
	b.text("scrollTo(0, " + height + "); ''")
	b.until(has(largeJob+1) + " && !" + has(200))
	b.until(rows + " <= 500")
	if after := b.text("String(" + height + ")"); after != before {
		b.Errorf("the page was %s high and is %s", before, after)
	}
	b.text("document.getElementById('trials').scrollIntoView(); ''")
	b.until(has(2) + " && !" + has(largeJob+1))
	b.look("/jobs/1/large?from=700", "light", 1280)
	b.until(has(702) + ".getBoundingClientRect().top < innerHeight && " + has(702) + ".getBoundingClientRect().bottom > 0")
}

// playIt: a recording plays to its end, over moments that were not there at first, and
// goes where one wants it.
func playIt(b *browser) {
	const shows = "document.getElementById('screen').textContent.includes('line %d ')"
	b.look(recordingOf+"?file=agent/recording.cast&moment=90", "light", 1280)
	b.text("document.getElementById('speed').value = '8'; ''")
	b.until(fmt.Sprintf(shows, 89))
	b.text("document.getElementById('play').click(); ''")
	b.until(fmt.Sprintf(shows, 103))
	b.text("document.getElementById('moment').value = '10'; document.getElementById('moment').dispatchEvent(new Event('input')); ''")
	b.until(fmt.Sprintf(shows, 9) + " && document.getElementById('play').textContent === 'Play'")
}

// liveJob makes a job that this process runs.
func liveJob(t *testing.T, jobs string) *runningJob {
	t.Helper()
	dir := filepath.Join(jobs, "live")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(jobs, "mixed-nop"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "result.json")); err != nil {
		t.Fatal(err)
	}
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	note(t, dir, journal.Entry{Kind: journal.JobStarted, Owner: &self, Host: host})
	guard, err := jobdir.Acquire(dir, jobdir.Holder{Owner: self, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	return &runningJob{dir, guard}
}

// runningJob is a job that this process runs.
type runningJob struct {
	dir   string
	guard *jobdir.Guard
}

func note(t *testing.T, dir string, e journal.Entry) {
	t.Helper()
	w, err := journal.Open(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AppendSync(e); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// seeItRun: a page of a job that runs shows what happens, and what one has done to it stays.
func seeItRun(b *browser, job *runningJob) {
	b.look("/jobs/0/live", "dark", 1280)
	b.until("document.getElementById('live').textContent === 'live'")
	b.do(chromedp.Focus(chromedp.CSS("#q")))
	b.press("third")
	const trial = "write-greeting__CWQUuue"
	if err := os.CopyFS(filepath.Join(job.dir, trial), os.DirFS(filepath.Join(filepath.Dir(job.dir), "mixed-oracle", trial))); err != nil {
		b.Fatal(err)
	}
	note(b.T, job.dir, journal.Entry{Kind: journal.TrialFinished, Trial: trial})
	b.until("document.body.textContent.includes('" + trial + "')")
	if got := b.text("document.getElementById('q').value + ' ' + document.activeElement.id"); got != "third q" {
		b.Errorf("what was typed is %q", got)
	}
	if err := job.guard.Release(); err != nil {
		b.Fatal(err)
	}
	note(b.T, job.dir, journal.Entry{Kind: journal.JobInterrupted})
	b.until("document.getElementById('live').textContent === 'ended'")
}

// fromDisk: pages of an export choose and search by themselves.
func fromDisk(b *browser, jobs string) {
	pages, _ := exported(b.T, jobs, ExportOptions{})
	b.base = (&url.URL{Scheme: "file", Path: filepath.ToSlash(pages)}).String()
	const visible = "[...document.querySelectorAll('tr[data-row]')].filter((r) => r.offsetParent !== null)"
	b.look("/index.html?q=multi", "light", 1280)
	b.until(visible + ".length === 1")
	b.do(chromedp.Navigate(b.base + "/index.html"))
	b.press("j")
	b.until(visible + ".length > 3 && document.activeElement.closest('tr')")
	b.do(chromedp.Navigate(b.base + "/jobs/0/mixed-oracle/index.html"))
	b.do(chromedp.Click(chromedp.CSS(".legend a[href*='outcome=error']")))
	b.until(visible + ".length === 2 && document.getElementById('found').textContent === '2'")
	b.press("j")
	b.press(kb.Enter)
	b.until("location.pathname.includes('/trials/no-reward__') && getComputedStyle(document.querySelector('.bad')).borderTopWidth === '1px'")
	b.do(chromedp.Navigate(b.base + "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/files/result.json/index.html"))
	b.do(chromedp.Focus(chromedp.CSS("#q")))
	b.press("task_name" + kb.Enter)
	b.until("location.search === '?q=task_name' && document.querySelectorAll('.lines .hit').length > 0")
	b.do(chromedp.Navigate(b.base + "/jobs/0/mixed-oracle/trials/no-reward__Ct8qpvf/index.html"))
	b.do(chromedp.Click(chromedp.CSS(".recorded a")))
	b.until("document.getElementById('play') && document.getElementById('play').offsetParent !== null")
	b.text("document.getElementById('moment').value = '148'; document.getElementById('moment').dispatchEvent(new Event('input')); document.getElementById('speed').value = '8'; ''")
	b.until("document.getElementById('screen').textContent.includes('line 147 ')")
	b.text("document.getElementById('play').click(); ''")
	b.until("document.getElementById('screen').textContent.includes('line 149 ') && document.getElementById('play').textContent === 'Play'")
	b.do(chromedp.Navigate(b.base + "/index.html"))
	b.do(chromedp.Click(chromedp.CSS("a[href*='compare/']")))
	b.until("document.querySelector('h1').textContent === 'Comparison' && document.querySelectorAll('.grid tr').length > 1")
	one, err := New(Options{Dirs: []string{filepath.Join(jobs, "mixed-oracle", "no-reward__Ct8qpvf")}, Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := one.ExportPage(b.Context(), filepath.Join(pages, "one.html"), ExportOptions{}); err != nil {
		b.Fatal(err)
	}
	b.look("/one.html", "dark", 360)
	b.do(chromedp.Click(chromedp.CSS("a[data-trajectory]")))
	b.until("location.hash === '#p1' && getComputedStyle(document.querySelector('.bad')).borderTopWidth === '1px'")
	b.do(chromedp.Click(chromedp.CSS("#p1 [data-kinds] input[value=calls]")))
	b.until("document.querySelector('#p1-step-2 .call').offsetParent === null")
}
