package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/report"
)

// honestJob runs two tasks once each on the host, and returns where.
func honestJob(t *testing.T) place {
	t.Helper()
	err := hostSandboxes()
	need.That(t, "host", err == nil, fmt.Sprintf("needs sandboxes on the host's own root: %v", err))
	p := newPlace(t)
	for _, task := range []string{"easy", "hard"} {
		writeFiles(t, filepath.Join(p.dir, "tasks", task), map[string]string{
			"task.toml": "", "instruction.md": "Do it.\n", "environment/Dockerfile": "FROM scratch\n",
			"tests/test.sh": "#!/bin/sh\nif test -e /tmp/" + task + "; then echo 1; else echo 0.25; fi > /logs/verifier/reward.txt\n",
		})
	}
	if out := p.run(t, honestFlags("honest")...); out.code != 0 {
		t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
	return p
}

func honestFlags(job string) []string {
	return []string{
		"run", "-p", "tasks", "-a", "command", "--ak", "run=echo '{\"n_input_tokens\": 7}' > /logs/agent/usage.json", "-e", "host", "-y", "-q",
		"--job-name", job,
	}
}

// tampered is a copy of an honest job that a test may change.
type tampered struct {
	t    *testing.T
	p    place
	name string
	dir  string
}

func (j *tampered) trial(task string) string {
	j.t.Helper()
	found, err := filepath.Glob(filepath.Join(j.dir, task+"__*"))
	if err != nil || len(found) != 1 {
		j.t.Fatalf("found %v, error %v", found, err)
	}
	return filepath.Base(found[0])
}

// edit replaces what a pattern matches in a file; it must match.
func (j *tampered) edit(file, pattern, with string) {
	j.t.Helper()
	path := filepath.Join(j.dir, file)
	data, err := os.ReadFile(path)
	changed := regexp.MustCompile(pattern).ReplaceAll(data, []byte(with))
	if err != nil || bytes.Equal(data, changed) {
		j.t.Fatalf("%s does not have %s, or cannot be read: %v", path, pattern, err)
	}
	j.write(file, string(changed))
}

func (j *tampered) write(file, text string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, file), []byte(text), 0o644); err != nil {
		j.t.Fatal(err)
	}
}

func (j *tampered) copyTrial(from, to string) {
	j.t.Helper()
	if err := os.CopyFS(filepath.Join(j.dir, to), os.DirFS(filepath.Join(j.dir, from))); err != nil {
		j.t.Fatal(err)
	}
}

// rewriteSums makes the job's result agree with its trials again.
func (j *tampered) rewriteSums() {
	j.t.Helper()
	if out := j.p.run(j.t, "score", "--write", filepath.Join("jobs", j.name)); out.code != 0 {
		j.t.Fatalf("exit code %d\n%s", out.code, out.stderr)
	}
}

