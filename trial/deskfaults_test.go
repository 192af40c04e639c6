package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/textfiles"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// faultyDesk runs trials of the faulty cube with an agent that uses tools.
func faultyDesk(t *testing.T, p *faultyProblem, u *toolUser) *bench {
	t.Helper()
	b := faultyBench(t, p, nil)
	return b.withUser(u)
}

// withUser lets the agent be one that uses tools.
func (b *bench) withUser(u agent.Agent) *bench {
	b.Agents = append(b.Agents, agent.Entry{
		Name: "user", UsesTools: true,
		Sandboxed: func(agent.Config) (agent.Agent, error) { return u, nil },
	})
	b.cfg.Agent.Name = new("user")
	return b
}

// TestDeskSeesNoSteps: while the agent can look into its logs, the log of the episode, which
// has the rewards, is not there, and what the agent puts there in its place goes.
func TestDeskSeesNoSteps(t *testing.T) {
	t.Parallel()
	plants := map[string]func(name, outside string) error{
		"nothing":     func(string, string) error { return nil },
		"file":        func(name, _ string) error { return os.WriteFile(name, []byte("forged\n"), 0o600) },
		"link":        func(name, outside string) error { return os.Symlink(outside, name) },
		"directories": func(name, _ string) error { return os.MkdirAll(filepath.Join(name, "a", "b"), 0o700) },
	}
	for name, plant := range plants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outside := filepath.Join(t.TempDir(), "outside")
			if err := os.WriteFile(outside, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			u := &toolUser{}
			u.play = func(ctx context.Context, u *toolUser) error {
				if err := u.expect(ctx, "look", "look 1", "look", "look 2"); err != nil {
					return err
				}
				entries, err := os.ReadDir(u.env.LogDir)
				if err != nil || len(entries) != 0 {
					return fmt.Errorf("the agent's logs have %v, %w", entries, err)
				}
				return plant(filepath.Join(u.env.LogDir, "steps.jsonl"), outside)
			}
			b := deskBench(t, &lookProblem{}, u)
			if res := b.run(t); res.ExceptionInfo != nil {
				t.Fatal(res.ExceptionInfo)
			}
			kept := filepath.Join(b.dir, "agent", "steps.jsonl")
			info, err := os.Lstat(kept)
			if err != nil || !info.Mode().IsRegular() {
				t.Fatalf("the log of the episode is %v, %v", info, err)
			}
			data, err := os.ReadFile(kept)
			if lines := strings.Split(strings.TrimSpace(string(data)), "\n"); err != nil || len(lines) != 3 || !strings.Contains(lines[1], "look 2") {
				t.Errorf("the log of the episode: %s, %v", data, err)
			}
			if data, err := os.ReadFile(outside); err != nil || string(data) != "mine" {
				t.Errorf("a file outside became %q, %v", data, err)
			}
			if _, err := os.Lstat(filepath.Join(b.dir, "steps.jsonl")); err == nil {
				t.Error("there are two logs")
			}
		})
	}
}

// TestDeskTimeIsUp: an agent that ends because its time is up has not stopped, whoever is told
// first of it.
func TestDeskTimeIsUp(t *testing.T) {
	t.Parallel()
	for i := range 30 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			u := &toolUser{play: func(ctx context.Context, _ *toolUser) error {
				<-ctx.Done()
				return context.Cause(ctx)
			}}
			b := deskBench(t, &lookProblem{}, u)
			b.cfg.Agent.OverrideTimeoutSec = new(0.02)
			res := b.run(t)
			notes, err := jobdir.ReadNotes(b.dir)
			if err != nil || exceptionType(res) != exception.AgentTimeoutError || notes.Episode.End != jobdir.EpisodeTimeout || notes.AgentKilled == nil {
				t.Errorf("exception %v, episode %+v, killed %+v, %v", res.ExceptionInfo, notes.Episode, notes.AgentKilled, err)
			}
			if rewardsText(res) != "{'reward': 0.25}" {
				t.Errorf("rewards %s", rewardsText(res))
			}
		})
	}
}

