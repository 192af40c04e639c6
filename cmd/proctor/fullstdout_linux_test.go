package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/need"
)

// printing is a run of a command that prints something.
type printing struct {
	args string // words: $DIR is a directory of the run's own
	code int    // its exit code where all of it is printed
	// host: it needs sandboxes.
	host bool
	// elsewhere says why no run of the command is here: its help is tried alone.
	elsewhere string
}

// printings has a run of each command; those that print in two ways have two.
func printings() map[string][]printing {
	const run = "-p $EXAMPLES/hello-world -a oracle -e host -q -y -o $DIR/jobs"
	return map[string][]printing{
		"proctor run": {
			{args: "run --json --job-name j " + run, host: true}, {args: "run --outcome-line --job-name j " + run, host: true},
			{args: "run --job-name j -o $DIR/jobs -p $EXAMPLES/../failing/verifier-crash -a oracle -e host -q", code: exitTrialErrors, host: true},
			{args: "run --fail-under 2 --job-name j " + run, code: exitThreshold, host: true},
		},
		"proctor job start":          {{args: "job start --job-name j " + run, host: true}},
		"proctor job resume":         {{args: "job resume $DIR/job", host: true}},
		"proctor job export":         {{args: "job export --junit - $JOBS/multi-oracle"}},
		"proctor job list":           {{args: "job list $JOBS"}, {args: "job list --json $JOBS"}, {args: "job list $DIR"}},
		"proctor job show":           {{args: "job show $JOBS/multi-oracle"}, {args: "job show --json $JOBS/multi-oracle"}},
		"proctor job summarize":      {{args: "job summarize $JOBS/multi-oracle"}},
		"proctor trial attach":       {{args: "trial attach $JOBS/multi-oracle/one-score__4Ucooi9"}},
		"proctor trial show":         {{args: "trial show $JOBS/multi-oracle/one-score__4Ucooi9"}},
		"proctor trial start":        {{args: "trial start -p $EXAMPLES/hello-world -a oracle -e host --trials-dir $DIR/trials", host: true}},
		"proctor mcp":                {{elsewhere: "its standard output is that of a protocol, whose client decides what a write that fails means"}},
		"proctor score":              {{args: "score $JOBS/multi-oracle"}, {args: "score --json $JOBS/multi-oracle"}, {args: "score --check $JOBS/multi-oracle"}},
		"proctor verify":             {{args: "verify $JOBS/multi-oracle"}, {args: "verify --json $JOBS/multi-oracle"}},
		"proctor outcome":            {{args: "outcome $JOBS/multi-oracle"}, {args: "outcome --json $JOBS/multi-oracle"}, {args: "outcome --explain $JOBS/multi-oracle"}, {args: "outcome $DIR/nowhere"}},
		"proctor ownrunner run":      {{args: "ownrunner run --task $EXAMPLES/hello-world --job-dir $DIR/eval -a oracle -e host --hardened=false -q", host: true}},
		"proctor ownrunner judge":    {{args: "ownrunner judge --stdout /dev/null --exit-code 0 --attempt 1"}, {args: "ownrunner judge --json --stdout /dev/null --exit-code 0 --attempt 1"}},
		"proctor ownrunner manifest": {{args: "ownrunner manifest $EXAMPLES"}},
		"proctor compare":            {{args: "compare $JOBS/mixed-oracle $JOBS/mixed-nop"}, {args: "compare --json $JOBS/mixed-oracle $JOBS/mixed-nop"}},
		"proctor traj convert":       {{args: "traj convert --agent pi $DIR/trial"}},
		"proctor traj export":        {{args: "traj export $DIR/exported"}},
		"proctor traj show":          {{args: "traj show $TRAJECTORY"}, {args: "traj show --json $TRAJECTORY"}},
		"proctor traj validate":      {{args: "traj validate --no-validate-images $TRAJECTORY"}, {args: "traj validate --json --no-validate-images $TRAJECTORY"}},
		"proctor task init":          {{args: "task init task -p $DIR"}},
		"proctor task show":          {{args: "task show $EXAMPLES/hello-world"}},
		"proctor task validate":      {{args: "task validate $EXAMPLES/hello-world"}, {args: "task validate --json $EXAMPLES/hello-world"}},
		"proctor task check":         {{args: "task check $EXAMPLES/hello-world -e host -q", host: true}},
		"proctor task migrate":       {{args: "task migrate -i $DIR/old -o $DIR/new"}},
		"proctor dataset list":       {{args: "dataset list --registry-path $DIR/registry.json"}},
		"proctor cube list":          {{args: "cube list"}},
		"proctor cube show":          {{args: "cube show arithmetic-cube"}},
		"proctor cube test":          {{args: "cube test arithmetic-cube"}},
		"proctor cube run":           {{args: "cube run arithmetic-cube -q -o $DIR/jobs --job-name j"}, {args: "cube run arithmetic-cube -o $DIR/jobs --job-name j --json"}},
		"proctor cube init":          {{args: "cube init puzzles -p $DIR"}},
		"proctor cube install":       {{args: "cube install arithmetic-cube"}},
		"proctor cube uninstall":     {{args: "cube uninstall arithmetic-cube"}},
		"proctor doctor":             {{args: "doctor --json", code: -1}},
		"proctor agent list":         {{args: "agent list"}, {args: "agent list --json"}},
		"proctor agent show":         {{args: "agent show oracle"}},
		"proctor agent check":        {{args: "agent check $DIR/own.toml"}},
		"proctor agent build":        {{elsewhere: "it installs an agent first"}},
		"proctor agent rm":           {{args: "agent rm goose"}},
		"proctor image pull":         {{elsewhere: "it gets an image first"}},
		"proctor image list":         {{args: "image list"}},
		"proctor image export":       {{elsewhere: "it prints nothing"}},
		"proctor image rm":           {{elsewhere: "it needs an image"}},
		"proctor image prune":        {{args: "image prune --dry-run"}, {args: "image prune --dry-run --json"}},
		"proctor bench sandbox":      {{elsewhere: "it takes a while; it looks at each of its writes"}},
		"proctor gc":                 {{args: "gc --dry-run"}, {args: "gc --dry-run --json"}},
		"proctor view":               {{args: "view --export $DIR/pages $JOBS/multi-oracle"}},
		"proctor version":            {{args: "version"}, {args: "version --json"}},
		"proctor completion":         {{args: "completion bash"}},
	}
}

