package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checklistTask is a task that stands for a row of the acceptance checklist of
// the Harbor task format: its files over those of a task that does nothing, and
// what must come of it with the oracle.
type checklistTask struct {
	files   map[string]string
	outcome string
	// holds are texts that files of the trial must hold.
	holds map[string]string
	// images: only where the sandbox is made of the task's own image.
	images bool
}

// checkText is a test that gives 1 when all of its lines succeed.
func checkText(lines ...string) string {
	return "#!/bin/bash\nset -e\necho 0 > /logs/verifier/reward.txt\n" + strings.Join(lines, "\n") + "\necho 1 > /logs/verifier/reward.txt\n"
}

const (
	scoresOne  = `{"reward":1.0}`
	scoresZero = `{"reward":0.0}`
)

// suffix is what a mapped Terminal-Bench test ends with (section 7.2).
const suffix = "\n_EXIT_CODE=$?\nif [ $_EXIT_CODE -eq 0 ]; then\n    echo 1 > /logs/verifier/reward.txt\nelse\n    echo 0 > /logs/verifier/reward.txt\nfi\nexit $_EXIT_CODE\n"

var checklistTasks = map[string]checklistTask{
	"row-41-no-network": {outcome: scoresOne, files: map[string]string{
		"task.toml":     "[environment]\nnetwork_mode = \"no-network\"\n",
		"tests/test.sh": checkText(`[ "$(sed -n 's/:.*//p' /proc/net/dev | tr -d ' \n')" = lo ]`),
	}},
	"row-44-output-and-code": {outcome: scoresOne, holds: map[string]string{"agent/oracle.txt": "out\nerr\nmore\n", "agent/exit-code.txt": "137"},
		files: map[string]string{"solution/solve.sh": "#!/bin/bash\necho out; echo err >&2; echo more\nkill -9 $$\n", "tests/test.sh": checkText()}},
	"row-44-user-and-directory": {outcome: scoresOne, files: map[string]string{
		"task.toml":         "[environment]\nworkdir = \"/tmp\"\n[environment.env]\nA = \"environment\"\nB = \"environment\"\n[solution.env]\nB = \"solution\"\n[agent]\nuser = \"nobody\"\n",
		"solution/solve.sh": "#!/bin/bash\necho \"$A $B $PWD $(id -un)\" > /logs/artifacts/seen\n",
		"tests/test.sh":     checkText(`[ "$(cat /logs/artifacts/seen)" = "environment solution /tmp nobody" ]`, `[ "$PWD" = /tmp ]`),
	}},
	"row-45-modes-and-links": {outcome: scoresOne, files: map[string]string{
		"tests/link": "-> data", "tests/data": "x", "tests/run.sh": "#!/bin/bash\necho ran\n",
		"tests/test.sh": checkText(`[ -L /tests/link ]`, `[ "$(cat /tests/link)" = x ]`, `[ "$(stat -c %a /tests/data)" = 640 ]`, `[ "$(/tests/run.sh)" = ran ]`),
	}},
	"row-46-logs-of-another-user": {outcome: scoresOne, holds: map[string]string{"agent/own": "mine\n", "artifacts/own": "mine\n"}, files: map[string]string{
		"task.toml":         "[agent]\nuser = \"nobody\"\n",
		"solution/solve.sh": "#!/bin/bash\necho mine | tee /logs/agent/own /logs/artifacts/own\n", "tests/test.sh": checkText(`[ "$(stat -c %U /logs/agent/own)" = nobody ]`),
	}},
	"row-49-start-timeout": {outcome: "EnvironmentStartTimeoutError", files: map[string]string{"task.toml": "[environment]\nbuild_timeout_sec = 0.0001\n"}},
	"row-52-exit-code":     {outcome: `{"reward":0.5}`, files: map[string]string{"tests/test.sh": "#!/bin/bash\necho 0.5 > /logs/verifier/reward.txt\nexit 9\n"}},
	"row-55-no-shebang":    {outcome: scoresOne, files: map[string]string{"tests/test.sh": "[[ -n $BASH_VERSION ]] && echo 1 > /logs/verifier/reward.txt\n"}},
	"row-55-crlf-shebang": {outcome: "RewardFileNotFoundError", holds: map[string]string{"verifier/test-stdout.txt": "/tests/test.sh"},
		files: map[string]string{"tests/test.sh": "#!/bin/bash\r\necho 1 > /logs/verifier/reward.txt\r\n"}},
	"row-57-user-of-the-tests": {outcome: scoresOne, files: map[string]string{"task.toml": "[verifier]\nuser = 1234\n", "tests/test.sh": checkText(`[ "$(id -u):$(id -g)" = 1234:0 ]`)}},
	"row-59-tests-go-on-no-more": {outcome: "VerifierTimeoutError", files: map[string]string{
		"task.toml": "[verifier]\ntimeout_sec = 1.0\n", "tests/test.sh": "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\nsleep 86400\n"}},
	"row-61-separate": {outcome: `{"declared":1,"other":0}`, images: true, files: map[string]string{
		"task.toml":         "artifacts = [\"/srv/out.txt\"]\n[verifier]\nenvironment_mode = \"separate\"\n",
		"solution/solve.sh": "#!/bin/bash\necho made > /srv/out.txt\necho secret > /srv/secret\n",
		"tests/Dockerfile":  "FROM debian:bookworm-slim\nCOPY test.sh /tests/test.sh\n",
		"tests/test.sh":     "#!/bin/bash\nd=0; o=0; [ -e /srv/out.txt ] && d=1; [ -e /srv/secret ] && o=1\necho \"{\\\"declared\\\": $d, \\\"other\\\": $o}\" > /logs/verifier/reward.json\n",
	}},
	"row-61-image-without-tests": {outcome: "RewardFileNotFoundError", images: true, files: map[string]string{
		"task.toml": "[verifier]\nenvironment_mode = \"separate\"\n", "tests/Dockerfile": "FROM debian:bookworm-slim\n",
	}},
	"row-77-mapped": {outcome: scoresOne, files: map[string]string{
		"solution/solve.sh": "#!/bin/bash\necho hi > /tmp/hello\n", "tests/test.sh": "#!/bin/bash\ngrep -q hi /tmp/hello" + suffix}},
	"row-77-mapped-and-failing": {outcome: scoresZero, files: map[string]string{"tests/test.sh": "#!/bin/bash\n(exit 7)" + suffix}},
}

