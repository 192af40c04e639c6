package job_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
)

// TestLockFixtures reads locks written by Harbor and writes them again. Harbor
// wrote sets in arbitrary order and, with its version of pydantic, empty
// keyword arguments of verifiers; all else is the same.
func TestLockFixtures(t *testing.T) {
	t.Parallel()
	for _, name := range jobtest.Fixtures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := jobtest.Read(t, filepath.Join(name, "lock.json"))
			l, err := jobdir.ParseLock([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			got := string(l.AppendJSON(nil, nil))
			again, err := jobdir.ParseLock([]byte(got))
			if err != nil {
				t.Fatal(err)
			}
			if !l.Equal(again, nil) {
				t.Error("the lock read back is not equal")
			}
			jobtest.EqualText(t, got, sortExclusions(strings.ReplaceAll(data, "                \"kwargs\": {},\n                \"disable\"", "                \"disable\"")))
		})
	}
}

// sortExclusions sorts the lines of the set of exceptions.
func sortExclusions(text string) string {
	lines := strings.Split(text, "\n")
	from := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"exclude_exceptions"`) }) + 1
	to := from + slices.IndexFunc(lines[from:], func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "]") })
	set := lines[from:to]
	for i := range set {
		set[i] = strings.TrimSuffix(set[i], ",")
	}
	slices.Sort(set)
	for i := range set[:len(set)-1] {
		set[i] += ","
	}
	return strings.Join(lines, "\n")
}

func digest(c string) string { return "sha256:" + strings.Repeat(c, 64) }

func exampleLock() jobdir.Lock {
	c := jobdir.NewConfig(time.Time{})
	c.Agents = namedAgents("x", "y")
	planned, _ := job.Plan(c, uuid.UUID{1}, []jobdir.Task{localTask("d/a")}, seeded())
	version := "0.13.1"
	l := jobdir.Lock{
		SchemaVersion:     jobdir.LockSchemaVersion,
		CreatedAt:         jobdir.UTC(time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)),
		Harbor:            jobdir.HarborInfo{Version: &version},
		Invocation:        []string{"proctor", "run"},
		NConcurrentTrials: 4,
		Retry:             c.Retry,
	}
	for _, p := range planned {
		l.Trials = append(l.Trials, jobdir.TrialLock{
			Task:               jobdir.TaskLock{Name: "a", Type: p.Task.Kind(), Digest: digest("0"), Path: p.Task.Path},
			TimeoutMultiplier:  p.TimeoutMultiplier,
			ExtraInstructions:  []jobdir.FileLock{{Path: "extra.md", Digest: digest("1")}},
			Agent:              p.Agent,
			Skills:             []jobdir.SkillLock{{Name: "s", Source: "skills/s", Digest: digest("2")}},
			Environment:        p.Environment,
			ExtraDockerCompose: []jobdir.FileLock{{Path: "c.yaml", Digest: digest("3")}},
			Verifier:           p.Verifier,
		})
	}
	return l
}

func TestLockEqual(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*jobdir.Lock)
		equal  bool
	}{
		{"nothing", func(*jobdir.Lock) {}, true},
		{"time, runner, command line", func(l *jobdir.Lock) {
			l.CreatedAt, l.Harbor, l.Invocation = jobdir.Time{}, jobdir.HarborInfo{}, nil
		}, true},
		{"order of trials", func(l *jobdir.Lock) { slices.Reverse(l.Trials) }, true},
		{"a trial twice", func(l *jobdir.Lock) { l.Trials = append(l.Trials, l.Trials[0]) }, false},
		{"another trial instead", func(l *jobdir.Lock) { l.Trials[1] = l.Trials[0] }, false},
		{"concurrency", func(l *jobdir.Lock) { l.NConcurrentTrials = 5 }, false},
		{"schema", func(l *jobdir.Lock) { l.SchemaVersion = 2 }, false},
		{"retries", func(l *jobdir.Lock) { l.Retry.MaxRetries = 1 }, false},
		{"order of a set", func(l *jobdir.Lock) {
			l.Retry.ExcludeExceptions = slices.Clone(l.Retry.ExcludeExceptions)
			slices.Reverse(l.Retry.ExcludeExceptions)
		}, true},
		{"path and name of the task", func(l *jobdir.Lock) { p := "elsewhere"; l.Trials[0].Task.Path = &p; l.Trials[0].Task.Name = "b" }, true},
		{"content of the task", func(l *jobdir.Lock) { l.Trials[0].Task.Digest = digest("f") }, false},
		{"path of an instruction", func(l *jobdir.Lock) {
			l.Trials[0].ExtraInstructions = []jobdir.FileLock{{Path: "b", Digest: digest("1")}}
		}, true},
		{"content of an instruction", func(l *jobdir.Lock) {
			l.Trials[0].ExtraInstructions = []jobdir.FileLock{{Path: "extra.md", Digest: digest("f")}}
		}, false},
		{"no instruction", func(l *jobdir.Lock) { l.Trials[0].ExtraInstructions = nil }, false},
		{"paths of skills", func(l *jobdir.Lock) {
			l.Trials[0].Agent.Skills = []string{"other"}
			l.Trials[0].Skills = []jobdir.SkillLock{{Name: "s", Source: "other", Digest: digest("2")}}
		}, true},
		{"name of a skill", func(l *jobdir.Lock) {
			l.Trials[0].Skills = []jobdir.SkillLock{{Name: "t", Source: "skills/s", Digest: digest("2")}}
		}, false},
		{"paths of compose files", func(l *jobdir.Lock) { l.Trials[0].Environment.ExtraDockerCompose = []string{"other.yaml"} }, true},
		{"agent", func(l *jobdir.Lock) { m := "m"; l.Trials[0].Agent.ModelName = &m }, false},
		{"multiplier", func(l *jobdir.Lock) { l.Trials[0].TimeoutMultiplier = 2 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, b := exampleLock(), exampleLock()
			tt.change(&b)
			if got := a.Equal(b, nil); got != tt.equal {
				t.Errorf("equal = %v, want %v", got, tt.equal)
			}
			again, err := jobdir.ParseLock(b.AppendJSON(nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			if !again.Equal(b, nil) {
				t.Error("not equal after writing and reading")
			}
		})
	}
}

// TestLockRedacted compares locks of which one went through a file, with
// credentials in them.
func TestLockRedacted(t *testing.T) {
	t.Parallel()
	host := func(name string) (string, bool) { return "host-value", name == "HOST_KEY" }
	l := exampleLock()
	l.Trials[0].Agent.Env = jobdir.EnvOf("API_KEY", "sk-very-secret-0001", "HOST_KEY", "host-value", "PLAIN", "p")
	data := string(l.AppendJSON(nil, host))
	if strings.Contains(data, "sk-very-secret-0001") || !strings.Contains(data, `"HOST_KEY": "${HOST_KEY}"`) {
		t.Errorf("not redacted:\n%s", data)
	}
	again, err := jobdir.ParseLock([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	if !again.Equal(l, host) {
		t.Error("not equal after writing and reading")
	}
}

func TestRedactInvocation(t *testing.T) {
	t.Parallel()
	host := func(name string) (string, bool) { return "host-value", name == "HOST_KEY" }
	got := jobdir.RedactInvocation([]string{
		"proctor", "run", "--ae", "API_KEY=sk-very-secret-0001", "--ve=TOKEN=short", "--agent-env", "HOST_KEY=host-value",
		"--verifier-env=PLAIN=visible", "--ak", "key=visible", "--ae", "API_KEY=${OTHER}", "--ae",
	}, host)
	want := []string{
		"proctor", "run", "--ae", "API_KEY=sk-v****001", "--ve=TOKEN=****", "--agent-env", "HOST_KEY=${HOST_KEY}",
		"--verifier-env=PLAIN=visible", "--ak", "key=visible", "--ae", "API_KEY=${OTHER}", "--ae",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestPackageDigest(t *testing.T) {
	t.Parallel()
	ref, tag := digest("a"), "latest"
	for _, tt := range []struct {
		hash string
		ref  *string
		want string
	}{
		{strings.Repeat("b", 64), &tag, digest("b")}, {digest("b"), nil, digest("b")}, {"", &ref, digest("a")},
	} {
		if got, err := jobdir.PackageDigest("o/t", tt.hash, tt.ref); err != nil || got != tt.want {
			t.Errorf("got %q, %v, want %q", got, err, tt.want)
		}
	}
	_, err := jobdir.PackageDigest("o/t", "", &tag)
	if err == nil || err.Error() != "Package task 'o/t' was not resolved to a sha256 digest." {
		t.Errorf("got %v", err)
	}
}

func TestParseLockInvalid(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON":    "{",
		"bad digest": strings.Replace(string(exampleLock().AppendJSON(nil, nil)), digest("0"), "sha256:0", 1),
		"empty":      "{}",
	} {
		if _, err := jobdir.ParseLock([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
