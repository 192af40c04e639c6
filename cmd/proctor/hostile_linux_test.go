package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	shipped "github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// The agent that does what it can to outlive its deadline and to write the
// reward itself, and the tests that look for it.
var (
	//go:embed testdata/hostile/agent.sh
	hostileAgent string
	//go:embed testdata/hostile/processes.sh
	listProcesses string
	//go:embed testdata/hostile/tests.sh
	watchfulTests string
)

// attacks are the marks that the agent leaves in /logs/artifacts when one of
// them is under way.
var attacks = []string{
	"background", "double-fork", "setsid", "renames-itself", "keeps-forking", "other-user",
	"unlinked-descriptor", "renamed-descriptor", "second-name", "stopped", "storm", "cgroup",
}

// hostileEnvironments leaves out those that differ from another one only in
// where their files come from.
func hostileEnvironments() []environment {
	return slices.DeleteFunc(environments(), func(e environment) bool { return e.image })
}

// hostileBench runs the hostile agent through a trial.Runner.
type hostileBench struct {
	*trial.Runner
	cfg jobdir.TrialConfig
	dir string
}

func newHostileBench(t *testing.T, e environment, toml string, change ...func(*backendOptions)) *hostileBench {
	t.Helper()
	args := e.flags(t)
	p := newPlace(t)
	env := &Env{Environ: append(os.Environ(), "PROCTOR_STATE_DIR="+p.state), Stderr: os.Stderr, Now: time.Now}
	opts := backendOptions{}
	if i := slices.Index(args, "--runtime"); i >= 0 {
		opts.Runtime = args[i+1]
	}
	if i := slices.Index(args, "--ek"); i >= 0 {
		opts.Mirrors = []string{strings.TrimPrefix(args[i+1], "mirror=")}
	}
	for _, f := range change {
		f(&opts)
	}
	backend, closeBackend, err := sandboxes.New(t.Context(), args[1], opts.in(env))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeBackend(); err != nil {
			t.Error(err)
		}
	})
	owner, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	task := filepath.Join(p.dir, "task")
	writeFiles(t, task, map[string]string{
		"task.toml": toml, "instruction.md": "Be good.\n",
		"environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
		"tests/test.sh":          watchfulTests, "tests/processes.sh": listProcesses,
	})
	cfg := jobdir.NewTrialConfig(jobdir.TaskConfig{Path: &task})
	cfg.TrialsDir, cfg.TrialName = filepath.Join(p.dir, "jobs"), "hostile__1234567"
	cfg.Agent.Name = new("command")
	cfg.Agent.Kwargs = value.NewObject(2)
	cfg.Agent.Kwargs.Set("run", value.Str(hostileAgent))
	// The processes of the environment, before there was an agent.
	cfg.Agent.Kwargs.Set("install", value.Str(listProcesses+"\nlist_processes > /logs/artifacts/before"))
	return &hostileBench{
		Runner: &trial.Runner{Backend: backend, Lookup: env.Lookup, Now: time.Now, Owner: owner, Agents: shipped.All()},
		cfg:    cfg, dir: filepath.Join(cfg.TrialsDir, cfg.TrialName),
	}
}

// called names the trial: a compose project is called as its trial is.
func (b *hostileBench) called(name string) {
	b.cfg.TrialName = name
	b.dir = filepath.Join(b.cfg.TrialsDir, name)
}

func (b *hostileBench) run(t *testing.T) (*jobdir.TrialResult, jobdir.Notes) {
	t.Helper()
	res, err := b.Run(t.Context(), b.cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"agent/command.txt", "verifier/test-stdout.txt", jobdir.NotesFile, "exception.txt"} {
				data, _ := os.ReadFile(filepath.Join(b.dir, name))
				t.Logf("%s:\n%s", name, data[:min(len(data), 4<<10)])
			}
		}
	})
	notes, err := jobdir.ReadNotes(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	return res, notes
}

// prepared runs trials with more and more seconds until the deadline, of which a busy
// machine needs many, until the agent has left a mark among its artifacts: it has done then
// what it came for.
func prepared(t *testing.T, mark string, with func(seconds int) *hostileBench) (*hostileBench, *jobdir.TrialResult, jobdir.Notes) {
	t.Helper()
	for _, seconds := range []int{6, 30, 150} {
		b := with(seconds)
		res, notes := b.run(t)
		if _, err := os.Stat(filepath.Join(b.dir, "artifacts", mark)); err == nil {
			return b, res, notes
		}
	}
	t.Fatalf("the agent has never left %q", mark)
	return nil, nil, jobdir.Notes{}
}

// file reads a file that the trial left.
func (b *hostileBench) file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(name)))
	if err != nil {
		t.Error(err)
	}
	return string(data)
}

// strangers are the processes that the tests saw when they began, and that the
// environment did not have before the agent: name by process and start time.
func (b *hostileBench) strangers(t *testing.T) map[string]string {
	t.Helper()
	parse := func(text string) map[string]string {
		all := map[string]string{}
		for line := range strings.Lines(text) {
			if id, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				all[id] = name
			}
		}
		return all
	}
	found := parse(b.file(t, "verifier/processes"))
	for id := range parse(b.file(t, "artifacts/before")) {
		delete(found, id)
	}
	return found
}

// missing are the attacks that were not under way at the deadline.
func (b *hostileBench) missing() (names []string) {
	for _, name := range attacks {
		if _, err := os.Stat(filepath.Join(b.dir, "artifacts", name)); err != nil {
			names = append(names, name)
		}
	}
	return names
}