// TestVerifyTampering: whatever is done to a job afterwards is found and named, also by
// score --check, and also after its sums were written again.
func TestVerifyTampering(t *testing.T) {
	t.Parallel()
	honest := honestJob(t)
	for _, tt := range []struct {
		name   string
		tamper func(j *tampered)
		// finding is one of those that must be there: its kind, and what its text has.
		kind, says string
	}{
		{"edited result", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `"reward": 0\.25`, `"reward": 1.0`)
		}, "reward", `gives {"reward": 0.25}, result.json has {"reward": 1.0}`},
		{"edited result, then rewritten sums", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `"reward": 0\.25`, `"reward": 1.0`)
			j.rewriteSums()
		}, "result", "is not what was written when the trial ended"},
		{"edited result and reward file, then rewritten sums", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `"reward": 0\.25`, `"reward": 1.0`)
			j.write(j.trial("easy")+"/verifier/reward.txt", "1\n")
			j.rewriteSums()
		}, "result", "is not what was written when the trial ended"},
		{"copied trial", func(j *tampered) { j.copyTrial(j.trial("hard"), "copy") }, "trial", "is there more than once"},
		{"copied trial under a name of its own, then rewritten sums", func(j *tampered) {
			name := j.trial("hard")
			j.copyTrial(name, "hard__AAAAAAA")
			j.edit("hard__AAAAAAA/result.json", name, "hard__AAAAAAA")
			j.edit("hard__AAAAAAA/config.json", name, "hard__AAAAAAA")
			j.rewriteSums()
		}, "trial", "was added"},
		{"removed trial", func(j *tampered) {
			if err := os.RemoveAll(filepath.Join(j.dir, j.trial("easy"))); err != nil {
				j.t.Fatal(err)
			}
			j.rewriteSums()
		}, "trial", "is gone"},
		{"changed reward file", func(j *tampered) { j.write(j.trial("easy")+"/verifier/reward.txt", "0.250\n") }, "reward", "it was changed since"},
		{"planted reward", func(j *tampered) { j.write(j.trial("easy")+"/verifier/reward.json", `{"reward": 1}`) }, "reward", "it was added since"},
		{"swapped task", func(j *tampered) {
			writeFiles(j.t, filepath.Join(j.p.dir, "tasks", "hard"), map[string]string{"tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n"})
		}, "task", "is not the task that ran"},
		{"edited journal", func(j *tampered) { j.edit(journal.File, `"rewarded":true`, `"rewarded":false`) }, "journal", "was edited"},
		{"truncated journal", func(j *tampered) { j.edit(journal.File, `\n[^\n]+\n$`, "\n") }, "journal", "lines are missing at the end"},
		{"journal cut in a line", func(j *tampered) { j.edit(journal.File, `.....\n$`, "") }, "journal", "lines are missing at the end"},
		{"journal without its beginning", func(j *tampered) { j.edit(journal.File, `\A[^\n]+\n`, "") }, "journal", "its beginning is missing"},
		{"removed journal", func(j *tampered) {
			if err := os.Remove(filepath.Join(j.dir, journal.File)); err != nil {
				j.t.Fatal(err)
			}
		}, "journal", "is gone"},
		{"changed lock", func(j *tampered) { j.edit("lock.json", `sha256:[0-9a-f]{4}`, "sha256:0000") }, "lock", "is not what the run wrote"},
		{"changed agent in the configuration", func(j *tampered) { j.edit("config.json", `"name": "command"`, `"name": "oracle"`) }, "config", `agents[0].name: "command" → "oracle"`},
		{"edited proctor.json", func(j *tampered) {
			j.edit(j.trial("easy")+"/proctor.json", `"sealed_verifier": false`, `"sealed_verifier": true`)
		}, "notes", "it was changed since"},
		{"changed times", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `"(started_at|finished_at)": "2...-`, `"$1": "2001-`)
		}, "result", "its times lie outside of the time in which it ran"},
		{"a trial that ends before it starts", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `"finished_at": "2...-`, `"finished_at": "2001-`)
		}, "time", "finished (2001-"},
		{"removed agent result", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `(?s)"agent_result": \{.*?\n    \}`, `"agent_result": null`)
		}, "result", "is not what was written when the trial ended"},
		{"other task name", func(j *tampered) {
			j.edit(j.trial("easy")+"/result.json", `"task_name": "easy"`, `"task_name": "other"`)
		}, "result", `task "other", was "easy"`},
		{"policy added", func(j *tampered) {
			j.write("policy.json", `{"per_task_aggregation": "best-of-k"}`)
		}, "policy", "was added after the job had begun"},
		{"changed result of the job", func(j *tampered) {
			j.edit("result.json", `"started_at": "2...-`, `"started_at": "2001-`)
		}, "result", "is not what was written when the job ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			if err := os.CopyFS(p.dir, os.DirFS(honest.dir)); err != nil {
				t.Fatal(err)
			}
			j := &tampered{t: t, p: p, name: "honest", dir: filepath.Join(p.dir, "jobs", "honest")}
			if out := p.run(t, "verify", "jobs/honest"); out.code != 0 || !strings.Contains(out.stdout, "2 trials: nothing found") {
				t.Fatalf("of an honest job: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
			}
			tt.tamper(j)
			out := p.run(t, "verify", "--json", "jobs/honest")
			var v report.Verification
			if err := json.Unmarshal([]byte(out.stdout), &v); err != nil || out.code != 4 {
				t.Fatalf("exit code %d, error %v\n%s%s", out.code, err, out.stdout, out.stderr)
			}
			if !slices.ContainsFunc(v.Findings, func(f report.Finding) bool {
				return string(f.Kind) == tt.kind && strings.Contains(f.Message, tt.says)
			}) {
				t.Errorf("nothing of kind %s that says %q in\n%s", tt.kind, tt.says, out.stdout)
			}
			if out := p.run(t, "score", "--check", "jobs/honest"); out.code != 4 {
				t.Errorf("score --check: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
			}
		})
	}
}

