package main

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
)

// secretAgent writes what it knows wherever an agent can write.
//
//go:embed testdata/secrets/agent.sh
var secretAgent string

// secretPlaces are the places that a secret is planted in. Each has its own.
var secretPlaces = []string{
	"agent-env", "kwargs", "verifier-env", "provider-key", "template", "mcp-header",
	"exit-message", "file", "tool-output", "trajectory", "task-env", "process-title",
}

// plant is the secret of a place.
func plant(where string) string { return "pl4nt+" + where + "/9z=Q" }

// needles are the ways in which a secret may be written, written down here once more.
func needles(s string) map[string]string {
	list := map[string]string{
		"plain": s, "hex": hex.EncodeToString([]byte(s)),
		"URL": strings.NewReplacer("+", "%2B", "/", "%2F", "=", "%3D").Replace(s),
	}
	// Of three bytes each four characters: those of whole groups within the secret.
	for before := range 3 {
		skip := (3 - before) % 3
		whole := (len(s) - skip) / 3 * 3
		list[fmt.Sprintf("base64, %d bytes before", before)] = base64.StdEncoding.EncodeToString([]byte(s[skip : skip+whole]))
	}
	return list
}

// secretJob is a place with a task and a job that knows all secrets.
type secretJob struct {
	place
	inputs string // nothing of it is looked at
	flags  []string
}

func newSecretJob(t *testing.T, e environment) *secretJob {
	t.Helper()
	j := &secretJob{place: newPlace(t), inputs: t.TempDir(), flags: e.flags(t)}
	writeFiles(t, filepath.Join(j.inputs, "tasks", "leak"), map[string]string{
		"task.toml": fmt.Sprintf("[environment]\nworkdir = \"/\"\n[environment.env]\nDB_PASSWORD = %q\nTOOL_TOKEN = \"${TOOL_TOKEN}\"\n", plant("task-env")),
		// The provider's key comes into the sandbox on a way of which proctor knows nothing.
		"instruction.md":         "Use " + plant("provider-key") + ".\n",
		"environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
		"tests/test.sh":          "echo \"judging with $JUDGE_KEY\"\necho \"$JUDGE_KEY\" > /logs/verifier/judge.log\necho 1 > /logs/verifier/reward.txt\n",
	})
	writeFiles(t, j.inputs, map[string]string{
		"job.json":     fmt.Sprintf(`{"environment": {"kwargs": {"note": {"api_key": %q}}}}`, plant("kwargs")),
		"mcp.json":     fmt.Sprintf(`{"mcpServers": {"tools": {"command": "mcp", "args": ["--header", "Authorization: Bearer %s"]}}}`, plant("mcp-header")),
		"actions.json": `[{"name": "bash", "arguments": {"command": "echo $TOOL_TOKEN; echo $TOOL_TOKEN | base64; echo $DB_PASSWORD"}}, {"name": "final_step"}]`,
	})
	return j
}

// proctor prepares a command with the secrets in its environment.
func (j *secretJob) proctor(args ...string) *exec.Cmd {
	cmd := j.command(args...)
	cmd.Env = append(cmd.Env,
		"OPENAI_API_KEY="+plant("provider-key"), "APPLICATION="+plant("template"), "DB_PASSWORD_OF_NOBODY=short",
		// What a resumed job takes again.
		"AGENT_TOKEN="+plant("agent-env"), "EXIT_SECRET="+plant("exit-message"), "FILE_SECRET="+plant("file"),
		"TRAJECTORY_SECRET="+plant("trajectory"), "TITLE_SECRET="+plant("process-title"), "JUDGE_KEY="+plant("verifier-env"),
		"API_KEY="+plant("kwargs"), "TOOL_TOKEN="+plant("tool-output"))
	return cmd
}

