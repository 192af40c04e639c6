package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox/fake"
)

const mineFile = `name = "mine"
summary = "an agent"
version = "1.2.3"
output = "mine.txt"
[install]
script = "make it"
[check]
command = "mine --version"
pattern = '\d+\.\d+\.\d+'
[model]
required = false
[run]
command = "work on it"
`

// withMine is a harness with the agent of a file, of tasks with images of their own.
// installing is what its installation does.
func withMine(t testing.TB, tasks []string, installing fake.Handler) *harness {
	t.Helper()
	dataset := writeDataset(t, tasks...)
	for _, name := range tasks { // images that differ by the first letter
		if err := os.WriteFile(filepath.Join(dataset, name, "environment/Dockerfile"), []byte("FROM "+name[:1]+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	there := func(p *fake.Process) bool {
		for _, at := range []string{"mine", "mine-own"} {
			if _, err := p.Sandbox.ReadFile("/installed-agent/" + at + "/bin/mine"); err == nil {
				return true
			}
		}
		return false
	}
	h := newHarness(t, dataset, fake.Config{Rules: []fake.Rule{
		fake.On("command -v -- mine", fake.Exit(1)),
		fake.On("mine --version", func(_ context.Context, p *fake.Process) (int, error) {
			if !there(p) {
				return 127, nil
			}
			_, _ = p.Stdout.Write([]byte("1.2.3\n"))
			return 0, nil
		}),
		fake.On("make it", installing, func(_ context.Context, p *fake.Process) (int, error) {
			return 0, p.Sandbox.WriteFile(p.Env["PREFIX"]+"/bin/mine", []byte("x"), 0o755)
		}),
		grant("1"),
	}})
	d, err := installed.Parse("mine.toml", mineFile)
	if err != nil {
		t.Fatal(err)
	}
	h.runner.Trials.Agents = append(agents.All(), d.Entry())
	h.runner.Trials.Layers = &layer.Store{Dir: filepath.Join(t.TempDir(), "agents"), Now: time.Now}
	h.cfg.Agents[0].Name = new("mine")
	return h
}

// messages are those of the events of a kind, sorted.
func (h *harness) messages(kind job.EventKind) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, e := range h.events {
		if e.Kind == kind {
			all = append(all, e.Message)
		}
	}
	slices.Sort(all)
	return all
}

// TestInstallOnce: for the trials of a job the agent is installed once for each image,
// before the job starts, and for those of the next one not at all.
func TestInstallOnce(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	count := func(context.Context, *fake.Process) (int, error) { n.Add(1); return 0, nil }
	h := withMine(t, []string{"a-one", "a-two", "b-one"}, count)
	h.cfg.NAttempts, h.cfg.NConcurrentTrials = 2, 4
	out := h.run(t)
	if out.Result.Stats.NCompletedTrials != 6 || n.Load() != 2 || out.Result.Stats.NErroredTrials > 0 {
		t.Errorf("%d trials, %d installations", out.Result.Stats.NCompletedTrials, n.Load())
	}
	told := h.messages(job.EventInstall)
	if len(told) != 4 || !strings.HasPrefix(told[0], "installed mine 1.2.3 for ") || !strings.HasSuffix(told[3], ", once for all trials") {
		t.Errorf("told %q", told)
	}
	first := slices.IndexFunc(h.events, func(e job.Event) bool { return e.Kind == job.EventJobStart })
	last := len(h.events) - 1
	for ; h.events[last].Kind != job.EventInstall; last-- {
	}
	if last > first {
		t.Error("the job starts before all is installed")
	}
	h.cfg.JobName = "the-next"
	if h.run(t); n.Load() != 2 || h.backend.Live() != 0 {
		t.Errorf("%d installations, %d sandboxes live", n.Load(), h.backend.Live())
	}
}

// TestInstallFailsForOneImage: that is a warning, and the trials of that image try it again.
func TestInstallFailsForOneImage(t *testing.T) {
	t.Parallel()
	h := withMine(t, []string{"a-one", "b-one"}, func(_ context.Context, p *fake.Process) (int, error) {
		if strings.HasPrefix(p.Sandbox.Spec().Image.Build.Name, "b") {
			_, _ = p.Stdout.Write([]byte("no network\n"))
			return 1, nil
		}
		return 0, nil
	})
	out := h.run(t)
	warned := h.messages(job.EventWarning)
	if len(warned) != 1 || !strings.Contains(warned[0], "installing mine for b-one: ") || !strings.Contains(warned[0], "no network") || !strings.HasSuffix(warned[0], "its trials try it again") {
		t.Errorf("warned %q", warned)
	}
	if s := out.Result.Stats; s.NCompletedTrials != 2 || s.NErroredTrials != 1 {
		t.Errorf("%+v", s)
	}
}

// TestInstallFails: where nothing can be installed the job does not start, and writes
// nothing.
func TestInstallFails(t *testing.T) {
	t.Parallel()
	h := withMine(t, []string{"a-one", "b-one"}, fake.InOrder(fake.Print("no network\n"), fake.Exit(1)))
	_, err := h.runner.Run(t.Context(), h.prepare(t))
	if err == nil || !strings.Contains(err.Error(), `starting job "the-job": installing mine for `) || !strings.Contains(err.Error(), "no network") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(h.dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the job's directory: %v", err)
	}
	if h.backend.Live() > 0 {
		t.Errorf("%d sandboxes live", h.backend.Live())
	}
}

// TestInterruptedInstall: an interrupt while it is installed ends the job as one that was
// interrupted, and it can be resumed.
func TestInterruptedInstall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := withMine(t, []string{"a-one", "b-one"}, func(ctx context.Context, _ *fake.Process) (int, error) {
		cancel()
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	out, err := h.runner.Run(ctx, h.prepare(t))
	if err != nil || !out.Interrupted || len(out.Records) != 0 || h.backend.Live() != 0 {
		t.Fatalf("%+v, %v; %d sandboxes live", out, err, h.backend.Live())
	}
	if all, err := h.runner.Trials.Layers.List(); err != nil || len(all) != 0 {
		t.Errorf("kept %+v, %v", all, err)
	}
}

// TestManyTrialsAreInstalledOnce: of a task with many attempts the task is looked at once to
// find out what is to be installed.
func TestManyTrialsAreInstalledOnce(t *testing.T) {
	t.Parallel()
	broken := errors.New("stop here")
	h := withMine(t, []string{"a-one"}, fake.Fail(broken))
	h.cfg.NAttempts = 10_001
	p := h.prepare(t)
	var loads atomic.Int64
	h.runner.Trials.Amend = func(jobdir.TrialConfig, *harbor.Task) { loads.Add(1) }
	if _, err := h.runner.Run(t.Context(), p); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if n := loads.Load(); len(p.Trials) != 10_001 || n != 1 {
		t.Errorf("for %d trials tasks were loaded %d times", len(p.Trials), n)
	}
}

// TestInstallIsBounded: as many sandboxes install at a time as trials run.
func TestInstallIsBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprintf("%c-task", 'a'+i))
	}
	h := withMine(t, names, func(context.Context, *fake.Process) (int, error) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		defer now.Add(-1)
		return 0, nil
	})
	h.cfg.NConcurrentTrials = 2
	if out := h.run(t); out.Result.Stats.NErroredTrials != 0 || most.Load() > 2 {
		t.Errorf("%+v; %d at a time", out.Result.Stats, most.Load())
	}
}