// TestFullStdout: no command ends well whose output is not whole. Every command has to
// be in the table.
func TestFullStdout(t *testing.T) {
	t.Parallel()
	root, table := newRoot(&Env{}), printings()
	commands := leaves(root)
	for _, cmd := range commands {
		if len(table[cmd.CommandPath()]) == 0 {
			t.Errorf("%s is not in the table", cmd.CommandPath())
		}
	}
	if len(table) != len(commands) {
		t.Errorf("the table has %d commands of %d", len(table), len(commands))
	}
	for _, cmd := range append(allCommands(root), root) {
		p := printing{args: strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "proctor"), " ") + " --help"}
		t.Run(cmd.CommandPath()+" --help", func(t *testing.T) { t.Parallel(); p.check(t) })
	}
	for path, runs := range table {
		for _, p := range runs {
			if p.elsewhere == "" {
				t.Run(path+"/"+p.args, func(t *testing.T) { t.Parallel(); p.check(t) })
			}
		}
	}
}

// allCommands are the commands below one, groups too.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "help" {
			all = append(append(all, sub), allCommands(sub)...)
		}
	}
	return all
}

// check runs the command with a place for what it prints, and then without.
func (p printing) check(t *testing.T) {
	if p.host {
		err := hostSandboxes()
		need.That(t, "host", err == nil, "needs sandboxes on the host's own root")
	}
	args, at := p.prepare(t)
	whole := at.run(t, args...)
	if whole.stdout == "" || p.code >= 0 && whole.code != p.code {
		t.Fatalf("exit code %d, want %d, with\n%s%s", whole.code, p.code, whole.stdout, whole.stderr)
	}
	args, at = p.prepare(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	var said bytes.Buffer
	cmd := at.command(args...)
	cmd.Stdout, cmd.Stderr = full, &said
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || strings.Count(said.String(), "writing the output: ") != 1 {
		t.Errorf("exit code %d, want %d, with\n%s", code, exitFailed, said.String())
	}
	if jobs, _ := filepath.Glob(filepath.Join(at.dir, "jobs", "*", "result.json")); strings.Contains(p.args, "$DIR/jobs") {
		if len(jobs) != 1 || jobResult(t, filepath.Dir(jobs[0])).FinishedAt == nil {
			t.Errorf("the job did not run to its end: %q", jobs)
		}
	}
}

// prepare makes the directory of a run.
func (p printing) prepare(t *testing.T) ([]string, place) {
	t.Helper()
	at := newPlace(t)
	for name, text := range map[string]string{
		"trial/agent/pi.txt": `{"type":"session","id":"s1"}` + "\n" +
			`{"type":"message_end","message":{"role":"user","content":[{"type":"text","text":"do it"}],"timestamp":1795322682155}}` + "\n" +
			`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"provider":"fake","model":"m","usage":{"input":300,"output":20,"cacheRead":800,"cacheWrite":0,"totalTokens":1120,"cost":{"total":0.00042}},"stopReason":"stop"}}` + "\n",
		"exported/result.json": `{"trial_name":"t__1","config":{"job_id":"j","agent":{"name":"my-agent"}}}`,
		"exported/agent/trajectory.json": `{"agent":{"name":"my-agent","version":"1"},"session_id":"s","steps":[{"step_id":1,"source":"user","message":"do it"},` +
			`{"step_id":2,"source":"agent","message":"done","metrics":{"prompt_tokens":1}}]}`,
		"registry.json":                `[{"name":"set","version":"1","description":"","tasks":[]}]`,
		"old/good/task.yaml":           "instruction: do it\ndifficulty: easy\nparser_name: pytest\n",
		"old/good/Dockerfile":          "FROM debian:bookworm-slim\n",
		"old/good/solution.sh":         "true\n",
		"old/good/docker-compose.yaml": "services:\n  client:\n    build: .\n",
		"old/good/run-tests.sh":        "true\n",
	} {
		path := filepath.Join(at.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(p.args, "own.toml") {
		if err := os.WriteFile(filepath.Join(at.dir, "own.toml"), []byte(at.run(t, "agent", "show", "pi", "--file").stdout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasSuffix(p.args, "$DIR/job") {
		at.run(t, "run", "-p", repositoryPath(t, "examples/tasks/hello-world"), "-a", "oracle", "-e", "host", "-q", "-y", "-o", at.dir, "--job-name", "job")
	}
	replace := strings.NewReplacer("$DIR", at.dir, "$EXAMPLES", repositoryPath(t, "examples/tasks"),
		"$JOBS", repositoryPath(t, "jobdir/testdata/jobs"), "$TRAJECTORY", repositoryPath(t, "report/testdata/trajectory.json"))
	args := strings.Fields(p.args)
	for i := range args {
		args[i] = replace.Replace(args[i])
	}
	return args, at
}

// TestClosedPipe: that a reader has seen enough is no error to be told of.
func TestClosedPipe(t *testing.T) {
	t.Parallel()
	at := newPlace(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := at.command("outcome", repositoryPath(t, "jobdir/testdata/jobs/multi-oracle"))
	cmd.Stdout, cmd.Stderr = w, &said
	_ = cmd.Run()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signal() != syscall.SIGPIPE && status.ExitStatus() != exitFailed || said.Len() > 0 {
		t.Errorf("%v with\n%s", cmd.ProcessState, said.String())
	}
}