// run starts the agent that leaks, lets it go on once it was looked at, and returns
// what was printed.
func (j *secretJob) leak(t *testing.T, args ...string) finished {
	t.Helper()
	cmd := j.proctor(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	late := time.After(5 * time.Minute) // the agent waits, however long
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ended:
			t.Fatalf("it ended before the agent was looked at:\n%s\n%s", stdout.String(), stderr.String())
		case <-late:
			t.Fatalf("the agent's output does not come, redacted, while it runs:\n%s\n%s", stdout.String(), stderr.String())
		case <-tick.C:
		}
		ready, _ := filepath.Glob(filepath.Join(j.dir, "jobs", "*", "leak__*", "agent", "ready")) // the pattern is correct
		if len(ready) == 0 {
			continue
		}
		// What it printed comes through a pipe, and may be on its way when the file is there.
		live, err := os.ReadFile(filepath.Join(filepath.Dir(ready[0]), "command.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		assertClean(t, "the output while it runs", live)
		if !bytes.Contains(live, []byte("REDACTED:AGENT_TOKEN")) {
			continue
		}
		j.lookWhileRunning(t, cmd.Process.Pid, filepath.Base(filepath.Dir(filepath.Dir(ready[0]))))
		if err := os.WriteFile(filepath.Join(filepath.Dir(ready[0]), "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		<-ended
		return finished{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	}
}

// lookWhileRunning looks at the processes of this machine that belong to a run.
func (j *secretJob) lookWhileRunning(t *testing.T, pid int, trial string) {
	t.Helper()
	for _, child := range descendants(t, pid) {
		dir := filepath.Join("/proc", child)
		own, _ := os.Readlink("/proc/self/ns/pid")
		if ns, _ := os.Readlink(filepath.Join(dir, "ns", "pid")); ns != own {
			continue // inside the sandbox
		}
		for _, name := range []string{"cmdline", "comm"} {
			data, _ := readAtMost(filepath.Join(dir, name), 1<<20)
			assertClean(t, "/proc/"+child+"/"+name, data)
		}
	}
	if slices.Contains(j.flags, "docker") {
		inspectContainers(t, trial)
	}
	_ = filepath.WalkDir(j.state, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Ext(path) == ".json" && !strings.Contains(path, "/upper/") { // files inside the sandbox
			data, _ := readAtMost(path, 1<<20)
			assertClean(t, path, data)
		}
		return nil
	})
}

// inspectContainers looks at what a Docker Engine tells of a trial's containers and of
// how their images were made.
func inspectContainers(t *testing.T, trial string) {
	t.Helper()
	api, err := client.New(client.WithHost(need.Docker(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = api.Close() }()
	list, err := api.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", "proctor.trial="+trial),
	})
	if err != nil || len(list.Items) == 0 {
		t.Fatalf("%d containers: %v", len(list.Items), err)
	}
	for _, c := range list.Items {
		r, err := api.ContainerInspect(t.Context(), c.ID, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		history, err := api.ImageHistory(t.Context(), c.ImageID)
		if err != nil {
			t.Fatal(err)
		}
		told, err := json.Marshal([]any{r, history})
		if err != nil {
			t.Fatal(err)
		}
		assertClean(t, "docker inspect and docker history", told)
	}
}

// descendants are the processes below one.
func descendants(t *testing.T, pid int) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[string]string{}
	for _, e := range entries {
		status, err := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if parent, ok := strings.CutPrefix(line, "PPid:"); ok {
				parents[e.Name()] = strings.TrimSpace(parent)
			}
		}
	}
	below := []string{fmt.Sprint(pid)}
	for i := 0; i < len(below); i++ {
		for child, parent := range parents {
			if parent == below[i] {
				below = append(below, child)
			}
		}
	}
	return slices.Delete(below, 0, 1)
}

// assertClean looks for all secrets in all forms.
func assertClean(t *testing.T, what string, data []byte) {
	t.Helper()
	for _, where := range secretPlaces {
		for form, needle := range needles(plant(where)) {
			if at := bytes.Index(data, []byte(needle)); at >= 0 {
				t.Errorf("%s: the secret %s is there (%s): …%q", what, where, form, data[max(0, at-40):min(len(data), at+len(needle)+20)])
			}
		}
	}
}

// assertTree looks at all files below a directory, and at their names.
func assertTree(t *testing.T, dir string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		assertClean(t, "the name "+name, []byte(name))
		if target, err := os.Readlink(path); err == nil {
			assertClean(t, "the link "+name, []byte(target))
		}
		if !e.Type().IsRegular() {
			return nil
		}
		n++
		data, err := os.ReadFile(path)
		assertClean(t, name, data)
		return err
	})
	if err != nil || n < 10 {
		t.Errorf("looked at %d files of %s: %v", n, dir, err)
	}
}

func (f finished) assertClean(t *testing.T, what string) {
	t.Helper()
	assertClean(t, what+" on standard output", []byte(f.stdout))
	assertClean(t, what+" on standard error", []byte(f.stderr))
}

