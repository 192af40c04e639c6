package logs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// readers are the agents whose logs can be read.
var readers = map[string]Reader{
	"claude-code": ClaudeCode, "codex": Codex, "gemini-cli": GeminiCLI, "goose": Goose, "kilo": Kilo,
	"mini-swe-agent": MiniSWEAgent, "opencode": OpenCode, "openhands": OpenHands, "pi": Pi,
	"cline-cli": ClineCLI, "continue": Continue, "copilot-cli": CopilotCLI, "qwen-coder": QwenCoder,
	"acp": ACP,
}

// convert reads the logs of an agent of readers.
func convert(agent string, in Input) (*Converted, error) { return Read(agent, readers[agent], in) }

func TestNoDirectory(t *testing.T) {
	t.Parallel()
	if _, err := convert("pi", Input{Dir: filepath.Join(t.TempDir(), "nowhere")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// mainFiles are where the agents' sessions are.
var mainFiles = map[string]string{
	"claude-code": "sessions/projects/-app/s.jsonl",
	"codex":       "sessions/2026/01/01/rollout-1.jsonl",
	"gemini-cli":  "gemini-cli.trajectory.jsonl",
	"pi":          "pi.txt",
	"kilo":        "kilo.txt",
	"opencode":    "opencode.txt",
	"cline-cli":   "sessions/1/1.messages.json",
	"continue":    "sessions/s.json",
	"copilot-cli": "sessions/s/events.jsonl",
	"qwen-coder":  "sessions/projects/-app/chats/s.jsonl",
	"acp":         "acp.jsonl",
}

// printedFiles are where stands what the agents printed, where that is not the session.
var printedFiles = map[string]string{
	"claude-code": "claude-code.txt", "codex": "codex.txt", "gemini-cli": "gemini-cli.txt",
	"cline-cli": "cline.txt", "continue": "continue.txt", "copilot-cli": "copilot-cli.jsonl", "qwen-coder": "qwen-code.txt",
}

// mustReadPrinted is what an agent printed in a recorded run, if it is not the session.
func mustReadPrinted(t testing.TB, agent, scenario string) []byte {
	t.Helper()
	if printedFiles[agent] == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join("testdata/vectors/agent-logs-real", agent, scenario, printedFiles[agent]))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// otherFiles are the sessions of agents of which no run was recorded.
var otherFiles = map[string]string{
	"goose":          "goose.txt",
	"mini-swe-agent": "mini-swe-agent.trajectory.json",
	"openhands":      "sessions/s/events/0.json",
}

// TestLinksAreNotFollowed has an agent that leaves links to the host's files.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for agent := range mainFiles {
		secret := filepath.Join(outside, agent+".jsonl")
		write(t, secret, mustRead(t, agent))
		dir := t.TempDir()
		file := filepath.Join(dir, mainFiles[agent])
		write(t, file+".x", "")
		if err := os.Symlink(secret, file); err != nil {
			t.Skipf("symbolic links cannot be made here: %v", err)
		}
		got, err := convert(agent, Input{Dir: dir})
		if err != nil || got.Trajectory != nil {
			t.Errorf("%s: %v, %v", agent, got, err)
		}
	}
}

// mustRead is a real session of an agent.
func mustRead(t testing.TB, agent string) string {
	t.Helper()
	if agent == "acp" {
		return acpSession
	}
	pattern := map[string]string{
		"claude-code": "sessions/projects/-app/*.jsonl", "codex": "sessions/*/*/*/*.jsonl", "gemini-cli": "sessions/*.jsonl", "pi": "pi.txt",
		"kilo": "kilo.txt", "opencode": "opencode.txt",
		"cline-cli": "sessions/*/*.messages.json", "continue": "sessions/*.json", "copilot-cli": "sessions/*/events.jsonl", "qwen-coder": "sessions/projects/*/chats/*.jsonl",
	}[agent]
	files, err := filepath.Glob(filepath.Join("testdata/vectors/agent-logs-real", agent, "ok", pattern))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: %v, %v", agent, files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRewind goes back to messages that are there, were there and never were.
func TestRewind(t *testing.T) {
	t.Parallel()
	for records, want := range map[string]string{
		"a b c >b d":      "a d",
		"a b c >a b":      "b",
		"a b >x c":        "c",
		"a b >b >b c a":   "c a",
		"a b c >b >c a b": "a b",
	} {
		var lines []string
		for r := range strings.FieldsSeq(records) {
			if to, ok := strings.CutPrefix(r, ">"); ok {
				lines = append(lines, fmt.Sprintf(`{"$rewindTo":%q}`, to))
				continue
			}
			lines = append(lines, fmt.Sprintf(`{"id":%q,"type":"user","content":%q}`, r, r))
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, mainFiles["gemini-cli"]), strings.Join(lines, "\n"))
		got, err := convert("gemini-cli", Input{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, s := range got.Trajectory.Steps {
			left = append(left, s.Message.Text)
		}
		// A message that is written again while it is there keeps its place.
		if diff := cmp.Diff(want, strings.Join(left, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", records, diff)
		}
	}
}

// TestWhatTrajectoriesCannotHold has logs with times that are none and text that
// UTF-8 cannot hold.
func TestWhatTrajectoriesCannotHold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, mainFiles["claude-code"]), `{"type":"user","timestamp":"noon","message":{"content":"a\ud800b"}}`+"\n\xff\n"+
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"n","input":"\udfff"}],"usage":{"input_tokens":1e400,"output_tokens":"x"}}}`)
	got, err := convert("claude-code", Input{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s := got.Trajectory.Steps
	if s[0].Timestamp != nil || s[0].Message.Text != "a\ufffdb" || line(s[1].ToolCalls[0].Arguments) != `{"input": "\ufffd"}` {
		t.Errorf("steps are %+v", s)
	}
}

// FuzzConvert holds that whatever a log says it is read, and comes to a trajectory
// that is valid or to none.
func FuzzConvert(f *testing.F) {
	agents := slices.Sorted(maps.Keys(readers))
	add := func(agent string, session string, printed []byte) {
		f.Add(uint8(slices.Index(agents, agent)), []byte(session), printed)
	}
	for agent := range mainFiles {
		add(agent, mustRead(f, agent), mustReadPrinted(f, agent, "ok"))
		add(agent, "{}", mustReadPrinted(f, agent, "ok"))
		add(agent, "{}", mustReadPrinted(f, agent, "auth"))
	}
	add("codex", `{"type":"response_item","payload":{"type":"function_call","call_id":"c","name":"n","arguments":"[1]"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":{"output":[]}}}
{"type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":1.5},"total_cost":1}}}
{"type":"token_usage_record","payload":{"usage":{"input_tokens":1}}}`, nil)
	add("gemini-cli", `{"id":"1","type":"gemini","toolCalls":[{"id":"c","result":[{"functionResponse":{"response":{"output":[]},"parts":[{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}}]}]}`, nil)
	add("claude-code", `{"type":"assistant","message":{"content":[{"type":"redacted_thinking","data":"openrouter.reasoning:e30="},{"type":"tool_use","id":"t"}]}}
{"type":"user","toolUseResult":{"exit_code":1,"x":null},"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[5],"is_error":true}]}}`, nil)
	for agent := range otherFiles {
		cases, ok := decode(string(vectors.File(f, "agent-logs/"+agent+".json"))).(value.List)
		if !ok {
			f.Fatal(agent)
		}
		for _, text := range vectors.Object(cases[0].(*value.Object), "files").All() {
			add(agent, string(text.(value.Str)), []byte("{"))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, session, printed []byte) {
		agent := agents[int(which)%len(agents)]
		name := mainFiles[agent] + otherFiles[agent]
		dir := t.TempDir()
		write(t, filepath.Join(dir, name), string(session))
		if file := printedFiles[agent]; file != "" {
			write(t, filepath.Join(dir, file), string(printed))
		}
		got, err := convert(agent, Input{Dir: dir, Model: "p/m", Instruction: "do it", Version: "1"})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Truncated) > maxNotes+1 || len(got.Failure) > maxFailure+len("…") {
			t.Errorf("%d notes, a failure of %d bytes", len(got.Truncated), len(got.Failure))
		}
		FailureType(string(printed))
		if got.Trajectory == nil && got.InputTokens != nil && agent != "goose" {
			t.Error("tokens without a step")
		}
	})
}
