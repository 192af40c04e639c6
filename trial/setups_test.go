package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// installRun is a run of some trials of one configuration, whose agent installs a tool for two
// seconds and then needs it.
type installRun struct {
	trials, atOnce int
	takes          time.Duration // 0 for two seconds
	install        []fake.Handler
	fake           fake.Config
	task           taskFiles
	change         func(*bench)
	between        func(*bench) // before the second trial
}

// installs is what came of it.
type installs struct {
	*bench
	names   []string // of the trials, in their order
	rewards []string
	notes   []jobdir.Notes
}

// count is how many commands there were with a text.
func (i *installs) count(part string) (n int) {
	for _, c := range i.backend.Calls() {
		if c.Op == fake.OpExec && strings.Contains(c.Command.Shell, part) {
			n++
		}
	}
	return n
}

func (c installRun) run(t *testing.T) *installs {
	t.Helper()
	if c.takes == 0 {
		c.takes = 2 * time.Second
	}
	if c.task == nil {
		c.task = goodTask()
	}
	tool := []fake.Handler{fake.Sleep(c.takes), fake.Print("got it\n"), fake.Write("/opt/tool", "the tool\n")}
	c.fake.Rules = append(c.fake.Rules,
		fake.On("get it", append(tool, c.install...)...),
		fake.On("use it", needs("/opt/tool"), fake.Write("/opt/tool", "changed\n")),
		rewardRule("reward.txt", "1"))
	out := &installs{bench: newBench(t, c.task, c.fake)}
	commandAgent("use it")(&out.cfg)
	out.cfg.Agent.Kwargs.Set("install", value.Str("get it"))
	if c.change != nil {
		c.change(out.bench)
	}
	cfgs := make([]jobdir.TrialConfig, c.trials)
	for n := range cfgs {
		cfgs[n] = out.cfg
		cfgs[n].TrialName = fmt.Sprintf("a-task__%07d", n+1)
		out.names = append(out.names, cfgs[n].TrialName)
	}
	synctest.Test(t, func(t *testing.T) {
		out.Setups = trial.NewSetups(cfgs, out.Lookup)
		out.runAll(t, cfgs, c)
		if err := out.Setups.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, name := range out.names {
		out.notes = append(out.notes, readNotes(t, filepath.Join(out.cfg.TrialsDir, name)))
	}
	return out
}

// runAll runs the trials, so many at once.
func (i *installs) runAll(t *testing.T, cfgs []jobdir.TrialConfig, c installRun) {
	i.rewards = make([]string, len(cfgs))
	free := make(chan bool, max(c.atOnce, 1))
	var wg sync.WaitGroup
	for n, cfg := range cfgs {
		free <- true
		if n == 1 && c.between != nil {
			c.between(i.bench)
		}
		wg.Go(func() {
			defer func() { <-free }()
			res, err := i.Run(t.Context(), cfg, 1)
			if err != nil {
				t.Error(err)
				return
			}
			i.rewards[n] = rewardsText(res) + exceptionType(res)
			if err := i.Setups.Leave(t.Context(), cfg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// needs fails where a file of the sandbox is not what the tool was when it was installed.
func needs(path string) fake.Handler {
	return func(ctx context.Context, p *fake.Process) (int, error) {
		got, err := p.Sandbox.ReadFile(path)
		if err != nil || string(got) != "the tool\n" {
			return fake.InOrder(fake.Print(fmt.Sprintf("%q, %v", got, err)), fake.Exit(1))(ctx, p)
		}
		return 0, nil
	}
}

func kwarg(name string, v value.Value) func(*bench) {
	return func(b *bench) { b.cfg.Agent.Kwargs.Set(name, v) }
}

// TestSharedSetup has trials of one configuration begin with what the first has installed,
// where that is everything that it left, and install themselves where it is not.
func TestSharedSetup(t *testing.T) {
	t.Parallel()
	listed := fake.On("/proc/[0-9]*/stat", fake.Each(fake.Print("\n1\n"), fake.Print(statOf(77, "daemon")+"\n\n78\n")))
	for name, c := range map[string]struct {
		installRun
		installs, forks int
	}{
		"in turn":              {installRun{trials: 8}, 1, 7},
		"at once":              {installRun{trials: 8, atOnce: 4}, 1, 7},
		"one trial":            {installRun{trials: 1}, 1, 0},
		"quickly installed":    {installRun{trials: 3, takes: time.Second / 2}, 3, 0},
		"to be alone":          {installRun{trials: 3, change: kwarg("share_install", value.Bool(false))}, 3, 0},
		"nothing else written": {installRun{trials: 3, install: []fake.Handler{fake.Write("/logs/agent/more.txt", "more")}}, 1, 2},
		"artifacts":            {installRun{trials: 3, install: []fake.Handler{fake.Write("/logs/artifacts/x", "")}}, 3, 0},
		"a directory of logs":  {installRun{trials: 3, install: []fake.Handler{fake.Write("/logs/agent/dir/x", "")}}, 3, 0},
		"too much output":      {installRun{trials: 3, install: []fake.Handler{fake.Flood(5 << 20)}}, 3, 0},
		"files in memory":      {installRun{trials: 3, fake: fake.Config{Rules: []fake.Rule{fake.On("/dev/shm", fake.Exit(1))}}}, 3, 0},
		"a daemon":             {installRun{trials: 3, fake: fake.Config{Rules: []fake.Rule{listed}}}, 3, 0},
		"no snapshots":         {installRun{trials: 3, fake: fake.Config{Unsnapshotted: fmt.Errorf("never: %w", sandbox.ErrUnsupported)}}, 3, 0},
		"a snapshot fails":     {installRun{trials: 3, fake: fake.Config{Before: fake.FailAt(fake.OpSnapshot, 1, nil)}}, 4, 0},
		"a fork fails":         {installRun{trials: 3, fake: fake.Config{Before: fake.FailAt(fake.OpFork, 1, nil)}}, 2, 2},
		"a kept sandbox":       {installRun{trials: 3, change: func(b *bench) { b.cfg.Environment.Delete = false }}, 3, 0},
		"another task": {installRun{trials: 3, between: func(b *bench) {
			if err := os.WriteFile(filepath.Join(*b.cfg.Task.Path, "instruction.md"), []byte("Do more.\n"), 0o644); err != nil {
				panic(err)
			}
		}}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := c.run(t)
			if got := out.count("get it"); got != c.installs {
				t.Errorf("it was installed %d times, want %d", got, c.installs)
			}
			if got := out.backend.Count(fake.OpFork); got != c.forks {
				t.Errorf("%d sandboxes began with what was installed, want %d", got, c.forks)
			}
			for n, got := range out.rewards {
				if got != "{'reward': 1.0}" {
					t.Errorf("trial %d: %s", n+1, got)
				}
			}
		})
	}
}

// TestSharedSetupIsTold has the same files and an honest note in every trial.
func TestSharedSetupIsTold(t *testing.T) {
	t.Parallel()
	out := installRun{trials: 3, install: []fake.Handler{fake.Write("/logs/agent/more.txt", "more")}}.run(t)
	for n, name := range out.names {
		for file, want := range map[string]string{"agent/install.txt": "got it\n", "agent/more.txt": "more"} {
			if got, err := os.ReadFile(filepath.Join(out.cfg.TrialsDir, name, filepath.FromSlash(file))); err != nil || string(got) != want {
				t.Errorf("trial %d: %s holds %q, %v; want %q", n+1, file, got, err, want)
			}
		}
		from := out.names[0]
		if n == 0 {
			from = ""
		}
		if got := out.notes[n]; got.SetupFrom != from || len(got.Warnings) != 0 || got.SandboxID == "" {
			t.Errorf("trial %d: installed by %q, want %q; warnings %q", n+1, got.SetupFrom, from, got.Warnings)
		}
	}
	if out.notes[1].SandboxID == out.notes[2].SandboxID {
		t.Errorf("two trials were in sandbox %s", out.notes[1].SandboxID)
	}
}

// TestSharedSetupWarns has a warning where sharing has failed and nothing else.
func TestSharedSetupWarns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		op    fake.Op
		trial int
		want  string
	}{
		"snapshot": {fake.OpSnapshot, 0, "keeping what the agent's installation left: "},
		"fork":     {fake.OpFork, 1, "beginning with what trial a-task__0000001 has installed: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := installRun{trials: 2, fake: fake.Config{Before: fake.FailAt(c.op, 1, errors.New("no room"))}}.run(t)
			got := out.notes[c.trial]
			if len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], c.want) || !strings.HasSuffix(got.Warnings[0], "; the agent is set up in a new sandbox") {
				t.Errorf("warnings %q", got.Warnings)
			}
			if got.SetupFrom != "" || len(out.notes[1-c.trial].Warnings) != 0 {
				t.Errorf("installed by %q; warnings of the other %q", got.SetupFrom, out.notes[1-c.trial].Warnings)
			}
		})
	}
}

// TestInstallationFails has every trial try for itself, and no other wait again.
func TestInstallationFails(t *testing.T) {
	t.Parallel()
	out := installRun{trials: 4, atOnce: 4, install: []fake.Handler{fake.Exit(1)}}.run(t)
	want := slices.Repeat([]string{"no resultNonZeroAgentExitCodeError"}, 4)
	if !slices.Equal(out.rewards, want) || out.count("get it") != 4 {
		t.Errorf("%d installations: %q", out.count("get it"), out.rewards)
	}
}
