package logs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/atif"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/value"
)

// TestAgentLogs converts the logs that the reference was given.
func TestAgentLogs(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"claude-code", "codex", "gemini-cli", "goose", "mini-swe-agent", "opencode", "openhands"} {
		v, err := value.Decode(vectors.File(t, "agent-logs/"+agent+".json"))
		if err != nil {
			t.Fatal(err)
		}
		cases, _ := v.(value.List)
		if len(cases) == 0 {
			t.Fatalf("%s: there is no case in it", agent)
		}
		for _, item := range cases {
			c := item.(*value.Object)
			t.Run(agent+"/"+vectors.Str(c, "name"), func(t *testing.T) {
				t.Parallel()
				runCase(t, c)
			})
		}
	}
}

func runCase(t *testing.T, c *value.Object) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range vectors.Object(c, "files").All() {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), string(text.(value.Str)))
	}
	got, err := convert(vectors.Str(c, "agent"), Input{
		Dir: dir, Model: vectors.Str(c, "model_name"), Prices: prices(c),
		Instruction: vectors.Str(c, "instruction"), Session: "<random uuid>", // which is how the cases have it
	})
	if raises := vectors.Str(c, "raises"); raises != "" {
		_, message, _ := strings.Cut(raises, ": ")
		if err == nil || !strings.HasSuffix(err.Error(), message) {
			t.Errorf("got error %v, want %s", err, raises)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(line(vectors.Get(c, "context")), line(contextOf(got))); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
	want := vectors.Get(c, "trajectory")
	if value.IsNull(want) != (got.Trajectory == nil) {
		t.Fatalf("trajectory %v, want %s", got.Trajectory, line(want))
	}
	if got.Trajectory == nil {
		return
	}
	if diff := cmp.Diff(pretty(want), pretty(got.Trajectory.Object())); diff != "" {
		t.Errorf("trajectory (-want +got):\n%s", diff)
	}
	escapes := vectors.Bool(vectors.Object(c, "trajectory_file_style"), "escapes_non_ascii")
	if data := string(got.Trajectory.Append(nil, got.Style)); strings.Contains(data, `\u`) != escapes {
		t.Errorf("text beyond ASCII is escaped: %v, want %v", !escapes, escapes)
	}
}

func prices(c *value.Object) func(string) (Price, bool) {
	table := vectors.Object(c, "prices")
	return func(model string) (Price, bool) {
		row := vectors.Object(table, model)
		if row == nil {
			return Price{}, false
		}
		return Price{Input: *amount(row, "input_cost_per_token"), Output: *amount(row, "output_cost_per_token"), CacheRead: amount(row, "cache_read_input_token_cost")}, true
	}
}

// contextOf is the agent's result as the reference has it.
func contextOf(c *Converted) *value.Object {
	o := &value.Object{}
	for _, m := range []struct {
		key string
		n   *value.Int
	}{{"n_input_tokens", c.InputTokens}, {"n_cache_tokens", c.CachedTokens}, {"n_output_tokens", c.OutputTokens}} {
		o.Set(m.key, value.Null{})
		if m.n != nil {
			o.Set(m.key, *m.n)
		}
	}
	o.Set("cost_usd", value.Null{})
	if c.CostUSD != nil {
		o.Set("cost_usd", value.Float(*c.CostUSD))
	}
	o.Set("metadata", value.Null{})
	return o
}

func line(v value.Value) string { return string(value.AppendDumps(nil, v, value.DumpsOptions{})) }
func pretty(v value.Value) string {
	return string(value.AppendDumps(nil, v, value.DumpsOptions{Indent: 1}))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// realAgents are those of which runs were recorded.
var realAgents = []string{"claude-code", "cline-cli", "codex", "continue", "copilot-cli", "gemini-cli", "kilo", "opencode", "pi", "qwen-coder"}

// TestRealLogs converts what the programs themselves wrote, and compares with what
// the server that they talked to counted.
func TestRealLogs(t *testing.T) {
	t.Parallel()
	root := "testdata/vectors"
	if dir := os.Getenv("PROCTOR_VECTORS"); dir != "" {
		root = dir
	}
	for _, agent := range realAgents {
		for _, scenario := range []string{"ok", "auth"} {
			t.Run(agent+"/"+scenario, func(t *testing.T) {
				t.Parallel()
				name := "agent-logs-real/" + agent + "/" + scenario
				v, err := value.Decode(vectors.File(t, name+"/expected.json"))
				if err != nil {
					t.Fatal(err)
				}
				in := Input{Dir: filepath.Join(root, filepath.FromSlash(name)), Version: "9.9.9", Instruction: "the trial's"}
				if agent == "kilo" || agent == "opencode" { // whose records do not have it
					in.Instruction = "Create the file `hello.txt` in …"
				}
				got, err := convert(agent, in)
				if err != nil {
					t.Fatal(err)
				}
				checkReal(t, v.(*value.Object), got)
			})
		}
	}
}

func checkReal(t *testing.T, want *value.Object, got *Converted) {
	t.Helper()
	printsOnlyErrors := slices.Contains([]string{"continue", "kilo", "opencode"}, vectors.Str(want, "agent")) && got.Failure != ""
	if got.Trajectory == nil {
		if printsOnlyErrors {
			got.Trajectory = &atif.Trajectory{}
		} else {
			t.Fatal("there is no trajectory")
		}
	}
	tokens := vectors.Object(want, "tokens")
	for _, m := range []struct {
		key string
		n   *value.Int
	}{{"input", got.InputTokens}, {"cached", got.CachedTokens}, {"output", got.OutputTokens}} {
		n := value.Int{}
		if m.n != nil {
			n = *m.n
		}
		if n.Cmp(count(tokens, m.key)) != 0 {
			t.Errorf("%s tokens are %s, the server counted %s", m.key, n, count(tokens, m.key))
		}
	}
	var calls, wanted []string
	last := ""
	for _, s := range got.Trajectory.Steps {
		for _, c := range s.ToolCalls {
			calls = append(calls, c.FunctionName+" "+line(c.Arguments))
			if s.Observation == nil || len(s.Observation.Results) != 1 || s.Observation.Results[0].Content == nil {
				t.Errorf("call %s has no result", c.ID)
			}
		}
		if s.Source == atif.Agent && s.Message.Text != "" {
			last = s.Message.Text
		}
	}
	for _, c := range vectors.List(want, "tool_calls") {
		wanted = append(wanted, text(c, "name")+" "+line(at(c, "arguments")))
	}
	if diff := cmp.Diff(wanted, calls); diff != "" {
		t.Errorf("tool calls (-want +got):\n%s", diff)
	}
	if final := vectors.Str(want, "final_text"); final != "" && last != final {
		t.Errorf("the last text is %q, want %q", last, final)
	}
	checkFailure(t, want, got)
	if len(got.Trajectory.Steps) == 0 {
		return
	}
	checkAgent(t, want, got)
	instruction := func(s atif.Step) bool {
		return s.Source == atif.User && strings.HasPrefix(s.Message.Text, "Create the file `hello.txt`")
	}
	if !slices.ContainsFunc(got.Trajectory.Steps, instruction) {
		t.Error("the instruction is in no step")
	}
	if len(got.Truncated) > 0 {
		t.Errorf("truncated: %q", got.Truncated)
	}
}

// withoutStatus are agents whose logs do not say which status the server answered with.
var withoutStatus = []string{"cline-cli"}

func checkFailure(t *testing.T, want *value.Object, got *Converted) {
	t.Helper()
	failed := vectors.Str(want, "scenario") == "auth"
	wantType := ""
	if failed {
		wantType = "AuthenticationError"
	}
	if kind := FailureType(got.Failure); failed != (got.Failure != "") || kind != wantType {
		t.Errorf("the failure is %q, of the type %q", got.Failure, kind)
	}
	if failed && !strings.Contains(got.Failure, "401") && !slices.Contains(withoutStatus, vectors.Str(want, "agent")) {
		t.Errorf("the failure is %q, without the status", got.Failure)
	}
}

// checkAgent holds that the log's version counts before the trial's, that its model is
// known, that what was thought is there, and that the steps add up to what was used.
func checkAgent(t *testing.T, want *value.Object, got *Converted) {
	t.Helper()
	a, version := got.Trajectory.Agent, vectors.Str(want, "version")
	if slices.Contains([]string{"continue", "gemini-cli", "kilo", "opencode", "pi"}, vectors.Str(want, "agent")) {
		version = "9.9.9"
	}
	if a.Version != version {
		t.Errorf("the version is %q, want %q", a.Version, version)
	}
	if vectors.Str(want, "scenario") != "ok" {
		return
	}
	if a.ModelName == nil && a.Name != "kilo" && a.Name != "opencode" {
		t.Error("the model is not known")
	}
	var sum value.Int
	thought := ""
	for _, s := range got.Trajectory.Steps {
		if s.ReasoningContent != nil {
			thought += *s.ReasoningContent
		}
		if m := s.Metrics; m != nil {
			sum = sum.Add(*m.PromptTokens).Add(*m.CompletionTokens)
			if m.CachedTokens != nil {
				sum = sum.Add(*m.CachedTokens)
			}
		}
	}
	if all := got.InputTokens.Add(*got.CachedTokens).Add(*got.OutputTokens); all.Cmp(sum) != 0 {
		t.Errorf("the steps used %s tokens, the run %s", sum, all)
	}
	if vectors.Bool(want, "reasoning_in_log") && !strings.Contains(thought, vectors.Str(want, "reasoning_sent")) {
		t.Errorf("thoughts are %q", thought)
	}
}
