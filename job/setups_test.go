package job_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// sharingHarness runs eight attempts at a task, two at a time. Their agent installs for two
// seconds, which counts, and then works; where that fails it is tried once more.
func sharingHarness(t *testing.T, work fake.Handler) (h *harness, installed *int) {
	t.Helper()
	installed = new(int)
	h = newHarness(t, writeDataset(t, "a"), fake.Config{Rules: []fake.Rule{
		fake.On("get it", fake.Sleep(2*time.Second), func(context.Context, *fake.Process) (int, error) {
			*installed++ // one at a time
			return 0, nil
		}),
		fake.On("use it", work),
		grant("1"),
	}})
	kwargs := value.NewObject(2)
	kwargs.Set("install", value.Str("get it"))
	kwargs.Set("run", value.Str("use it"))
	h.cfg.Agents = []jobdir.AgentConfig{{Name: new("command"), Kwargs: kwargs}}
	h.cfg.NAttempts, h.cfg.NConcurrentTrials = 8, 2
	h.cfg.Retry.MaxRetries, h.cfg.Retry.ExcludeExceptions = 1, nil
	return h, installed
}

// TestAttemptsShareSetup: attempts and retries begin with what the first has installed, and
// the journal knows each of their sandboxes.
func TestAttemptsShareSetup(t *testing.T) {
	t.Parallel()
	h, installed := sharingHarness(t, fake.Each(fake.Exit(0), fake.Exit(0), fake.Fail(nil), fake.Exit(0)))
	synctest.Test(t, func(t *testing.T) {
		out := h.run(t)
		if *installed != 1 || out.Result.Stats.NRetries != 1 {
			t.Errorf("%d installations, %d retries", *installed, out.Result.Stats.NRetries)
		}
		from := map[string]int{}
		for _, r := range out.Records {
			if r.Rewards == nil || r.ExceptionType != "" {
				t.Errorf("trial %s: %+v", r.TrialName, r)
			}
			notes, err := jobdir.ReadNotes(filepath.Join(h.dir(), r.TrialName))
			if err != nil {
				t.Error(err)
				continue
			}
			from[notes.SetupFrom]++
		}
		if counts := slices.Sorted(maps.Values(from)); !slices.Equal(counts, []int{1, 7}) || from[""] != 1 {
			t.Errorf("the installations come from %v", from)
		}
	})
	j, err := journal.Load(h.dir())
	if err != nil {
		t.Fatal(err)
	}
	counts := map[journal.Kind]int{}
	for _, e := range j.Entries {
		counts[e.Kind]++
	}
	forks := h.backend.Count(fake.OpFork)
	want := h.backend.Count(fake.OpCreate) + forks
	if forks != 8 || counts[journal.SandboxCreated] != want || counts[journal.SandboxRemoved] != want {
		t.Errorf("%d sandboxes were made, %d of them from what was installed; the journal has %d, and %d removed",
			want, forks, counts[journal.SandboxCreated], counts[journal.SandboxRemoved])
	}
}

// TestKillEndsSharedSetups: a run that is killed leaves neither sandboxes that began with what
// another had installed nor what they began with.
func TestKillEndsSharedSetups(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 8)
	h, _ := sharingHarness(t, func(ctx context.Context, _ *fake.Process) (int, error) {
		started <- struct{}{}
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	h.runAndKill(t, started)
	if live := h.backend.Live(); live != 0 || h.backend.Count(fake.OpFork) != 1 {
		t.Errorf("%d sandboxes are left of %d that began with what was installed", live, h.backend.Count(fake.OpFork))
	}
}
