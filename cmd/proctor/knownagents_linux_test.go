package main

import (
	"cmp"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/llm/llmtest"
)

// agentsVar names the agents that [TestKnownAgents] tries, with blanks between them; "all"
// are those that are known to work and whose logs can be read.
const agentsVar = "PROCTOR_TEST_AGENTS"

// TestKnownAgents installs real programs from npm's registry, each once, and runs them in
// sandboxes without a network against a model that follows a script: what they did is a
// trajectory with the tokens that the server counted, and a refused key is no score.
func TestKnownAgents(t *testing.T) { //nolint:tparallel // one after the other: each takes both cores
	t.Parallel()
	need.Patience(t)
	need.That(t, "npm", need.Required("npm"), "installs packages of npm")
	err := hostSandboxes()
	need.That(t, "host", err == nil, "needs sandboxes on the host's own root")
	chosen := strings.Fields(cmp.Or(os.Getenv(agentsVar), "claude-code codex gemini-cli pi"))
	tried := 0
	for _, d := range installed.Definitions() {
		if slices.Contains(chosen, d.Name) || d.Tried && d.Logs != "" && slices.Equal(chosen, []string{"all"}) {
			tried++
			t.Run(d.Name, func(t *testing.T) { tryAgent(t, d) })
		}
	}
	if tried == 0 {
		t.Errorf("%s is %q, and none of these is an agent", agentsVar, chosen)
	}
}

