package cubecli_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes/arithmetic"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// program is a program of a cube's author, run in this process with files of
// its own. Jobs go to the directory jobs.
type program struct {
	t       *testing.T
	cubes   []cubecli.Cube
	dir     string // of the test; jobs and cache lie in it
	env     map[string]string
	cache   func() (string, error) // nil follows env
	signals chan os.Signal
	// sandboxes that were asked for, one entry per command that opened some
	asked  []cubecli.SandboxOptions
	stdout io.Writer // nil keeps what is printed
	// backend, when set, is what containers run in
	backend sandbox.Backend
}

func newProgram(t *testing.T, cubes ...cubecli.Cube) *program {
	t.Helper()
	dir := t.TempDir()
	return &program{
		t: t, cubes: cubes, dir: dir, env: map[string]string{"HOME": dir}, signals: make(chan os.Signal, 2),
		cache: func() (string, error) { return filepath.Join(dir, "cache"), nil },
	}
}

// withSandboxes lets the program open sandboxes that have no processes and in
// which every command succeeds.
func (p *program) withSandboxes() *program {
	p.t.Helper()
	b := fake.New(fake.Config{Dir: p.t.TempDir(), Name: "fake-engine"})
	p.t.Cleanup(func() { fake.Verify(p.t, b) })
	p.backend = b
	return p
}

// said is what a command printed and how it ended.
type said struct {
	code        int
	out, errors string
}

func (p *program) run(args ...string) said {
	p.t.Helper()
	return p.runIn(p.t.Context(), args...)
}

func (p *program) runIn(ctx context.Context, args ...string) said {
	p.t.Helper()
	var out, errs strings.Builder
	prog := cubecli.Program{
		Name: "guess", Cubes: p.cubes, Args: append([]string{"guess"}, args...),
		CacheRoot: p.cache, Stdout: &out, Stderr: &errs, Now: time.Now, Signals: p.signals,
		Lookup: func(name string) (string, bool) { v, ok := p.env[name]; return v, ok },
	}
	if p.backend != nil {
		prog.Environments = []string{"docker", "host"}
		prog.Sandboxes = func(_ context.Context, o cubecli.SandboxOptions) (sandbox.Backend, func() error, error) {
			p.asked = append(p.asked, o)
			return p.backend, func() error { return nil }, nil
		}
	}
	if p.stdout != nil {
		prog.Stdout = p.stdout
	}
	code := prog.Run(ctx)
	return said{code, out.String(), errs.String()}
}

// job runs the tasks of a cube into a job of a name.
func (p *program) job(name string, args ...string) said {
	p.t.Helper()
	return p.run(append([]string{"run", "-o", p.path("jobs"), "--job-name", name}, args...)...)
}

func (p *program) path(elements ...string) string {
	return filepath.Join(append([]string{p.dir}, elements...)...)
}

// forget removes the result of the trial of a task and that of the job, as if
// the program had been killed.
func (p *program) forget(job, task string) {
	p.t.Helper()
	list, err := filepath.Glob(p.path("jobs", job, task+"__*", "result.json"))
	if err != nil || len(list) != 1 {
		p.t.Fatalf("results of %s are %q, %v", task, list, err)
	}
	for _, path := range append(list, p.path("jobs", job, "result.json")) {
		if err := os.Remove(path); err != nil {
			p.t.Fatal(err)
		}
	}
}