// TestDeskAfterTheEnd: what an agent does after the end of the episode changes nothing of what
// came of it, also when its time passes meanwhile.
func TestDeskAfterTheEnd(t *testing.T) {
	t.Parallel()
	u := &toolUser{}
	u.play = func(ctx context.Context, u *toolUser) error {
		if err := u.expect(ctx, "look", "The task has ended."); err != nil {
			return err
		}
		_, err := u.env.Sandbox.Exec(ctx, sandbox.Command{Shell: "sleep forever"})
		return err
	}
	b := deskBench(t, &lookProblem{done: 1}, u)
	b.withRules(t, fake.On("sleep forever", fake.Hang()))
	b.cfg.Agent.OverrideTimeoutSec = new(0.5)
	res := b.run(t)
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil || res.ExceptionInfo != nil || notes.Episode.End != jobdir.EpisodeDone || notes.Episode.Truncated {
		t.Errorf("exception %v, episode %+v, %v", res.ExceptionInfo, notes.Episode, err)
	}
	if rewardsText(res) != "{'reward': 1.0}" || b.backend.Count(fake.OpKillTree) != 1 {
		t.Errorf("rewards %s, %d were killed", rewardsText(res), b.backend.Count(fake.OpKillTree))
	}
}

// TestDeskAndContainerAreKilled: when an agent's time is up, what it started is ended in its own
// sandbox also where that cannot be proven of the task's.
func TestDeskAndContainerAreKilled(t *testing.T) {
	t.Parallel()
	u := &toolUser{play: func(ctx context.Context, _ *toolUser) error { <-ctx.Done(); return ctx.Err() }}
	b := newBench(t, goodTask(), fake.Config{Before: fake.FailAt(fake.OpKillTree, 2, nil), Rules: []fake.Rule{fake.Always(fake.Exit(0))}}).
		withCube(t, "greeting", func(c cube.ContainerBackend) cube.BenchmarkConfig { return textfiles.NewConfig(c) }).withUser(u)
	b.cfg.Agent.OverrideTimeoutSec = new(0.3)
	res := b.run(t)
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil || exceptionType(res) != exception.AgentNotGoneError || notes.AgentKilled == nil || notes.AgentKilled.ProvenGone {
		t.Errorf("exception %v, killed %+v, %v", res.ExceptionInfo, notes.AgentKilled, err)
	}
	// The desk's own is ended when the episode is, then those of both.
	if n := b.backend.Count(fake.OpKillTree); n != 3 {
		t.Errorf("%d were killed", n)
	}
	if n := b.backend.Live(); n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
}

// faultyUser is an agent whose parts do what a test says.
type faultyUser struct {
	toolUser
	on map[string]func(context.Context) error
}

func (u *faultyUser) Setup(ctx context.Context, env agent.Env) error {
	if f := u.on["Setup"]; f != nil {
		return f(ctx)
	}
	return u.toolUser.Setup(ctx, env)
}

func (u *faultyUser) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	u.play = func(ctx context.Context, u2 *toolUser) error {
		_, _, err := u2.call(ctx, "look")
		if f := u.on["Run"]; f != nil {
			return f(ctx)
		}
		return err
	}
	return u.toolUser.Run(ctx, env, task)
}

// TestDeskFaults: a panic and the end of a goroutine in any part of a cube or of its agent are
// the trial's exception.
func TestDeskFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]func(context.Context) error{
		"panic":  func(context.Context) error { panic("oh") },
		"goexit": func(context.Context) error { runtime.Goexit(); return nil },
	}
	for _, hook := range []string{"Make", "Setup", "Reset", "Run", "look", "Finished", "Evaluate", "Close"} {
		for name, fault := range faults {
			t.Run(name+" in "+hook, func(t *testing.T) {
				t.Parallel()
				on := map[string]func(context.Context) error{hook: fault}
				b := faultyBench(t, &faultyProblem{on: on}, nil).withUser(&faultyUser{on: on})
				res := b.run(t)
				want := exception.RuntimeError
				if hook == "look" && name == "panic" { // an action that fails is data
					want = ""
				}
				if got := exceptionType(res); got != want || res.FinishedAt == nil {
					t.Errorf("exception %v, want %q", res.ExceptionInfo, want)
				}
				if n := b.backend.Live(); n != 0 {
					t.Errorf("%d sandboxes are left", n)
				}
			})
		}
	}
}