// TestVerifyAfterKills: a job that was killed again and again, and resumed, is as honest
// as one that was left alone.
func TestVerifyAfterKills(t *testing.T) {
	t.Parallel()
	p := honestJob(t)
	dir := filepath.Join(p.dir, "jobs", "killed")
	lines := func() int {
		data, _ := os.ReadFile(filepath.Join(dir, journal.File))
		return bytes.Count(data, []byte("\n"))
	}
	flags := append(honestFlags("killed"), "-k", "12", "-n", "2")
	for i := range 20 {
		cmd, before := p.command(flags...), lines()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for over := false; !over && lines() < before+2+i%7; {
			select {
			case err := <-ended:
				ended <- err
				over = true
			case <-time.After(time.Millisecond):
			}
		}
		_ = cmd.Process.Signal(syscall.SIGKILL) // it may have ended
		<-ended                                 //nolint:errcheck // it was killed
	}
	if out := p.run(t, flags...); out.code != 0 {
		t.Fatalf("the last run: exit code %d\n%s", out.code, out.stderr)
	}
	out := p.run(t, "verify", "jobs/killed")
	if out.code != 0 || !strings.Contains(out.stdout, "24 trials: nothing found") {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if out := p.run(t, "score", "--check", "jobs/killed"); out.code != 0 {
		t.Errorf("score --check: exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}

// TestVerifyAgainst: a manifest says of a directory whether it is the one it was made of.
func TestVerifyAgainst(t *testing.T) {
	t.Parallel()
	p := honestJob(t)
	j := &tampered{t: t, p: p, name: "honest", dir: filepath.Join(p.dir, "jobs", "honest")}
	if out := p.run(t, "verify", "jobs/honest", "--audit", "audit.json"); out.code != 0 {
		t.Fatalf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	if err := os.Rename(filepath.Join(p.dir, "jobs"), filepath.Join(p.dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	j.dir = filepath.Join(p.dir, "elsewhere", "honest")
	against := func(code int, says ...string) {
		t.Helper()
		out := p.run(t, "verify", "elsewhere/honest", "--against", "audit.json")
		if out.code != code {
			t.Errorf("exit code %d, want %d\n%s%s", out.code, code, out.stdout, out.stderr)
		}
		for _, text := range says {
			if !strings.Contains(out.stdout, text) {
				t.Errorf("%q is not in\n%s", text, out.stdout)
			}
		}
	}
	against(0, "nothing found")
	name := j.trial("easy")
	j.write(name+"/agent/left.txt", "x")
	against(4, fmt.Sprintf("manifest: trial %q: %s/agent does not have the content", name, name))
	if err := os.Remove(filepath.Join(j.dir, name, "agent", "left.txt")); err != nil {
		t.Fatal(err)
	}
	against(0, "nothing found")
	// Who rewrites the whole directory, journal and all, is found by the manifest.
	if out := p.run(t, append(honestFlags("honest"), "-o", "elsewhere2")...); out.code != 0 {
		t.Fatal(out.stderr)
	}
	if err := os.Rename(filepath.Join(p.dir, "elsewhere2", "honest"), filepath.Join(p.dir, "elsewhere", "other")); err != nil {
		t.Fatal(err)
	}
	if out := p.run(t, "verify", "elsewhere/other", "--against", "audit.json"); out.code != 4 || !strings.Contains(out.stdout, "has the job") {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
	j.write("../bad.json", `{"schema": "x"}`)
	if out := p.run(t, "verify", "elsewhere/honest", "--against", "elsewhere/bad.json"); out.code != 2 || !strings.Contains(out.stderr, `its schema is "x"`) {
		t.Errorf("exit code %d\n%s%s", out.code, out.stdout, out.stderr)
	}
}