func TestHostileAgentIsDeadBeforeVerification(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.oneIsEnough(t)
			// A busy machine needs more time until every attack is under way.
			var missing []string
			for _, sec := range []int{8, 40, 160} {
				b := newHostileBench(t, e, fmt.Sprintf("[agent]\ntimeout_sec = %d.0\n", sec))
				b.survives(t, `{"reward":0.25} AgentTimeoutError`)
				if missing = b.missing(); len(missing) == 0 {
					return
				}
			}
			t.Errorf("the agent has not attacked: %q", missing)
		})
	}
}

// survives runs the hostile agent until its deadline: none of it is there when
// the tests begin, and the tests' reward stands.
func (b *hostileBench) survives(t *testing.T, outcome string) {
	t.Helper()
	res, notes := b.run(t)
	if got := outcomeText(jobdir.RecordOf(res)); got != outcome {
		t.Errorf("outcome %s, want %s", got, outcome)
	}
	if left := b.strangers(t); len(left) > 0 {
		t.Errorf("processes of the agent are there when the tests begin: %v", left)
	}
	if late := b.file(t, "verifier/late"); late != "" {
		t.Errorf("written to while the tests ran: %s", late)
	}
	if notes.AgentKilled == nil || !notes.AgentKilled.ProvenGone || notes.AgentLeft != nil {
		t.Errorf("notes: killed %+v, left %+v", notes.AgentKilled, notes.AgentLeft)
	}
	if v := notes.Verification; v == nil || v.ChangedLater != nil {
		t.Errorf("evidence: %+v", v)
	}
	// Rewards that it had planted can be seen; before all its attacks were under way there
	// may have been none.
	if v := notes.Verification; v != nil && len(b.missing()) == 0 && (len(v.RewardFiles.Before) == 0 || len(v.Suspicions) == 0) {
		t.Errorf("planted rewards are not seen: %+v", v)
	}
}

func TestWhatAnAgentLeavesStays(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			b := newHostileBench(t, e, "[agent]\ntimeout_sec = 60.0\n")
			b.cfg.Agent.Env = jobdir.EnvOf("ATTACK", "quiet")
			res, notes := b.run(t)
			if left := b.strangers(t); len(left) != 1 {
				t.Errorf("processes when the tests begin: %v, want one that the agent left", left)
			}
			if res.ExceptionInfo != nil || notes.AgentKilled != nil {
				t.Errorf("exception %+v, killed %+v", res.ExceptionInfo, notes.AgentKilled)
			}
			if notes.AgentLeft == nil || notes.AgentLeft.Processes != 1 || len(notes.Verification.Suspicions) == 0 {
				t.Errorf("notes: left %+v, %+v", notes.AgentLeft, notes.Verification)
			}
		})
	}
}

func TestSealedVerifierAgainstWhatAnAgentLeaves(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		for _, c := range []struct{ name, attack, toml, outcome string }{
			{"waits for the reward file", "quiet", "", `{"reward":0.25}`},
			{"has planted a reward", "plant", "", "RewardTamperedError"},
			{"cannot write as another user", "user", "[agent]\nuser = \"nobody\"\n", `{"reward":0.25}`},
			{"all attacks until the deadline", "", "[agent]\ntimeout_sec = 15.0\n", "AgentTimeoutError"},
			{"tests as another user", "quiet", "[verifier]\nuser = 1234\n", `{"reward":0.25}`},
		} {
			t.Run(e.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				e.oneIsEnough(t)
				if c.attack == "" { // all of them fill the machine until the deadline
					need.Patience(t)
				}
				b := newHostileBench(t, e, c.toml)
				b.SealedVerifier = true
				b.cfg.Agent.Env = jobdir.EnvOf("ATTACK", c.attack)
				res, notes := b.run(t)
				if got := outcomeText(jobdir.RecordOf(res)); got != c.outcome {
					t.Errorf("outcome %s, want %s", got, c.outcome)
				}
				if !notes.SealedVerifier || notes.Verification == nil || !notes.Verification.RewardFiles.Sealed {
					t.Errorf("the notes do not say that the verifier was sealed: %+v", notes)
				}
				if len(notes.Verification.RewardFiles.Before) > 0 {
					return // the tests were not run
				}
				if left := b.strangers(t); len(left) > 0 {
					t.Errorf("processes when the tests begin: %v", left)
				}
				if late := b.file(t, "verifier/late"); late != "" {
					t.Errorf("written to while the tests ran: %s", late)
				}
				after := notes.Verification.RewardFiles.After
				if len(after) != 1 || after[0].Kind != "file" || after[0].SHA256 == "" || after[0].Links != 1 {
					t.Errorf("evidence: %+v", after)
				}
			})
		}
	}
}

func TestSealedSteps(t *testing.T) {
	t.Parallel()
	for _, e := range hostileEnvironments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.oneIsEnough(t)
			b := newHostileBench(t, e, "[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n")
			writeFiles(t, *b.cfg.Task.Path, map[string]string{"steps/one/instruction.md": "", "steps/two/instruction.md": ""})
			b.SealedVerifier = true
			b.cfg.Agent.Env = jobdir.EnvOf("ATTACK", "quiet")
			res, notes := b.run(t)
			if got := outcomeText(jobdir.RecordOf(res)); got != `{"reward":0.25}` || len(notes.Steps) != 2 {
				t.Errorf("outcome %s, steps %+v", got, notes.Steps)
			}
			for _, s := range notes.Steps {
				if !s.RewardFiles.Sealed || len(s.RewardFiles.Before) > 0 || len(s.RewardFiles.After) != 1 || s.ChangedLater != nil {
					t.Errorf("step %s: %+v", s.Step, s)
				}
			}
		})
	}
}