// scriptedModel serves the model that agents' shells are known to.
func scriptedModel(t *testing.T) (server *llmtest.Server, address string) {
	t.Helper()
	text, err := os.ReadFile(repositoryPath(t, "examples/fakemodel/agents.json"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := llmtest.ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	server = &llmtest.Server{Answer: script.Answer, Key: "sk-provider-0123456789"}
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	return server, listening.URL
}

func tryAgent(t *testing.T, d *installed.Definition) {
	server, address := scriptedModel(t)
	p := newPlace(t)
	writeAgentTask(t, filepath.Join(p.dir, "tasks", "hello"))
	cache := ownCache(t, p)
	runJob := func(name, key string, tasks ...string) (finished, time.Duration) {
		if tasks == nil {
			tasks = []string{"run", "-p", "tasks"}
		}
		cmd := p.command(append(tasks, "-a", d.Name, "-m", "local/m", "--ak", "api="+string(d.Model.APIs[0]), "--ak", "api_base="+address+"/v1",
			"-e", "host", "--runtime", "native", "--job-name", name)...)
		cmd.Env = append(cmd.Env, "LOCAL_API_KEY="+key, "PROCTOR_CACHE_DIR="+cache)
		begun := time.Now()
		return finish(t, cmd), time.Since(begun)
	}
	first, took := runJob("first", server.Key)
	if first.code != 0 || !strings.Contains(first.stderr, "installed "+d.Name+" "+d.Version) {
		t.Fatalf("exit %d\n%s\n%s", first.code, first.stdout, first.stderr)
	}
	t.Logf("%s: the first job took %.1f s, with the installation: %s", d.Name, took.Seconds(), lineWith(first.stderr, "installed "))
	counted := server.Counts()[llmtest.Account{Model: "m", Key: server.Key}]
	second, took := runJob("second", server.Key)
	if second.code != 0 || strings.Contains(second.stderr, "install") {
		t.Fatalf("the second: exit %d\n%s\n%s", second.code, second.stdout, second.stderr)
	}
	t.Logf("%s: the second job took %.1f s, %d requests, %d tokens in, %d out", d.Name, took.Seconds(), counted.Requests, counted.Usage.Prompt, counted.Usage.Completion)
	for _, job := range []string{"first", "second"} {
		checkAgentTrial(t, p, filepath.Join(job, "hello__*"), counted)
	}
	refused, took := runJob("refused", "sk-other-0123456789")
	if refused.code != exitTrialErrors || !strings.Contains(refused.stdout, "AuthenticationError") || !strings.Contains(refused.stdout, "1 trial: 0 scored") {
		t.Errorf("with a key that is refused: exit %d\n%s\n%s", refused.code, refused.stdout, refused.stderr)
	}
	t.Logf("%s: a refused key took %.1f s", d.Name, took.Seconds())
	if d.Entry().UsesTools {
		tryCube(t, p, d, server, runJob)
	}
	assertNoSecret(t, filepath.Join(p.dir, "jobs"), server.Key)
}

// tryCube plays a task of a cube with the same agent: its only way there is the server of the
// task's tools.
func tryCube(t *testing.T, p place, d *installed.Definition, server *llmtest.Server, run func(name, key string, tasks ...string) (finished, time.Duration)) {
	t.Helper()
	account := llmtest.Account{Model: "m", Key: server.Key}
	before := server.Counts()[account].Usage
	played, took := run("cube", server.Key, "cube", "run", "arithmetic-cube", "-t", "add-3-4")
	if played.code != 0 || strings.Contains(played.stderr, "install") {
		t.Fatalf("the cube: exit %d\n%s\n%s", played.code, played.stdout, played.stderr)
	}
	if !strings.Contains(played.stderr, "reward 1.0") {
		t.Errorf("the cube: %s", played.stderr)
	}
	counted := server.Counts()[account]
	counted.Usage.Prompt -= before.Prompt
	counted.Usage.Completion -= before.Completion
	t.Logf("%s: a task of a cube took %.1f s", d.Name, took.Seconds())
	checkAgentTrial(t, p, filepath.Join("cube", "add-3-4__*"), counted)
}

// ownCache is a cache without agents, with all else that the one of the tests has: what was
// built there.
func ownCache(t *testing.T, p place) string {
	t.Helper()
	shared, own := os.Getenv("PROCTOR_CACHE_DIR"), filepath.Join(p.dir, "cache")
	entries, err := os.ReadDir(shared)
	if err == nil {
		err = os.Mkdir(own, 0o755)
	}
	for _, e := range entries {
		if err == nil && e.Name() != "agents" {
			err = os.Symlink(filepath.Join(shared, e.Name()), filepath.Join(own, e.Name()))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return own
}

// checkAgentTrial compares a trial with what the server counted. Side requests, as for a
// title, are in no log.
func checkAgentTrial(t *testing.T, p place, trial string, counted llmtest.Count) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.dir, "jobs", trial))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("directories %q: %v", dirs, err)
	}
	var result struct {
		AgentInfo   struct{ Version string } `json:"agent_info"`
		AgentResult struct {
			Input  int64 `json:"n_input_tokens"`
			Output int64 `json:"n_output_tokens"`
		} `json:"agent_result"`
	}
	readJSON(t, filepath.Join(dirs[0], "result.json"), &result)
	if result.AgentResult.Input != counted.Usage.Prompt || result.AgentResult.Output != counted.Usage.Completion || result.AgentInfo.Version == "unknown" {
		t.Errorf("%s: the result has %+v, the server counted %+v", trial, result, counted)
	}
	if valid := p.run(t, "traj", "validate", filepath.Join(dirs[0], "agent", "trajectory.json")); valid.code != 0 {
		t.Errorf("%s: %s", trial, valid.stdout)
	}
	var trajectory struct {
		Agent struct{ Version string }
		Final struct {
			Prompt     int64 `json:"total_prompt_tokens"`
			Cached     int64 `json:"total_cached_tokens"`
			Completion int64 `json:"total_completion_tokens"`
		} `json:"final_metrics"`
	}
	readJSON(t, filepath.Join(dirs[0], "agent", "trajectory.json"), &trajectory)
	// The two answers of the script.
	if f := trajectory.Final; f.Prompt != 2100 || f.Completion != 70 || f.Cached != 1000 {
		t.Errorf("%s: the trajectory's totals are %+v", trial, f)
	}
	if trajectory.Agent.Version != result.AgentInfo.Version {
		t.Errorf("%s: version %q, and the result has %q", trial, trajectory.Agent.Version, result.AgentInfo.Version)
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func lineWith(text, part string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// assertNoSecret looks into every file.
func assertNoSecret(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(data), secret) {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func writeAgentTask(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"task.toml":              "[agent]\ntimeout_sec = 600.0\n[environment]\nnetwork_mode = \"no-network\"\n",
		"instruction.md":         "Create the file `hello.txt` with the line: Hello, world!",
		"environment/Dockerfile": "FROM " + exampleImage + "\nWORKDIR /app\n",
		"tests/test.sh":          "grep -qx 'Hello, world!' hello.txt && echo 1 > /logs/verifier/reward.txt\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
