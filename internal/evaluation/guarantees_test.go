package evaluation_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/feed"
	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// bench evaluates tasks of a test in sandboxes that it programs. The tests here are named
// after the guarantees of the outcome mapping, section 16.
type bench struct {
	dir        string
	tasks      []evaluation.Task
	attempts   int
	concurrent int
	backstop   time.Duration
	signals    chan os.Signal
	clean      func(string) string
	rules      []fake.Rule
	feed       *feed.Feed // that is told of the next run

	backend *fake.Backend // of the last run
}

func newBench(t testing.TB, tasks ...string) *bench {
	t.Helper()
	b := &bench{dir: filepath.Join(t.TempDir(), "eval"), attempts: 1, concurrent: 1}
	set := t.TempDir()
	for _, name := range tasks {
		b.tasks = append(b.tasks, evaluation.Task{Name: name, Dir: filepath.Join(set, name)})
		b.write(t, name, "instruction.md", name)
		b.write(t, name, "task.toml", "[agent]\ntimeout_sec = 60.0\n")
		b.write(t, name, "environment/Dockerfile", "FROM x\n")
		b.write(t, name, "tests/test.sh", name)
		b.write(t, name, "solution/solve.sh", name)
	}
	return b
}

func (b *bench) write(t testing.TB, task, file, text string) {
	t.Helper()
	for _, known := range b.tasks {
		if known.Name == task {
			jobtest.Write(t, filepath.Join(known.Dir, filepath.FromSlash(file)), []byte(text))
		}
	}
}

// open is the evaluation as a new process opens it.
func (b *bench) open() (*evaluation.Evaluation, error) {
	e := &evaluation.Evaluation{
		Dir: b.dir, Tasks: slices.Clone(b.tasks), Output: "oracle.txt",
		Lock: ownrunner.Lock{AgentName: "oracle", Attempts: b.attempts}, Clean: b.clean,
	}
	return e, e.Open()
}

func (b *bench) run(t testing.TB) (*evaluation.Evaluation, error) {
	t.Helper()
	e, err := b.open()
	if err != nil {
		return e, err
	}
	b.backend = fake.New(fake.Config{Dir: t.TempDir(), Rules: b.rules})
	defer fake.Verify(t, b.backend)
	s := &job.Session{
		Runner: job.Runner{Trials: trial.Runner{Agents: agents.All()}}, Signals: b.signals,
		Backend: func(context.Context, []string) (sandbox.Backend, func() error, error) {
			return b.backend, func() error { return nil }, nil
		},
	}
	cfg := e.Configure(jobdir.NewConfig(time.Now()))
	cfg.NConcurrentTrials = b.concurrent
	r := evaluation.Runner{Session: s, Backstop: b.backstop}
	if b.feed != nil {
		follower := e.Follow(b.feed)
		defer follower.Close()
		r.Event = follower.Event
		r.Run = func(ctx context.Context, p *job.Prepared) (*job.Summary, error) {
			follower.Assigned(p)
			return s.Run(ctx, p)
		}
	}
	return e, e.Run(t.Context(), r, cfg)
}

// line runs the evaluation to its line.
func (b *bench) line(t testing.TB) string {
	t.Helper()
	e, err := b.run(t)
	if err != nil {
		t.Fatal(err)
	}
	line, _, err := e.Line(false)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func solved(all ...fake.Handler) fake.Rule { return fake.On("solve.sh", all...) }

func rewarded(text string) fake.Rule {
	return fake.On("/tests/test.sh", fake.Print("tested\n"), fake.Write("/logs/verifier/reward.txt", text))
}

// ran counts sandboxes that were made.
func (b *bench) ran() int {
	n := 0
	for _, c := range b.backend.Calls() {
		if c.Op == fake.OpCreate {
			n++
		}
	}
	return n
}

func record(t testing.TB, b *bench, trial string) *value.Object {
	t.Helper()
	return jobtest.Decode(t, []byte(jobtest.Read(t, filepath.Join(b.dir, "trials", trial, "result.json"))))
}

func TestConcurrencyReachesItsLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{1, 2} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "a", "b", "c", "d")
				b.attempts, b.concurrent = 3, limit
				b.rules = []fake.Rule{solved(fake.Sleep(time.Second)), rewarded("1")}
				b.line(t)
				if peak := b.backend.MostLive(); peak != limit || b.ran() != 12 {
					t.Errorf("the peak of %d trials was %d, want %d of 12", b.ran(), peak, limit)
				}
			})
		})
	}
}

