package trial_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestEnvironmentDoesNotComeUp: the trial's directory has a manifest all the
// same, and the phase both its times.
func TestEnvironmentDoesNotComeUp(t *testing.T) {
	t.Parallel()
	const artifacts = "artifacts = [\"/data/out.txt\", \"/data/tree\"]\n"
	windows := toml(artifacts+"[environment]\nos = \"windows\"\n").without("tests/test.sh").with("tests/test.bat", "").
		without("solution/solve.sh").with("solution/solve.bat", "")
	for _, c := range []struct {
		name      string
		task      taskFiles
		fake      fake.Config
		exception string
		message   string
	}{
		{"build fails", toml(artifacts), fake.Config{Before: fake.FailAt(fake.OpCreate, 1, &sandbox.BuildError{Image: "x", Log: "no", Err: errors.New("exit 1")})},
			"RuntimeError", ""},
		{"image is missing", toml(artifacts + "[environment]\ndocker_image = \"none\"\n"), fake.Config{Before: fake.FailAt(fake.OpCreate, 1, errors.New("no such image"))},
			"RuntimeError", ""},
		{"build timeout", toml(artifacts), fake.Config{Before: fake.HangAt(fake.OpCreate, 0)}, "EnvironmentStartTimeoutError", ""},
		{"Windows", windows, fake.Config{}, "RuntimeError", "Task declares [environment].os = 'windows' but the fake environment does not support Windows containers."},
		{"Windows on a daemon for Linux", windows, fake.Config{Name: "docker"}, "RuntimeError",
			"Task declares [environment].os = 'windows' but the Docker daemon is running in 'linux' container mode."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.task, c.fake)
			res := b.runTimed(t)
			if exceptionType(res) != c.exception || c.message != "" && res.ExceptionInfo.Message != c.message {
				t.Errorf("exception %+v", res.ExceptionInfo)
			}
			if s := res.EnvironmentSetup; s == nil || s.StartedAt == nil || s.FinishedAt == nil {
				t.Errorf("environment_setup %+v, want both times", s)
			}
			if got := manifest(t, b, "artifacts/manifest.json", "status"); got != "empty failed failed" {
				t.Errorf("status of artifacts: %s", got)
			}
			if got := manifest(t, b, "artifacts/manifest.json", "type"); got != "directory file directory" {
				t.Errorf("types of artifacts: %s", got)
			}
		})
	}
}

// TestStepThatNeverBegan leaves no artifacts.
func TestStepThatNeverBegan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task  taskFiles
		rules []fake.Rule
	}{
		"set-up": {stepTask("[[steps]]\nname = \"one\"\n", "one").with("steps/one/workdir/setup.sh", ""),
			[]fake.Rule{fake.On("pwd", fake.Print("/app\n")), fake.On("bash /app/setup.sh", fake.Exit(7))}},
		"health check": {stepTask("[[steps]]\nname = \"one\"\n[steps.healthcheck]\ncommand = \"well\"\nretries = 1\n", "one"),
			[]fake.Rule{fake.On("well", fake.Exit(1))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, c.task, fake.Config{Rules: c.rules})
			res := b.run(t)
			if len(res.StepResults) != 1 || res.StepResults[0].ExceptionInfo == nil {
				t.Fatalf("steps %+v", res.StepResults)
			}
			b.lacks(t, "steps/one/artifacts", "artifacts")
			for _, dir := range []string{"agent", "verifier"} {
				if info, err := os.Stat(filepath.Join(b.dir, "steps", "one", dir)); err != nil || !info.IsDir() {
					t.Errorf("steps/one/%s: %v", dir, err)
				}
			}
		})
	}
}

// TestWhatNeverRanLeavesNoOutput: there is no such user, for example. The
// reason is in the notes.
func TestWhatNeverRanLeavesNoOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), rules(fake.On("solve.sh", fake.Refuse("unknown user \"w\"\n")), fake.On("(/tests/test.sh", fake.Refuse("unknown user \"g\"\n"))))
	res := b.run(t)
	if exceptionType(res) != "RewardFileNotFoundError" {
		t.Errorf("exception %+v", res.ExceptionInfo)
	}
	b.has(t, "agent/exit-code.txt", "126")
	b.lacks(t, "agent/oracle.txt", "verifier/test-stdout.txt")
	warnings := strings.Join(readNotes(t, b.dir).Warnings, "\n")
	for _, want := range []string{`a command of the agent could not be started: unknown user "w"`, `the tests could not be started: unknown user "g"`} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings %q lack %q", warnings, want)
		}
	}
}

// TestTracebackWithoutMessage ends as Python's do.
func TestTracebackWithoutMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, stepTask("[[steps]]\nname = \"one\"\n[steps.verifier]\ntimeout_sec = 1.0\n", "one"), rules(emptying(), fake.On("(/tests/test.sh", fake.Hang())))
	res := b.runTimed(t)
	var info *jobdir.ExceptionInfo
	if len(res.StepResults) == 1 {
		info = res.StepResults[0].ExceptionInfo
	}
	if info == nil || info.Type != "TimeoutError" || !strings.HasSuffix(info.Traceback, "\nTimeoutError\n") {
		t.Errorf("exception %+v", info)
	}
}