// TestInstallShowsNoSecrets: what an image prints while it is installed there is told
// without the secrets that it has, and without what changes a terminal.
func TestInstallShowsNoSecrets(t *testing.T) {
	t.Parallel()
	const token = "t0p-secret-token"
	leak := func(_ context.Context, p *fake.Process) (int, error) {
		_, _ = fmt.Fprintf(p.Stdout, "\x1b]0;mine\x07 \x1b[2J token %s\nline two\n", p.Env["API_TOKEN"])
		if strings.HasPrefix(p.Sandbox.Spec().Image.Build.Name, "a") {
			return 1, nil
		}
		return 0, nil
	}
	check := func(what, text string) {
		t.Helper()
		if !strings.Contains(text, "token") || !strings.Contains(text, "line two") || strings.Contains(text, token) || strings.ContainsAny(text, "\x1b\x07") {
			t.Errorf("%s: %q", what, text)
		}
	}
	h := withMine(t, []string{"a-one", "b-one"}, leak)
	h.cfg.Environment.Env.Set("API_TOKEN", token)
	h.run(t)
	warned := h.messages(job.EventWarning)
	check("a warning", strings.Join(warned, "\n"))
	h = withMine(t, []string{"a-one"}, leak)
	h.cfg.Environment.Env.Set("API_TOKEN", token)
	_, err := h.runner.Run(t.Context(), h.prepare(t))
	if err == nil {
		t.Fatal("no error")
	}
	check("the error", err.Error())
}