// TestDeskIsCancelled: a trial that is cancelled at any moment ends as cancelled, and leaves no
// sandbox and no server.
func TestDeskIsCancelled(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"Make", "create", "listen", "Setup", "Reset", "Run", "look", "Evaluate"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wait := func(ctx context.Context) error {
				cancel()
				<-ctx.Done()
				return context.Cause(ctx)
			}
			on := map[string]func(context.Context) error{moment: wait}
			u := &faultyUser{on: on}
			b := faultyBench(t, &faultyProblem{on: on}, nil).withUser(u)
			b.backend = fake.New(fake.Config{Dir: t.TempDir(), Before: func(ctx context.Context, c fake.Call) error {
				if string(c.Op) == moment {
					return wait(ctx)
				}
				return nil
			}})
			b.Backend = b.backend
			t.Cleanup(func() { fake.Verify(t, b.backend) })
			res, err := b.Run(ctx, b.cfg, 1)
			if err != nil {
				t.Fatal(err)
			}
			if exceptionType(res) != exception.CancelledError || res.VerifierResult != nil {
				t.Errorf("exception %v, rewards %s", res.ExceptionInfo, rewardsText(res))
			}
			if n := b.backend.Live(); n != 0 {
				t.Errorf("%d sandboxes are left", n)
			}
			if u.url != "" {
				if _, _, err := u.call(t.Context(), "look"); err == nil {
					t.Error("the server is still there")
				}
			}
		})
	}
}

// TestDeskDeafStep: a step that does not return when the agent's time is up is left to itself,
// with the agent ended and the task not scored.
func TestDeskDeafStep(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	abandon := make(chan struct{})
	p := &faultyProblem{on: map[string]func(context.Context) error{"look": func(ctx context.Context) error {
		<-ctx.Done()
		close(abandon)
		<-release
		return nil
	}}}
	u := &toolUser{play: func(ctx context.Context, u *toolUser) error {
		_, _, err := u.call(ctx, "look")
		return err
	}}
	b := faultyDesk(t, p, u)
	b.Abandon = abandon
	b.cfg.Agent.OverrideTimeoutSec = new(0.3)
	res := b.run(t)
	if exceptionType(res) != exception.AgentTimeoutError || res.VerifierResult != nil {
		t.Errorf("exception %v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil || notes.Episode.End != jobdir.EpisodeTimeout {
		t.Errorf("episode %+v, %v", notes.Episode, err)
	}
}

// TestDeskWithoutWay: a sandbox that carries no connections, and one that cannot be made, end
// the trial with what was missing.
func TestDeskWithoutWay(t *testing.T) {
	t.Parallel()
	own := errors.New("no room")
	for op, want := range map[fake.Op]string{fake.OpCreate: "no room", fake.OpListen: "letting the agent reach the tools of the task: listen", fake.OpMark: "no room"} {
		u := &toolUser{play: func(context.Context, *toolUser) error { return nil }}
		p := &faultyProblem{}
		b := faultyDesk(t, p, u)
		b.backend = fake.New(fake.Config{Dir: t.TempDir(), Before: fake.FailAt(op, 1, own)})
		b.Backend = b.backend
		if res := b.run(t); res.ExceptionInfo == nil || !strings.Contains(res.ExceptionInfo.Message, want) || b.backend.Live() != 0 {
			t.Errorf("%s: exception %v", op, res.ExceptionInfo)
		}
	}
}

// looking lets the bench run the cube whose task is to look.
func (b *bench) looking(t *testing.T, p *lookProblem) *bench {
	t.Helper()
	b.Cube = lookBench(t, p, "").Cube
	return b
}

// TestDeskInstalls: the program of an agent that plays a cube's task is installed before the
// trial, for the agent's own image, and what it logs becomes a trajectory that begins with what
// it was told.
func TestDeskInstalls(t *testing.T) {
	t.Parallel()
	m := &mine{}
	log := `{"type":"step_start","part":{}}` + "\n" + `{"type":"text","part":{"text":"I looked."}}` + "\n" +
		`{"type":"step_finish","part":{"tokens":{"input":1000,"output":5}}}` + "\n"
	file := strings.NewReplacer("pi.txt", "opencode.txt", `"pi"`, `"opencode"`).Replace(mineFile)
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(fake.Print(log))}), file+"SERVERS = '{{mcp \"gemini\"}}'\n").looking(t, &lookProblem{})
	b.cfg.Agent.Kwargs = cube.Pairs("sandbox_image", "own/image:2")
	i := b.install(t)
	if i.Image != "own/image:2" || i.Version != "1.2.3" {
		t.Errorf("installed %+v", i)
	}
	if again := b.Installer(b.cfg); again != nil {
		t.Errorf("there is still %+v to install", again)
	}
	res := b.run(t)
	if res.ExceptionInfo != nil || res.AgentInfo.Version != "1.2.3" || m.installs.Load() != 1 || b.mounted() == nil {
		t.Errorf("exception %+v, agent %+v, installed %d times", res.ExceptionInfo, res.AgentInfo, m.installs.Load())
	}
	if got := used(res.AgentResult); !strings.HasPrefix(got, "1000 ") {
		t.Errorf("it used %s", got)
	}
	made := readTrajectory(t, b.dir, "agent/trajectory.json")
	if made == nil || len(made.Steps) != 2 || !strings.HasPrefix(made.Steps[0].Message.Text, "Look.\n") {
		t.Errorf("the trajectory is %+v", made)
	}
}

