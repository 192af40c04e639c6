package trial_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// toolUser is an agent that works in a sandbox and knows of a stepped task what a server of
// tools tells.
type toolUser struct {
	play func(ctx context.Context, u *toolUser) error

	env   agent.Env
	task  agent.Task
	url   string
	seen  []agent.MCPServer // in Setup
	image bool
}

func (*toolUser) Info() agent.Info { return agent.Info{Name: "user", Version: "7"} }

func (u *toolUser) Setup(_ context.Context, env agent.Env) error {
	u.seen = env.MCPServers
	return nil
}

func (u *toolUser) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	u.env, u.task = env, task
	for _, s := range env.MCPServers {
		if s.Name == "task" {
			u.url = s.URL
		}
	}
	tokens := int64(12)
	return agent.Result{InputTokens: &tokens, Metadata: cube.Pairs("mood", "calm")}, u.play(ctx, u)
}

// ask makes a request to the server of tools.
func (u *toolUser) ask(ctx context.Context, method string, params any) (result map[string]any, err error) {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2025-06-18")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if _, event, ok := bytes.Cut(data, []byte("data: ")); ok {
		data = event
	}
	var answer struct {
		Result map[string]any
		Error  *struct{ Message string }
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", res.Status, err, data)
	}
	if answer.Error != nil {
		return nil, errors.New(answer.Error.Message)
	}
	return answer.Result, nil
}

// call calls a tool and returns the text that it answers.
func (u *toolUser) call(ctx context.Context, name string) (text string, failed bool, err error) {
	result, err := u.ask(ctx, "tools/call", map[string]any{"name": name, "arguments": map[string]any{}})
	if err != nil {
		return "", false, err
	}
	failed, _ = result["isError"].(bool)
	contents, _ := result["content"].([]any)
	for _, c := range contents {
		part, _ := c.(map[string]any)
		one, _ := part["text"].(string)
		text += one
	}
	return text, failed, nil
}

// expect calls tools and compares the answers.
func (u *toolUser) expect(ctx context.Context, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		text, _, err := u.call(ctx, pairs[i])
		if err != nil {
			return err
		}
		if text != pairs[i+1] {
			return fmt.Errorf("tool %s answered %q, want %q", pairs[i], text, pairs[i+1])
		}
	}
	return nil
}

// deskBench runs trials of the cube with an agent that uses tools.
func deskBench(t *testing.T, p *lookProblem, u *toolUser, settings ...any) *bench {
	t.Helper()
	b := lookBench(t, p, "user", settings...)
	b.Agents = append(b.Agents, agent.Entry{
		Name: "user", UsesTools: true,
		Sandboxed: func(agent.Config) (agent.Agent, error) { return u, nil },
	})
	return b
}

// callsOf are the calls of the backend of one kind.
func (b *bench) callsOf(op fake.Op) []fake.Call {
	return slices.DeleteFunc(b.backend.Calls(), func(c fake.Call) bool { return c.Op != op })
}

// withRules gives the bench another backend, whose commands do what the rules say.
func (b *bench) withRules(t *testing.T, rules ...fake.Rule) {
	t.Helper()
	b.backend = fake.New(fake.Config{Dir: t.TempDir(), Rules: rules})
	b.Backend = b.backend
	t.Cleanup(func() { fake.Verify(t, b.backend) })
}