// TestChecklist runs the rows that need real sandboxes, all in one job for each
// environment.
func TestChecklist(t *testing.T) {
	t.Parallel()
	for _, where := range environments() {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			flags := where.flags(t)
			p := newPlace(t)
			want := map[string]string{}
			for name, task := range checklistTasks {
				if task.images && strings.HasPrefix(where.name, "host") {
					continue // which has no image but its own
				}
				want[name] = task.outcome
				task.write(t, filepath.Join(p.dir, "tasks", name))
			}
			done := p.run(t, append([]string{"run", "-p", "tasks", "-a", "oracle", "-n", "3", "--job-name", "j", "-q"}, flags...)...)
			got := map[string]string{}
			for name, r := range jobRecords(t, filepath.Join(p.dir, "jobs", "j")) {
				got[name] = outcomeText(r)
				t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) { checklistTasks[name].check(t, p, name, got[name]) })
			}
			if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
				t.Errorf("rows (-want +got):\n%s\nexit code %d\n%s", diff, done.code, done.stderr)
			}
		})
	}
}

func (c checklistTask) write(t *testing.T, dir string) {
	t.Helper()
	files := map[string]string{
		"task.toml": "", "instruction.md": "Do it.\n", "environment/Dockerfile": "FROM debian:bookworm-slim\n",
		"solution/solve.sh": "#!/bin/bash\n", "tests/test.sh": "#!/bin/bash\n",
	}
	maps.Copy(files, c.files)
	for name, text := range files {
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			delete(files, name)
			defer func() {
				if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}()
		}
	}
	writeFiles(t, dir, files)
	for name, mode := range map[string]os.FileMode{"tests/data": 0o640, "tests/run.sh": 0o755} {
		if _, ok := files[name]; ok {
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Error(err)
			}
		}
	}
}

func (c checklistTask) check(t *testing.T, p place, name, outcome string) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.dir, "jobs", "j", fmt.Sprintf("%.32s*", name)))
	if err != nil {
		t.Fatal(err)
	}
	if outcome != c.outcome {
		t.Errorf("outcome %s, want %s\n%s", outcome, c.outcome, rowTails(dirs))
	}
	for file, want := range c.holds {
		if text := rowText(dirs, file); !strings.Contains(text, want) {
			t.Errorf("%s holds %q, want %q", file, text, want)
		}
	}
}

func rowText(dirs []string, name string) (all string) {
	for _, dir := range dirs {
		data, _ := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		all += string(data)
	}
	return all
}

func rowTails(dirs []string) string {
	return rowText(dirs, "exception.txt") + rowText(dirs, "verifier/test-stdout.txt") + rowText(dirs, "agent/oracle.txt")
}