// TestDeskBudget: an agent whose budget is used up is ended while an action of it is under way,
// and what it did is scored.
func TestDeskBudget(t *testing.T) {
	t.Parallel()
	under := make(chan struct{})
	p := &faultyProblem{on: map[string]func(context.Context) error{"look": func(ctx context.Context) error {
		close(under)
		<-ctx.Done()
		return ctx.Err()
	}}}
	ask := func(ctx context.Context, pr *fake.Process) (int, error) {
		config, err := pr.Sandbox.ReadFile(pr.Env["PROCTOR_MCP_CONFIG"])
		if err != nil {
			return 1, err
		}
		_, url, _ := strings.Cut(string(config), `"url":`)
		u := &toolUser{url: strings.Split(url, `"`)[1]}
		go func() { _, _, _ = u.call(ctx, "look") }()
		<-under
		for {
			if _, err := call(ctx, pr, openai(), ""); err != nil {
				return 1, ctx.Err()
			}
		}
	}
	b := newBench(t, goodTask(), fake.Config{Rules: []fake.Rule{fake.On(work, ask)}})
	b.Cube = faultyBench(t, p, nil).Cube
	g := withGateway(t, b, openai(), nil)
	g.Budget.Tokens = 200
	res := g.run(t)
	notes := readNotes(t, g.dir)
	if exceptionType(res) != exception.BudgetExceededError || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %+v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if notes.Episode.End != jobdir.EpisodeBudget || !notes.Episode.Truncated || notes.AgentKilled == nil || notes.AgentKilled.Reason != "model" {
		t.Errorf("episode %+v, killed %+v", notes.Episode, notes.AgentKilled)
	}
	if g.counted().Requests != 2 || value.Repr(*res.AgentResult.NOutputTokens) != "60" {
		t.Errorf("the server counted %+v, the result has %s", g.counted(), used(res.AgentResult))
	}
}

// TestDeskUnverified: without a verification the last turn is in the log, unscored.
func TestDeskUnverified(t *testing.T) {
	t.Parallel()
	u := &toolUser{play: func(ctx context.Context, u *toolUser) error { return u.expect(ctx, "look", "The task has ended.") }}
	p := &lookProblem{done: 1}
	b := deskBench(t, p, u)
	b.cfg.Verifier.Disable = true
	res := b.run(t)
	if res.ExceptionInfo != nil || res.VerifierResult != nil || p.evaluations != 0 {
		t.Errorf("exception %v, rewards %s, evaluated %d times", res.ExceptionInfo, rewardsText(res), p.evaluations)
	}
	if log := readText(t, b.dir, "agent/steps.jsonl"); strings.Count(log, "\n") != 1 || !strings.Contains(log, "look 1") {
		t.Errorf("the log of the episode: %s", log)
	}
}
