package job_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

func seeded() func(int) int { return rand.New(rand.NewPCG(1, 2)).IntN }

func localTask(path string) jobdir.Task { return jobdir.Task{Config: jobdir.TaskConfig{Path: &path}} }

func namedAgents(names ...string) []jobdir.AgentConfig {
	agents := make([]jobdir.AgentConfig, len(names))
	for i, name := range names {
		agents[i].Name = &name
	}
	return agents
}

func TestPlanOrder(t *testing.T) {
	t.Parallel()
	c := jobdir.NewConfig(time.Date(2026, 6, 9, 10, 0, 0, 0, time.UTC))
	c.NAttempts = 2
	c.Agents = namedAgents("x", "y")
	planned, err := job.Plan(c, uuid.UUID{1}, []jobdir.Task{localTask("d/a"), localTask("d/b")}, seeded())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range planned {
		prefix, suffix, _ := strings.Cut(p.TrialName, "__")
		if len(suffix) != 7 {
			t.Errorf("name %q: want seven characters at the end", p.TrialName)
		}
		if p.TrialsDir != "jobs/2026-06-09__10-00-00" || *p.JobID != (uuid.UUID{1}) {
			t.Errorf("got directory %q and job %v", p.TrialsDir, p.JobID)
		}
		got = append(got, prefix+*p.Agent.Name)
	}
	if want := []string{"ax", "ay", "bx", "by", "ax", "ay", "bx", "by"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPlanEdges(t *testing.T) {
	t.Parallel()
	c := jobdir.NewConfig(time.Time{})
	if _, err := job.Plan(c, uuid.UUID{}, nil, seeded()); !errors.Is(err, job.ErrNoTasks) {
		t.Errorf("no tasks: got %v", err)
	}
	for _, n := range []int{0, -1} {
		c.NAttempts = n
		planned, err := job.Plan(c, uuid.UUID{}, []jobdir.Task{localTask("a")}, seeded())
		if err != nil || len(planned) != 0 {
			t.Errorf("%d attempts: got %d trials, %v", n, len(planned), err)
		}
	}
}

// TestPlanComplete expands any job: nothing is lost or doubled, and the order
// is that of attempts, then tasks, then agents.
func TestPlanComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := jobdir.NewConfig(time.Time{})
		c.NAttempts = rapid.IntRange(0, 4).Draw(t, "attempts")
		nTasks, nAgents := rapid.IntRange(1, 6).Draw(t, "tasks"), rapid.IntRange(0, 4).Draw(t, "agents")
		var tasks []jobdir.Task
		for i := range nTasks {
			tasks = append(tasks, localTask(fmt.Sprintf("t%d", i)))
		}
		c.Agents = nil
		for i := range nAgents {
			c.Agents = append(c.Agents, namedAgents(fmt.Sprintf("a%d", i))...)
		}
		planned, err := job.Plan(c, uuid.UUID{}, tasks, seeded())
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for range c.NAttempts {
			for task := range nTasks {
				for agent := range nAgents {
					if i >= len(planned) {
						t.Fatalf("the plan ends after %d trials", i)
					}
					if p := planned[i]; *p.Task.Path != fmt.Sprintf("t%d", task) || *p.Agent.Name != fmt.Sprintf("a%d", agent) {
						t.Fatalf("trial %d is %s with %s", i, *p.Task.Path, *p.Agent.Name)
					}
					i++
				}
			}
		}
		if i != len(planned) {
			t.Fatalf("got %d trials, want %d", len(planned), i)
		}
	})
}

// namePrefix is the part of a trial's name that comes from the task's.
func namePrefix(task string) string {
	name := job.TrialName(task, func(int) int { return 0 })
	return name[:strings.LastIndex(name, "__")]
}

func TestNamePrefix(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40)
	for task, want := range map[string]string{
		"hello":                 "hello",
		"org/hello":             "hello",
		long:                    long[:32],
		"x-":                    "x",
		"x_-_":                  "x",
		strings.Repeat("é", 33): strings.Repeat("é", 32),
		long[:31] + "-b":        long[:31],
		"":                      "",
		"a/b/":                  "",
	} {
		if got := namePrefix(task); got != want {
			t.Errorf("the trials of %q are called %q, want %q", task, got, want)
		}
	}
}

