package evaluation_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/feed"
	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// told runs the evaluation and lists what a follower's feed wrote: phases by trial, and
// the channels of trials that ended.
func (b *bench) told(t *testing.T) (phases map[string][]string, logs []string) {
	t.Helper()
	lookup := func(string) (string, bool) { return "", false }
	progress, err := feed.ProgressTarget(feed.StandardOutput, lookup)
	to, logsErr := feed.LogTarget(feed.StandardOutput, lookup)
	if err := errors.Join(err, logsErr); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	b.feed = feed.New(feed.Options{Progress: progress, Logs: to, Out: &out, Warn: func(text string) { t.Error(text) }})
	_, err = b.run(t)
	if interrupted := errors.Is(err, evaluation.ErrInterrupted); !b.feed.Close(t.Context()) || interrupted != (b.signals != nil) || err != nil && !interrupted {
		t.Fatalf("the run ends with %v", err)
	}
	phases = map[string][]string{}
	for line := range strings.Lines(out.String()) {
		e := jobtest.Decode(t, []byte(line))
		if !e.Has("stream") {
			trial := vectors.Str(e, "message")
			phases[trial] = append(phases[trial], vectors.Str(e, "status"))
			if want := value.Repr(vectors.Get(e, "progress")); (want == "1.0") != (vectors.Str(e, "status") == "completed") {
				t.Errorf("the progress in %s", line)
			}
		} else if e.Has("status") { // what an agent prints meanwhile has none
			first, _, _ := strings.Cut(vectors.Str(e, "message"), "\n")
			logs = append(logs, strings.Join([]string{vectors.Str(e, "trial_name"), vectors.Str(e, "status"), vectors.Str(e, "stream"), first}, " "))
		}
	}
	return phases, logs
}

// TestFollowerTellsPhasesAndLogs has a trial that completes and one that fails, one after
// the other.
func TestFollowerTellsPhasesAndLogs(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a", "b")
	b.rules = []fake.Rule{
		solved(fake.Print("at work\n")),
		fake.On("/tests/test.sh", fake.Print("tested\n"), fake.Each(fake.Write("/logs/verifier/reward.txt", "1"), fake.Exit(0))),
	}
	phases, logs := b.told(t)
	for trial, end := range map[string]string{"a__attempt-0": "completed", "b__attempt-0": "failed"} {
		if want := []string{"assigned", "starting", "running", end}; !slices.Equal(phases[trial], want) {
			t.Errorf("%s: got %v, want %v", trial, phases[trial], want)
		}
	}
	want := []string{
		"a__attempt-0 completed agent at work", "a__attempt-0 completed harness trial_name: a__attempt-0", "a__attempt-0 completed test_stdout tested",
		"b__attempt-0 failed agent at work", "b__attempt-0 failed harness trial_name: b__attempt-0", "b__attempt-0 failed test_stdout tested",
	}
	if !slices.Equal(logs, want) {
		t.Errorf("the logs are\n%s", strings.Join(logs, "\n"))
	}
	if phases, logs = b.told(t); len(phases)+len(logs) != 0 {
		t.Errorf("trials with records: %v, %v", phases, logs)
	}
}

// TestFollowerOfWhatIsResumed has a trial that is cancelled: it failed, and runs again as
// if it never had, beside one with a record, which is not told of again.
func TestFollowerOfWhatIsResumed(t *testing.T) {
	t.Parallel()
	b := newBench(t, "a", "b")
	b.signals = make(chan os.Signal, 1)
	b.rules = []fake.Rule{solved(fake.Each(fake.Exit(0), func(ctx context.Context, _ *fake.Process) (int, error) {
		b.signals <- os.Interrupt
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})), rewarded("1")}
	phases, _ := b.told(t)
	if want := []string{"assigned", "starting", "running", "failed"}; !slices.Equal(phases["b__attempt-0"], want) {
		t.Errorf("interrupted: got %v, want %v", phases["b__attempt-0"], want)
	}
	b.signals, b.rules = nil, []fake.Rule{rewarded("1")}
	phases, _ = b.told(t)
	if want := []string{"assigned", "starting", "running", "completed"}; !slices.Equal(phases["b__attempt-0"], want) || len(phases) != 1 {
		t.Errorf("resumed: got %v", phases)
	}
}