func TestOrderingIsThatOfThePlan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "a", "b")
		b.attempts, b.concurrent = 2, 4
		var took atomic.Int64
		took.Store(5)
		b.rules = []fake.Rule{solved(func(ctx context.Context, p *fake.Process) (int, error) {
			return fake.Sleep(time.Duration(took.Add(-1))*time.Second)(ctx, p) // the last one ends first
		}), rewarded("1")}
		e, err := b.run(t)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range e.Trials() {
			got = append(got, r.TrialName)
		}
		if want := []string{"a__attempt-0", "b__attempt-0", "a__attempt-1", "b__attempt-1"}; !slices.Equal(got, want) {
			t.Errorf("results are in order %v, want %v", got, want)
		}
	})
}

func TestTimeLimitsEndHungTrials(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason, text string
		hung               []fake.Rule
		backstop           time.Duration
	}{
		{
			"the backstop", "harbor_agent_timeout_error", "trial exceeded backstop timeout of 30.0 seconds",
			[]fake.Rule{solved(fake.Each(fake.Hang(), fake.Exit(0)))}, 30 * time.Second,
		},
		{
			"the agent's time", "harbor_agent_timeout_error", "Agent execution timed out after 60.0 seconds",
			[]fake.Rule{solved(fake.Each(fake.Hang(), fake.Exit(0)))}, time.Hour,
		},
		{
			"a verifier's default of 600 seconds", "harbor_verifier_timeout_error", "verifier failed: harbor_verifier_timeout_error",
			[]fake.Rule{fake.On("/tests/test.sh", fake.Each(fake.Hang(), fake.Write("/logs/verifier/reward.txt", "1")))}, time.Hour,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, "hung", "sound")
				b.backstop = c.backstop
				defer func() {
					if live := b.backend.Live(); live != 0 {
						t.Errorf("%d sandboxes are left", live)
					}
				}()
				b.rules = append(c.hung, rewarded("1"))
				b.line(t)
				got := record(t, b, "hung__attempt-0")
				if text := value.Repr(got); !strings.Contains(text, c.reason) {
					t.Errorf("the record is %s", text)
				}
				if text := jobtest.Read(t, filepath.Join(b.dir, "trials", "hung__attempt-0", "exception.txt")); text != c.text {
					t.Errorf("its error is %q, want %q", text, c.text)
				}
				if text := value.Repr(record(t, b, "sound__attempt-0")); !strings.Contains(text, "'score': 1.0") {
					t.Errorf("the sibling's record is %s", text)
				}
			})
		})
	}
}

func TestCancellationKeepsWhatEnded(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a", "b", "c")
	b.signals = make(chan os.Signal, 1)
	third := make(chan struct{})
	var begun atomic.Int64
	b.rules = []fake.Rule{solved(func(ctx context.Context, p *fake.Process) (int, error) {
		if begun.Add(1) == 3 {
			b.signals <- os.Interrupt
			return fake.Wait(third)(ctx, p)
		}
		return 0, nil
	}), rewarded("1")}
	if _, err := b.run(t); !errors.Is(err, evaluation.ErrInterrupted) {
		t.Fatalf("the run ends with %v", err)
	}
	for trial, want := range map[string]bool{"a__attempt-0": true, "b__attempt-0": true, "c__attempt-0": false} {
		if _, err := os.Stat(filepath.Join(b.dir, "trials", trial, "result.json")); (err == nil) != want {
			t.Errorf("the record of %s: %v", trial, err)
		}
	}
	b.signals = nil
	if got := b.line(t); b.ran() != 1 || !strings.Contains(got, `"resolved": 3`) {
		t.Errorf("resumed, %d trials ran: %s", b.ran(), got)
	}
}

func TestIdempotenceOfAFinishedJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a")
	b.rules = []fake.Rule{rewarded("0.25")}
	first := b.line(t)
	again := b.line(t)
	if b.ran() != 0 || first != again {
		t.Errorf("again, %d trials ran: %s, at first %s", b.ran(), again, first)
	}
}

func TestLockRefusesAnotherJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a")
	b.rules = []fake.Rule{rewarded("1")}
	b.line(t)
	other := func(change func(*evaluation.Evaluation)) error {
		e := &evaluation.Evaluation{Dir: b.dir, Tasks: b.tasks, Lock: ownrunner.Lock{AgentName: "oracle", Attempts: 1}}
		change(e)
		return e.Open()
	}
	for name, change := range map[string]func(*evaluation.Evaluation){
		"attempts": func(e *evaluation.Evaluation) { e.Lock.Attempts = 2 },
		"agent":    func(e *evaluation.Evaluation) { e.Lock.AgentName = "nop" },
		"model":    func(e *evaluation.Evaluation) { e.Lock.ModelName = new("m") },
		"retries":  func(e *evaluation.Evaluation) { e.Lock.MaxRetries = 1 },
	} {
		if _, ok := errors.AsType[*evaluation.LockError](other(change)); !ok {
			t.Errorf("another %s: %v", name, other(change))
		}
	}
	b.concurrent = 3 // which is no part of it
	b.line(t)
}

// TestLockIncludesWhatTheJobPins: the job refuses other tasks than those it began with.
func TestLockIncludesWhatTheJobPins(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a")
	b.signals = make(chan os.Signal, 1)
	b.rules = []fake.Rule{solved(func(ctx context.Context, _ *fake.Process) (int, error) {
		b.signals <- os.Interrupt
		<-ctx.Done()
		return 0, ctx.Err()
	})}
	if _, err := b.run(t); !errors.Is(err, evaluation.ErrInterrupted) {
		t.Fatal(err)
	}
	b.write(t, "a", "tests/test.sh", "changed")
	if _, err := b.run(t); err == nil || b.ran() != 0 {
		t.Errorf("a changed task ran %d times: %v", b.ran(), err)
	}
}

func TestCleanUpAfterEveryEnd(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]fake.Rule{
		"pass": {rewarded("1")}, "fail": {rewarded("0")}, "crash": {solved(fake.Fail(fake.ErrInjected))}, "no reward": nil,
	} {
		b := newBench(t, "a")
		b.rules = rules
		b.line(t)
		if live := b.backend.Live(); live != 0 {
			t.Errorf("%s: %d are left", name, live)
		}
	}
}

// TestFailuresHaveReasons: what a trial did not reach decides what is said of it.
func TestFailuresHaveReasons(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, reason, text string
		rules              []fake.Rule
	}{
		{"missing", "harbor_reward_missing", "verifier failed: harbor_reward_missing", nil},
		{"empty", "harbor_reward_empty", "verifier failed: harbor_reward_empty", []fake.Rule{rewarded("")}},
		{"unparsable", "harbor_reward_parse_error", "verifier failed: harbor_reward_parse_error", []fake.Rule{rewarded("much")}},
		{
			"no object", "harbor_trial_failed", "trial crashed: ",
			[]fake.Rule{fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.json", "[1]"))},
		},
		{"agent", "harbor_trial_failed", "trial crashed: RuntimeError: ", []fake.Rule{solved(fake.Fail(fake.ErrInjected)), rewarded("1")}},
	} {
		b := newBench(t, "a")
		b.rules = c.rules
		line := b.line(t)
		want := `"trial_diagnostics": [{"error_text": "` + c.text
		if !strings.Contains(line, want) || !strings.Contains(line, `"reason_code": "`+c.reason+`"`) || !strings.Contains(line, `"status": "failed"`) {
			t.Errorf("%s: %s", c.name, line)
		}
		got := record(t, b, "a__attempt-0")
		if rewards, _ := got.Get("rewards"); !value.IsNull(rewards) {
			t.Errorf("%s: the record has rewards: %s", c.name, value.Repr(got))
		}
	}
}

// TestRecordsAreReadByConsumers: what a consumer's reader makes of the directory is what
// the line says.
func TestRecordsAreReadByConsumers(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a")
	b.attempts = 2
	b.rules = []fake.Rule{solved(fake.Print("at work\n")), rewarded("0.5")}
	b.line(t)
	records, err := ownrunner.ReadRecords(b.dir, "a")
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	for _, r := range records {
		if r.Status != outcome.TrialCompleted || *r.Score != 0.5 || r.Task != "a" {
			t.Errorf("%+v", r)
		}
	}
	dir := filepath.Join(b.dir, "trials", "a__attempt-1")
	for name, want := range map[string]string{"agent/agent.log": "at work", "verifier/test-stdout.txt": "tested"} {
		if got := jobtest.Read(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "exception.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a trial without an error has an exception.txt: %v", err)
	}
}