func TestIDName(t *testing.T) {
	t.Parallel()
	name := "org/pkg"
	for _, tt := range []struct {
		task jobdir.Task
		want string
	}{
		{localTask("a/b"), "b"},
		{jobdir.Task{Config: localTask(".").Config, Name: "here"}, "here"},
		{jobdir.Task{Config: jobdir.TaskConfig{Name: &name}}, "org/pkg"},
		{jobdir.Task{}, ""},
	} {
		if got := tt.task.IDName(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestDir(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ dir, name, want string }{
		{"jobs", "a", "jobs/a"}, {"./x//", "a/../b", "x/a/../b"}, {"jobs", "/abs", "/abs"}, {".", "a", "a"},
	} {
		c := jobdir.Config{JobsDir: tt.dir, JobName: tt.name}
		if got := c.Dir(); got != tt.want {
			t.Errorf("%q and %q: got %q, want %q", tt.dir, tt.name, got, tt.want)
		}
	}
}

func TestCheckRunnable(t *testing.T) {
	t.Parallel()
	c := jobdir.NewConfig(time.Time{})
	if err := c.CheckRunnable(); err != nil {
		t.Error(err)
	}
	c.NConcurrentTrials, c.Retry.MaxRetries, c.NAttempts, c.JobName = 0, -1, 0, "../x"
	c.TimeoutMultiplier, c.AgentTimeoutMultiplier = -1, new(math.NaN())
	c.Verifier.ImportPath, c.Plugins = new("a.b:C"), []jobdir.PluginConfig{{ImportPath: "a:B"}}
	err := c.CheckRunnable()
	for _, want := range []string{
		"n_concurrent_trials is 0", "max_retries is -1", "n_attempts is 0", `job_name is "../x"`, "\ntimeout_multiplier is -1.0", "agent_timeout_multiplier is nan",
		`verifier.import_path names Python code, which proctor cannot run: "a.b:C"`, `plugins names Python code, which proctor cannot run: "a:B"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %q", err, want)
		}
	}
	c.Verifier.Disable, c.Plugins = true, nil
	if err := c.CheckNoPython(); err != nil {
		t.Errorf("a verifier that is not run: %v", err)
	}
	c.Verifier = jobdir.VerifierConfig{Kwargs: &value.Object{}}
	c.Verifier.Kwargs.Set("a", value.Str("b"))
	if err := c.CheckNoPython(); err == nil {
		t.Error("settings of a verifier in Python are accepted")
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	def := jobdir.NewRetryConfig()
	def.MaxRetries = 2
	only := def
	only.IncludeExceptions = []string{"RuntimeError", "AgentTimeoutError"}
	all := def
	all.ExcludeExceptions, all.IncludeExceptions = nil, []string{}
	growing := all
	growing.WaitMultiplier, growing.MaxWaitSec, growing.MaxRetries = 3, 5, 100
	for _, tt := range []struct {
		name      string
		policy    jobdir.RetryConfig
		exception string
		retries   int
		want      jobdir.Decision
	}{
		{"no exception", def, "", 0, jobdir.Decision{Reason: jobdir.NoException}},
		{"first retry", def, "ValueError", 0, jobdir.Decision{Retry: true, Wait: time.Second}},
		{"last retry", def, "ValueError", 1, jobdir.Decision{Retry: true, Wait: time.Second}},
		{"used up", def, "ValueError", 2, jobdir.Decision{Reason: jobdir.AttemptsUsedUp}},
		{"excluded", def, "AgentTimeoutError", 0, jobdir.Decision{Reason: jobdir.Excluded}},
		{"no hierarchy", def, "timeouterror", 0, jobdir.Decision{Retry: true, Wait: time.Second}},
		{"not included", only, "ValueError", 0, jobdir.Decision{Reason: jobdir.NotIncluded}},
		{"included", only, "RuntimeError", 0, jobdir.Decision{Retry: true, Wait: time.Second}},
		{"exclusion wins", only, "AgentTimeoutError", 0, jobdir.Decision{Reason: jobdir.Excluded}},
		{"empty sets", all, "AgentTimeoutError", 0, jobdir.Decision{Retry: true, Wait: time.Second}},
		{"second wait", growing, "ValueError", 1, jobdir.Decision{Retry: true, Wait: 3 * time.Second}},
		{"longest wait", growing, "ValueError", 2, jobdir.Decision{Retry: true, Wait: 5 * time.Second}},
		{"no overflow", growing, "ValueError", 99, jobdir.Decision{Retry: true, Wait: 5 * time.Second}},
		{"default", jobdir.NewRetryConfig(), "ValueError", 0, jobdir.Decision{Reason: jobdir.AttemptsUsedUp}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.policy.Decide(tt.exception, tt.retries); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestDecideEnds lets a trial fail for ever: it is retried exactly MaxRetries
// times, and no wait is negative or beyond the limit.
func TestDecideEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := jobdir.RetryConfig{
			MaxRetries:     rapid.IntRange(0, 50).Draw(t, "retries"),
			WaitMultiplier: rapid.Float64Range(-3, 1e6).Draw(t, "multiplier"),
			MinWaitSec:     rapid.Float64Range(-1, 100).Draw(t, "min"),
			MaxWaitSec:     rapid.Float64Range(0, 1000).Draw(t, "max"),
		}
		n := 0
		for {
			d := c.Decide("ValueError", n)
			if !d.Retry {
				break
			}
			if d.Wait < 0 || d.Wait.Seconds() > c.MaxWaitSec {
				t.Fatalf("retry %d waits %v", n, d.Wait)
			}
			n++
		}
		if n != c.MaxRetries {
			t.Fatalf("retried %d times, want %d", n, c.MaxRetries)
		}
	})
}
