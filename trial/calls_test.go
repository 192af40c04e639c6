package trial_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox/fake"
)

const callsFile = "agent/model-calls.jsonl"

// oneCall is a bench whose model makes one call of a command, then stops.
func oneCall(t *testing.T, command string) *bench {
	t.Helper()
	return harborBench(t).withModel(&llmtest.Script{Answers: []llmtest.Answer{
		llmtest.Call(toolCall("bash", `{"command": "`+command+`"}`)), llmtest.Call(toolCall("final_step", `{}`)),
	}})
}

// replaying gives the agents of a bench a recording, and no models.
func (b *bench) replaying(t *testing.T, strict bool, recorded ...[]byte) *bench {
	t.Helper()
	recording, err := llm.ParseRecording(bytes.Join(recorded, nil))
	if err != nil {
		t.Fatal(err)
	}
	b.withModel(&llmtest.Script{})
	b.Models = nil
	b.Replay = func(jobdir.TrialConfig) (*llm.Replay, error) {
		return &llm.Replay{Recording: recording, Name: "earlier", Strict: strict}, nil
	}
	return b
}

// TestModelCallsAreKept: what a model answered is in the directory of the agent, in place
// of what was there, without secrets.
func TestModelCallsAreKept(t *testing.T) {
	t.Parallel()
	b := oneCall(t, "echo "+hiddenValue)
	b.cfg.Agent.Env.Set("SOME_PASSWORD", hiddenValue)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	path := filepath.Join(b.dir, filepath.FromSlash(callsFile))
	if err := errors.Join(os.WriteFile(elsewhere, []byte("mine"), 0o644), os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(elsewhere, path)); err != nil {
		t.Fatal(err)
	}
	if res := b.run(t); res.ExceptionInfo != nil {
		t.Fatalf("exception %+v", res.ExceptionInfo)
	}
	data := readText(t, b.dir, callsFile)
	if strings.Count(data, "\n") != 3 || strings.Contains(data, hiddenValue) || !strings.Contains(data, "[REDACTED:SOME_PASSWORD]") {
		t.Errorf("the recording is\n%s", data)
	}
	if got := readText(t, filepath.Dir(elsewhere), "elsewhere"); got != "mine" {
		t.Errorf("a file elsewhere is %q", got)
	}
	again := harborBench(t).replaying(t, true, []byte(data))
	again.cfg.Agent.Env.Set("SOME_PASSWORD", hiddenValue)
	if res := again.run(t); res.ExceptionInfo != nil || readText(t, again.dir, callsFile) == "" {
		t.Errorf("replayed: %+v", res.ExceptionInfo)
	}
	if notes, err := jobdir.ReadNotes(again.dir); err != nil || notes.ReplayedFrom != "earlier" || len(notes.Warnings) > 0 {
		t.Errorf("notes %+v, %v", notes, err)
	}
}

// TestModelCallsOfSteps: each step has the calls of its own; together they are one
// recording.
func TestModelCallsOfSteps(t *testing.T) {
	t.Parallel()
	steps := func() *bench {
		return newBench(t, stepTask(twoSteps, "one", "two"), fake.Config{Rules: []fake.Rule{emptying(), rewardByTurn("reward.txt", "1", "0.5")}})
	}
	stop := llmtest.Call(toolCall("final_step", ``))
	b := steps().withModel(&llmtest.Script{Answers: []llmtest.Answer{llmtest.Call(toolCall("bash", `{"command": "true"}`)), stop, stop}})
	b.run(t)
	one, two := readText(t, b.dir, "steps/one/"+callsFile), readText(t, b.dir, "steps/two/"+callsFile)
	if strings.Count(one, "\n") != 3 || strings.Count(two, "\n") != 1 || !strings.Contains(two, `{"call":3,`) {
		t.Errorf("the recordings are\n%s\n%s", one, two)
	}
	again := steps().replaying(t, true, []byte(one), []byte(two))
	if res := again.run(t); rewardsText(res) != "{'reward': 0.75}" || res.ExceptionInfo != nil {
		t.Errorf("rewards %s, exception %+v", rewardsText(res), res.ExceptionInfo)
	}
}

// TestModelCallsAreBounded: a recording has a limit, and then says so.
func TestModelCallsAreBounded(t *testing.T) {
	t.Parallel()
	b := oneCall(t, strings.Repeat("true ", 500))
	b.OutputLimit = 2000
	b.run(t)
	data := readText(t, b.dir, callsFile)
	if _, err := llm.ParseRecording([]byte(data)); err == nil || !strings.Contains(err.Error(), "the recording is cut") || len(data) > 2000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

// TestReplayThatDiffers: another request than the recorded one is a warning, or the end of
// the trial; so is a recording that ends too early, and none.
func TestReplayThatDiffers(t *testing.T) {
	t.Parallel()
	b := oneCall(t, "true")
	b.run(t)
	data := readText(t, b.dir, callsFile)
	lines := strings.SplitAfter(data, "\n")
	for _, c := range []struct {
		name      string
		strict    bool
		prompt    string
		recorded  string
		exception string
		text      string
	}{
		{"another task", false, "Other.", data, "", "call 1 of recording earlier was made with another request"},
		{"another task, strict", true, "Other.", data, llm.ReplayDivergedError, "call 1 of recording earlier was made with another request"},
		{"too short", false, "Do it.", strings.Join(lines[:2], ""), llm.ReplayDivergedError, "recording earlier has no call 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, goodTask().with("instruction.md", c.prompt+"\n"), fake.Config{Rules: []fake.Rule{rewardRule("reward.txt", "1.0")}})
			res := b.replaying(t, c.strict, []byte(c.recorded)).run(t)
			if got := exceptionType(res); got != c.exception || !strings.Contains(readText(t, b.dir, "trial.log"), c.text) {
				t.Errorf("exception %q, want %q\n%s", got, c.exception, readText(t, b.dir, "trial.log"))
			}
		})
	}
}