// TestSecretsAreNowhere plants a secret in twelve places and looks for it in all that is
// outside of the sandbox, while the job runs and after it, and in what commands print.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	for _, e := range environments() {
		if e.image || e.name == "host-gvisor" {
			continue // what they write is written on the same way
		}
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.need(t)
			j := newSecretJob(t, e)
			task := filepath.Join(j.inputs, "tasks", "leak")
			args := append([]string{
				"run", "-p", task, "-a", "command", "--ak", "run=api_key='" + plant("kwargs") + "'\n" + secretAgent,
				"--ae", "AGENT_TOKEN=" + plant("agent-env"), "--ae", "APP=${APPLICATION}", "--ae", "EXIT_SECRET=" + plant("exit-message"),
				"--ae", "FILE_SECRET=" + plant("file"), "--ae", "TRAJECTORY_SECRET=" + plant("trajectory"), "--ae", "TITLE_SECRET=" + plant("process-title"),
				"--ve", "JUDGE_KEY=" + plant("verifier-env"), "--mcp-config", filepath.Join(j.inputs, "mcp.json"),
				"-y", "--json", "--debug", "--job-name", "leaks", "--junit", filepath.Join(j.dir, "junit.xml"),
			}, j.flags...)
			done := j.leak(t, args...)
			done.assertClean(t, "run --json")
			if !strings.Contains(done.stdout, "NonZeroAgentExitCodeError") || !strings.Contains(done.stdout, "REDACTED:EXIT_SECRET") {
				t.Errorf("the events say nothing of the exit:\n%s\n%s", done.stdout, done.stderr)
			}
			assertTree(t, j.dir)
			j.assertLeaked(t)

			stepped := finish(t, j.proctor(append([]string{
				"run", "-p", task, "-a", "scripted", "--ak", "actions=" + filepath.Join(j.inputs, "actions.json"),
				"-c", filepath.Join(j.inputs, "job.json"), "-y", "--job-name", "steps",
			}, j.flags...)...))
			stepped.assertClean(t, "run")
			if log := j.find(t, "steps", "agent/steps.jsonl"); !strings.Contains(log, "REDACTED:TOOL_TOKEN") {
				t.Errorf("the log of the steps is %s\n%s", log, stepped.stderr)
			}

			j.leak(t, "job", "resume", "jobs/leaks", "--retry-errored").assertClean(t, "job resume")
			assertTree(t, j.dir)
			j.assertLeaked(t)
			j.assertCommands(t)
		})
	}
}

// find reads a file of the one trial of a job.
func (j *secretJob) find(t *testing.T, job, name string) string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(j.dir, "jobs", job, "leak__*", filepath.FromSlash(name))) // the pattern is correct
	if len(files) != 1 {
		t.Errorf("%s of %s is there %d times", name, job, len(files))
		return ""
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// assertLeaked makes sure that the secrets were where they are looked for: their marks
// stand there.
func (j *secretJob) assertLeaked(t *testing.T) {
	t.Helper()
	for file, names := range map[string][]string{
		"agent/command.txt":        {"AGENT_TOKEN", "API_KEY", "OPENAI_API_KEY", "APPLICATION", "tools", "DB_PASSWORD", "EXIT_SECRET"},
		"exception.txt":            {"EXIT_SECRET"},
		"result.json":              {"EXIT_SECRET"},
		"trial.log":                {"EXIT_SECRET"},
		"agent/notes.txt":          {"FILE_SECRET"},
		"agent/trajectory.json":    {"TRAJECTORY_SECRET"},
		"verifier/test-stdout.txt": {"JUDGE_KEY"},
		"verifier/judge.log":       {"JUDGE_KEY"},
	} {
		text := j.find(t, "leaks", file)
		for _, name := range names {
			if !strings.Contains(text, "[REDACTED:"+name) {
				t.Errorf("%s has no mark of %s:\n%s", file, name, text[:min(len(text), 4<<10)])
			}
		}
	}
	if notes := j.find(t, "leaks", "agent/notes.txt"); strings.Count(notes, "[REDACTED:FILE_SECRET]") != 7 {
		t.Errorf("the agent's file has not all forms redacted:\n%s", notes)
	}
	if names, _ := filepath.Glob(filepath.Join(j.dir, "jobs", "leaks", "leak__*", "agent", "by-name-*")); len(names) != 1 { // the pattern is correct
		t.Errorf("the file named by a secret is %q", names)
	}
}

// assertCommands looks at what commands print of the jobs.
func (j *secretJob) assertCommands(t *testing.T) {
	t.Helper()
	trials, _ := filepath.Glob(filepath.Join(j.dir, "jobs", "leaks", "leak__*")) // the pattern is correct
	for _, args := range [][]string{
		{"job", "show", "--json", "jobs/leaks"},
		{"job", "show", "jobs/leaks"},
		{"trial", "show", trials[0]},
		{"trial", "show", "--json", trials[0]},
		{"job", "export", "--junit", "-", "jobs/leaks"},
		{"traj", "export", trials[0]},
	} {
		done := finish(t, j.proctor(args...))
		done.assertClean(t, strings.Join(args, " "))
		if done.stdout == "" {
			t.Errorf("%q prints nothing: %s", args, done.stderr)
		}
	}
}