// want fails the test when a command ended otherwise or did not say the words.
func (s said) want(t *testing.T, code int, words ...string) {
	t.Helper()
	if s.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", s.code, code, s.out, s.errors)
	}
	for _, w := range words {
		if !strings.Contains(s.out+s.errors, w) {
			t.Errorf("%q is missing in\n%s%s", w, s.out, s.errors)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	p.job("good").want(t, exitcode.OK, "Mean 1.000 over 3 tasks")
	p.job("bad", "-a", "nop", "--fail-under", "1").want(t, exitcode.Threshold)
	p.run("test").want(t, exitcode.OK, "guess: 15 of 15 checks passed")

	unsolved := guess{}.cube()
	unsolved.Agent = wrong
	newProgram(t, unsolved).run("test").want(t, exitcode.Threshold, "FAIL  debug-episode")

	newProgram(t, guess{act: func() error { panic("a tool's own defect") }}.cube()).
		job("panics").want(t, exitcode.OK, "3 trials") // an action that fails is told to the agent
	failing := guess{}.cube()
	failing.Agent = func(cube.TaskConfig) cube.Agent {
		return cube.AgentFunc(func(context.Context, *cube.Observation, []cube.ActionSchema) ([]cube.Action, error) {
			return nil, errors.New("no idea")
		})
	}
	newProgram(t, failing).job("fails").want(t, exitcode.TrialErrors, "no idea")
}

// full is a standard output to which nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestFullStdout: no command of an author's program ends well whose output is lost, and a
// job runs to its end all the same.
func TestFullStdout(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	p.stdout = full{}
	for _, args := range [][]string{
		{"list"}, {"list", "--json"}, {"show"}, {"show", "--json"}, {"test"}, {"install"}, {"uninstall"}, {"--help"}, {"run", "--help"},
		{"run", "-o", p.path("jobs"), "--job-name", "j", "-q"}, {"run", "-o", p.path("jobs"), "--job-name", "events", "--json"}, {"resume", p.path("jobs", "j")},
	} {
		p.run(args...).want(t, exitcode.Failed, "writing the output: no space left on device")
	}
	for _, job := range []string{"j", "events"} {
		if ended, err := filepath.Glob(p.path("jobs", job, "*", "result.json")); len(ended) != 3 {
			t.Errorf("job %s: %d trials ended, %v", job, len(ended), err)
		}
	}
}

// TestOutcomeLine: there is one line, whatever the exit code, but for a wrong command line.
func TestOutcomeLine(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	for _, tt := range []struct {
		code, lines int
		line        string
		args        []string
	}{
		{exitcode.OK, 1, `"score": 1.0, "status": "completed", "total": 3}`, []string{"--job-name", "good"}},
		{exitcode.Threshold, 1, `"score": 0.0, "status": "completed", "total": 3}`, []string{"--job-name", "bad", "-a", "nop", "--json", "--fail-under", "1"}},
		{exitcode.Usage, 0, "", []string{"--job-name", "none", "-a", "nobody"}},
	} {
		s := p.run(append([]string{"run", "-o", p.path("jobs"), "--outcome-line"}, tt.args...)...)
		s.want(t, tt.code)
		if _, after, _ := strings.Cut(s.out, "BASE_BENCHMARK_RESULT="); strings.Count(s.out, "BASE_BENCHMARK_RESULT=") != tt.lines || !strings.Contains(after, tt.line) || strings.Count(after, "\n") != tt.lines {
			t.Errorf("%q printed\n%s", tt.args, s.out)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	for _, c := range []struct {
		command string
		want    []string
	}{
		{"rnu", []string{`unknown command "rnu"`}},
		{"show gues", []string{`there is no cube "gues"`, "cubes are: guess"}},
		{"run -t nine", []string{`no task of "guess" matches "nine"`}},
		{"run -a orcale", []string{"orcale", "oracle"}},
		{"run --max-stpes 3", []string{"--max-steps"}},
		{"run -l -1", []string{`"-l, --n-tasks" flag: want at least 1`}},
		{"test --max-tasks -1", []string{"--max-tasks must not be negative"}},
		{"resume", []string{"accepts one job directory"}},
		{"resume nowhere", []string{"nowhere"}},
	} {
		s := p.run(strings.Fields(c.command)...)
		s.want(t, exitcode.Usage, c.want...)
		if t.Failed() {
			t.Fatalf("after %q", c.command)
		}
	}
	if _, err := os.Stat(p.path("jobs")); err == nil {
		t.Error("a job was begun")
	}
}

// TestOtherName: a cube that is called otherwise than its benchmark could be
// run and not resumed; no command takes it.
func TestOtherName(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{name: "guess-cube"}.cube())
	for _, command := range []string{"list", "show", "test", "install", "run"} {
		p.run(command).want(t, exitcode.Usage, `the cube is called "guess", and its benchmark "guess-cube"`)
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{}.cube())
	p.job("j").want(t, exitcode.OK)
	p.forget("j", "two")
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.OK, "2 trials of 3 kept, 1 to run", "Mean 1.000")
}

// TestResumeEnvironment: a job runs to its end where it began.
func TestResumeEnvironment(t *testing.T) {
	t.Parallel()
	p := newProgram(t, containers()).withSandboxes()
	p.job("j", "-e", "host").want(t, exitcode.OK)
	config, err := os.ReadFile(p.path("jobs", "j", "config.json"))
	if err != nil || !strings.Contains(string(config), `"proctor:fake-engine"`) {
		t.Errorf("the configuration does not name the environment: %v\n%s", err, config)
	}
	trials, err := filepath.Glob(p.path("jobs", "j", "*__*", "result.json"))
	if err != nil || len(trials) == 0 {
		t.Fatalf("trials are %q, %v", trials, err)
	}
	task, _, _ := strings.Cut(filepath.Base(filepath.Dir(trials[0])), "__")
	p.forget("j", task)
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.OK, "1 to run")
	if len(p.asked) != 2 || p.asked[0].Environment != "host" || p.asked[1].Environment != "fake-engine" {
		t.Errorf("sandboxes were asked for: %+v", p.asked)
	}
}

func TestComposite(t *testing.T) {
	t.Parallel()
	mixed := cubecli.Cube{
		Name:     "mixed",
		Register: func(r *cube.Registry) error { return errors.Join(guess{}.register(r), arithmetic.Register(r)) },
		Config: func(cube.ContainerBackend) cube.BenchmarkConfig {
			return cube.NewComposite("mixed", guess{}.benchmark(), &arithmetic.Config{})
		},
		Agent: func(c cube.TaskConfig) cube.Agent {
			if _, ok := c.TaskMetadata().(*numberMetadata); ok {
				return solve(c)
			}
			return arithmetic.Agent(c)
		},
	}
	p := newProgram(t, mixed)
	p.run("show").want(t, exitcode.OK, "7 tasks", "guess/one", "arithmetic-cube/add-3-4")
	p.job("j", "-t", "guess/*").want(t, exitcode.OK, "Mean 1.000 over 3 tasks")
	p.forget("j", "one")
	p.run("resume", p.path("jobs", "j")).want(t, exitcode.OK, "1 to run")
}

func TestSetupThatFails(t *testing.T) {
	t.Parallel()
	p := newProgram(t, guess{setup: func(context.Context) error { return errors.New("the server does not start") }}.cube())
	p.job("j").want(t, exitcode.Failed, "setting up guess", "the server does not start")
	if left, err := os.ReadDir(p.path("jobs")); err == nil && len(left) > 0 {
		t.Errorf("there is a job: %v", left)
	}
}

// TestWithoutSandboxes: a program that opens none says what it lacks.
func TestWithoutSandboxes(t *testing.T) {
	t.Parallel()
	newProgram(t, containers()).job("j").want(t, exitcode.Usage, "this program opens none")
	newProgram(t, guess{}.cube()).job("j", "-a", "command", "--ak", "run=true").want(t, exitcode.Usage, "the agent in a sandbox of its own, and this program opens none")
}