// TestIsolationOfTasksThatWantAGPU: no engine is asked for what it does not have.
func TestIsolationOfTasksThatWantAGPU(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a", "sound")
	b.write(t, "a", "task.toml", "[environment]\ngpus = 1\n")
	b.rules = []fake.Rule{rewarded("1")}
	line := b.line(t)
	if !strings.Contains(line, `"reason_code": "terminal_bench_failed", "status": "failed", "task_name": "a"`) || !strings.Contains(line, `"score": 0.5`) {
		t.Errorf("the line is %s", line)
	}
	for _, c := range b.backend.Calls() {
		if c.Spec.Resources.GPUs > 0 && c.Err == nil {
			t.Errorf("a sandbox was made: %+v", c)
		}
	}
}

// TestSecrecyOfRecords: what takes secrets out is given all that is written of a trial,
// and of what an earlier process wrote.
func TestSecrecyOfRecords(t *testing.T) {
	t.Parallel()
	const secret = "sk-or-0123456789"
	b := newBench(t, "a", "b")
	b.clean = func(text string) string { return strings.ReplaceAll(text, secret, "[gone]") }
	var ran atomic.Int64
	b.rules = []fake.Rule{
		solved(func(ctx context.Context, p *fake.Process) (int, error) {
			if ran.Add(1) == 1 {
				return fake.Print("agent "+secret+"\n")(ctx, p)
			}
			return fake.Fail(errors.New("failed with "+secret))(ctx, p)
		}),
		fake.On("/tests/test.sh", fake.Print("tests "+secret+"\n"), fake.Write("/logs/verifier/reward.txt", "1")),
	}
	if line := b.line(t); strings.Contains(line, secret) || !strings.Contains(line, "failed with [gone]") {
		t.Errorf("the line is %s", line)
	}
	seen := 0
	err := filepath.WalkDir(filepath.Join(b.dir, "trials"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := jobtest.Read(t, path)
		seen += strings.Count(text, "[gone]")
		if strings.Contains(text, secret) {
			t.Errorf("%s shows it", path)
		}
		return nil
	})
	if err != nil || seen < 3 {
		t.Errorf("it was taken out of %d places, %v", seen, err)
	}
	jobtest.Write(t, filepath.Join(b.dir, "trials", "b__attempt-0", "exception.txt"), []byte("by hand: "+secret))
	if line := b.line(t); !strings.Contains(line, "by hand: [gone]") {
		t.Errorf("again, the line is %s", line)
	}
}

// TestPlanIsAttemptMajor has the rows of the checklist, section 18.
func TestPlanIsAttemptMajor(t *testing.T) {
	t.Parallel()
	e := &evaluation.Evaluation{
		Tasks: []evaluation.Task{{Name: "t1", Dir: "/1"}, {Name: "caffe/cifar 10", Dir: "/2"}}, Lock: ownrunner.Lock{Attempts: 3},
	}
	var got []string
	for _, p := range e.Plan() {
		got = append(got, p.TrialName)
	}
	want := []string{
		"t1__attempt-0", "caffe_cifar_10__attempt-0", "t1__attempt-1", "caffe_cifar_10__attempt-1", "t1__attempt-2", "caffe_cifar_10__attempt-2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestUnreadableRecordsAreNone: what the job has of a trial makes its record again; where
// that is gone too, the trial runs again (section 11.4).
func TestUnreadableRecordsAreNone(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": `{"task_name`, "no object": `[]`, "no status": `{"task_name": "a", "trial_name": "a__attempt-0"}`,
		"another trial's": `{"task_name": "a", "trial_name": "a__attempt-1", "status": "completed", "rewards": {"reward": 1.0}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "a")
			b.rules = []fake.Rule{rewarded("0.25")}
			first := b.line(t)
			damage := func() {
				jobtest.Write(t, filepath.Join(b.dir, "trials", "a__attempt-0", "result.json"), []byte(text))
			}
			damage()
			if again := b.line(t); b.ran() != 0 || again != first {
				t.Errorf("with the job, %d trials ran: %s, at first %s", b.ran(), again, first)
			}
			damage()
			if err := os.RemoveAll(filepath.Join(b.dir, evaluation.JobName)); err != nil {
				t.Fatal(err)
			}
			if again := b.line(t); b.ran() != 1 || again != first {
				t.Errorf("without it, %d trials ran: %s, at first %s", b.ran(), again, first)
			}
		})
	}
}