func TestToolsOfCube(t *testing.T) {
	t.Parallel()
	const over = "The task has ended: no more actions are possible."
	cases := []struct {
		name    string
		problem lookProblem
		play    func(context.Context, *toolUser) error
		reward  string
		saw     string
		note    jobdir.EpisodeNote
		failure string
	}{
		{
			name: "the task is done", problem: lookProblem{done: 2},
			play: func(ctx context.Context, u *toolUser) error {
				return u.expect(ctx, "look", "look 1", "look", "The task has ended.", "look", over)
			},
			reward: "{'reward': 1.0}", saw: "look 2", note: jobdir.EpisodeNote{Steps: 2, MaxSteps: 4, End: jobdir.EpisodeDone},
		},
		{
			name:   "the agent ends by itself",
			play:   func(ctx context.Context, u *toolUser) error { return u.expect(ctx, "look", "look 1") },
			reward: "{'reward': 1.0}", saw: "look 1", note: jobdir.EpisodeNote{Steps: 1, MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "the agent stops",
			play: func(ctx context.Context, u *toolUser) error {
				return u.expect(ctx, "look", "look 1", "final_step", "Task finished by the agent.", "look", over)
			},
			reward: "{'reward': 0.25}", saw: "Task finished by the agent.", note: jobdir.EpisodeNote{Steps: 1, MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
		{
			name: "the steps are over",
			play: func(ctx context.Context, u *toolUser) error {
				return u.expect(ctx, "look", "look 1", "look", "look 2", "look", "look 3", "look", "The task has ended.", "look", over)
			},
			reward: "{'reward': 1.0}", saw: "look 4", note: jobdir.EpisodeNote{Steps: 4, MaxSteps: 4, End: jobdir.EpisodeMaxSteps, Truncated: true},
		},
		{
			name: "an agent that fails",
			play: func(ctx context.Context, u *toolUser) error {
				return errors.Join(u.expect(ctx, "look", "look 1"), &agent.ExitError{Command: "user", Code: 3})
			},
			reward: "{'reward': 1.0}", saw: "look 1", note: jobdir.EpisodeNote{Steps: 1, MaxSteps: 4, End: jobdir.EpisodeStopped},
			failure: "NonZeroAgentExitCodeError",
		},
		{
			name: "an agent that never begins", play: func(context.Context, *toolUser) error { return nil },
			reward: "{'reward': 0.25}", saw: "Look.", note: jobdir.EpisodeNote{MaxSteps: 4, End: jobdir.EpisodeStopped},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := &toolUser{play: c.play}
			p := c.problem
			b := deskBench(t, &p, u)
			res := b.run(t)
			if got := exceptionType(res); got != c.failure {
				t.Fatalf("exception %q, want %q: %v", got, c.failure, res.ExceptionInfo)
			}
			if got := rewardsText(res); got != c.reward || p.last != c.saw || p.evaluations != 1 {
				t.Errorf("rewards %s, saw %q in %d evaluations", got, p.last, p.evaluations)
			}
			notes, err := jobdir.ReadNotes(b.dir)
			if err != nil || notes.Episode == nil || *notes.Episode != c.note {
				t.Errorf("episode %+v, want %+v", notes.Episode, c.note)
			}
			if n := b.backend.Live(); n != 0 {
				t.Errorf("%d sandboxes are left", n)
			}
			if res.AgentInfo.Version != "7" || res.AgentResult.NInputTokens == nil || !strings.Contains(value.Repr(res.AgentResult.Metadata), "'mood': 'calm'") {
				t.Errorf("agent %+v, result %+v", res.AgentInfo, res.AgentResult)
			}
		})
	}
}

// TestDeskHasNothingOfTheTask looks at what an agent of a cube's task is given.
func TestDeskHasNothingOfTheTask(t *testing.T) {
	t.Parallel()
	u := &toolUser{}
	u.play = func(ctx context.Context, u *toolUser) error {
		listed, err := u.ask(ctx, "tools/list", map[string]any{})
		if err != nil {
			return err
		}
		if text := fmt.Sprint(listed["tools"]); !strings.Contains(text, "look") || !strings.Contains(text, "final_step") {
			return fmt.Errorf("tools %s", text)
		}
		return nil
	}
	b := deskBench(t, &lookProblem{}, u, "sandbox_image", "some/image:1")
	if res := b.run(t); res.ExceptionInfo != nil {
		t.Fatal(res.ExceptionInfo)
	}
	if !strings.HasPrefix(u.task.Instruction, "Look.\n") || !strings.Contains(u.task.Instruction, `MCP server "task"`) {
		t.Errorf("instruction %q", u.task.Instruction)
	}
	if len(u.seen) != 1 || u.seen[0].Name != "task" || u.seen[0].Transport != "streamable-http" || !strings.HasPrefix(u.seen[0].URL, "http://127.0.0.1:") {
		t.Errorf("servers %+v", u.seen)
	}
	made := b.callsOf(fake.OpCreate)
	if len(made) != 1 || made[0].Spec.Image.Ref != "some/image:1" || made[0].Spec.Image.Build != nil {
		t.Fatalf("sandboxes %+v", made)
	}
	for _, m := range made[0].Spec.Mounts {
		if m.Target != "/logs/agent" {
			t.Errorf("the agent's sandbox sees %s at %s", m.Source, m.Target)
		}
	}
}

func TestDeskIsRefused(t *testing.T) {
	t.Parallel()
	b := deskBench(t, &lookProblem{}, &toolUser{play: func(context.Context, *toolUser) error { return nil }})
	b.cfg.Agent.MCPServers = []harbor.MCPServer{{Name: "task", Transport: "sse", URL: new("http://x")}}
	res := b.run(t)
	if got := exceptionType(res); got != "ValueError" || !strings.Contains(res.ExceptionInfo.Message, "give it another name") {
		t.Errorf("exception %v", res.ExceptionInfo)
	}
	b = deskBench(t, &lookProblem{}, &toolUser{}, "sandbox_image", 3)
	if res := b.run(t); exceptionType(res) != "ValueError" || !strings.Contains(res.ExceptionInfo.Message, "sandbox_image") {
		t.Errorf("exception %v", res.ExceptionInfo)
	}
}

// TestDeskDeadline ends an agent that goes on beyond its time, with what it started.
func TestDeskDeadline(t *testing.T) {
	t.Parallel()
	u := &toolUser{}
	u.play = func(ctx context.Context, u *toolUser) error {
		if err := u.expect(ctx, "look", "look 1"); err != nil {
			return err
		}
		_, err := u.env.Sandbox.Exec(ctx, sandbox.Command{Shell: "sleep forever"})
		return err
	}
	p := &lookProblem{}
	b := deskBench(t, p, u)
	b.withRules(t, fake.On("sleep forever", fake.Hang()))
	b.cfg.Agent.OverrideTimeoutSec = new(0.5)
	res := b.run(t)
	if exceptionType(res) != "AgentTimeoutError" || rewardsText(res) != "{'reward': 1.0}" || p.last != "look 1" {
		t.Errorf("exception %v, rewards %s, saw %q", res.ExceptionInfo, rewardsText(res), p.last)
	}
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil || notes.AgentKilled == nil || !notes.AgentKilled.ProvenGone || notes.Episode.End != jobdir.EpisodeTimeout || !notes.Episode.Truncated {
		t.Errorf("killed %+v, episode %+v", notes.AgentKilled, notes.Episode)
	}
}

// TestDeskImages brings the images of the first observation to the agent as files.
func TestDeskImages(t *testing.T) {
	t.Parallel()
	u := &toolUser{play: func(ctx context.Context, u *toolUser) error {
		status, err := u.env.Sandbox.Exec(ctx, sandbox.Command{Shell: "look for /proctor/image-1.png"})
		u.image = status.Code == 0
		return err
	}}
	p := &picture{}
	b := deskBench(t, &p.lookProblem, u)
	b.Cube = func(jobdir.TrialConfig) (*trial.CubeTask, error) {
		return &trial.CubeTask{Name: "picture", Checksum: "0", Make: func(ctx context.Context, _ sandbox.Backend) (*cube.Task, error) { return cube.NewTask(ctx, p) }}, nil
	}
	b.withRules(t, fake.Rule{Match: func(c sandbox.Command) bool { return strings.HasPrefix(c.Shell, "look for ") }, Do: func(_ context.Context, p *fake.Process) (int, error) {
		if _, err := p.Sandbox.ReadFile(strings.TrimPrefix(p.Command.Shell, "look for ")); err != nil {
			return 1, nil
		}
		return 0, nil
	}})
	if res := b.run(t); res.ExceptionInfo != nil {
		t.Fatal(res.ExceptionInfo)
	}
	if !strings.Contains(u.task.Instruction, "/proctor/image-1.png") {
		t.Errorf("instruction %q", u.task.Instruction)
	}
	if !u.image {
		t.Error("the image is not there")
	}
}

// picture is a task whose first observation is a picture.
type picture struct{ lookProblem }

func (p *picture) Reset(context.Context) (*cube.Observation, cube.Info, error) {
	c, err := cube.ContentOf(image.NewGray(image.Rect(0, 0, 2, 2)))
	return cube.Observe(cube.Text("What is this?"), c), nil, err
}

// TestAgentOutside plays from this machine.
func TestAgentOutside(t *testing.T) {
	t.Parallel()
	u := &toolUser{play: func(ctx context.Context, u *toolUser) error { return u.expect(ctx, "look", "look 1") }}
	b := deskBench(t, &lookProblem{}, u)
	b.Agents[len(b.Agents)-1].Outside = true
	if res := b.run(t); res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("exception %v, rewards %s", res.ExceptionInfo, rewardsText(res))
	}
	if calls := b.callsOf(fake.OpListen); len(calls) != 0 {
		t.Errorf("it listens in the sandbox: %+v", calls)
	}
}

// TestDeskLeavesNoRewards: what the agent writes into its logs is no reward.
func TestDeskLeavesNoRewards(t *testing.T) {
	t.Parallel()
	u := &toolUser{}
	u.play = func(ctx context.Context, u *toolUser) error {
		return os.WriteFile(filepath.Join(u.env.LogDir, "reward.json"), []byte(`{"reward": 9}`), 0o600)
	}
	b := deskBench(t, &lookProblem{}, u)
	if res := b.run(t); rewardsText(res) != "{'reward': 0.25}" {
		t.Errorf("rewards %s", rewardsText(res))
	}
}
