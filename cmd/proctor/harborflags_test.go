package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// harborFlag is a flag of Harbor's command line.
type harborFlag struct {
	names   string // "-c/--config", all spellings
	refused string // what is said when it is given; empty for a flag that works
}

// harborRunFlags are the flags of "harbor run" (Harbor job format, section 7.1).
var harborRunFlags = []harborFlag{
	{"-c/--config", ""}, {"--job-name", ""}, {"-o/--jobs-dir", ""}, {"-k/--n-attempts", ""}, {"-n/--n-concurrent", ""},
	{"--timeout-multiplier", ""}, {"--agent-timeout-multiplier", ""}, {"--verifier-timeout-multiplier", ""},
	{"--agent-setup-timeout-multiplier", ""}, {"--environment-build-timeout-multiplier", ""},
	{"-q/--quiet/--silent", ""}, {"--debug", ""},
	{"-r/--max-retries", ""}, {"--retry-include", ""}, {"--retry-exclude", ""},
	{"-a/--agent", ""}, {"--agent-import-path", ""}, {"-m/--model", ""},
	{"--ak/--agent-kwarg", ""}, {"--ae/--agent-env", ""}, {"--mcp-config", ""}, {"--skill/--skills", ""}, {"--allow-agent-host", ""},
	{"-e/--env", ""}, {"--environment-import-path", ""},
	{"--force-build", ""}, {"--no-force-build", ""}, {"--delete", ""}, {"--no-delete", ""},
	{"--cpus", ""}, {"--memory", ""},
	{"--override-cpus", ""}, {"--override-memory-mb", ""}, {"--override-storage-mb", ""}, {"--override-gpus", ""}, {"--override-tpu", ""},
	{"--mounts/--mounts-json", ""}, {"--extra-docker-compose", ""}, {"--allow-environment-host", ""}, {"--ek/--environment-kwarg", ""},
	{"--ve/--verifier-env", ""}, {"--verifier-kwarg", "which proctor cannot run"}, {"--verifier-import-path", "which proctor cannot run"},
	{"--disable-verification", ""}, {"--enable-verification", ""},
	{"--artifact", ""}, {"--extra-instruction-path", ""},
	{"-p/--path", ""}, {"-d/--dataset", ""}, {"-t/--task", ""},
	{"-i/--include-task-name", ""}, {"-x/--exclude-task-name", ""}, {"-l/--n-tasks", ""},
	{"--registry-url", ""}, {"--registry-path", ""}, {"--task-git-url", ""}, {"--task-git-commit", ""},
	{"-y/--yes", ""}, {"--env-file", ""},
	{"--plugin", "which proctor cannot run"}, {"--pk/--plugin-kwarg", "Plugin kwargs require --plugin"},
	{"--upload", "proctor has no hosted hub to upload to"},
	{"--public", "--public / --private requires --upload."}, {"--private", "--public / --private requires --upload."},
	{"--share-org", "--share-org / --share-user requires --upload."}, {"--share-user", "--share-org / --share-user requires --upload."},
	{"--export-traces", "a run exports no trajectories"}, {"--export-sharegpt", "a run exports no trajectories"},
	{"--export-episodes", "a run exports no trajectories"}, {"--export-push", "a run exports no trajectories"},
	{"--export-repo", "a run exports no trajectories"}, {"--export-instruction-metadata", "a run exports no trajectories"},
	{"--export-verifier-metadata", "a run exports no trajectories"},
}

// harborTrialFlags are the flags of "harbor trial start" (section 7.2).
var harborTrialFlags = []harborFlag{
	{"-p/--path", ""}, {"-c/--config", ""}, {"--trial-name", ""}, {"--trials-dir", ""},
	{"--timeout-multiplier", ""}, {"--agent-timeout-multiplier", ""}, {"--verifier-timeout-multiplier", ""},
	{"--agent-setup-timeout-multiplier", ""}, {"--environment-build-timeout-multiplier", ""},
	{"-a", ""}, {"--agent-import-path", ""}, {"-m", ""}, {"--agent-timeout", ""}, {"--agent-setup-timeout", ""},
	{"--agent-kwarg", ""}, {"--ae", ""}, {"--mcp-config", ""}, {"--skill", ""}, {"--allow-agent-host", ""},
	{"--environment-type", ""}, {"--environment-import-path", ""},
	{"--force-build", ""}, {"--no-force-build", ""}, {"--delete", ""}, {"--no-delete", ""}, {"--cpus", ""}, {"--memory", ""},
	{"--override-cpus", ""}, {"--override-memory-mb", ""}, {"--override-storage-mb", ""}, {"--override-gpus", ""}, {"--override-tpu", ""},
	{"--mounts", ""}, {"--extra-docker-compose", ""}, {"--allow-environment-host", ""}, {"--environment-kwarg", ""},
	{"--verifier-timeout", ""}, {"--ve", ""}, {"--verifier-import-path", "which proctor cannot run"}, {"--verifier-kwarg", "which proctor cannot run"},
	{"--task-git-url", ""}, {"--task-git-commit", ""},
}

// harborResumeFlags are the flags of "harbor job resume" (sections 6.2 and 7.3).
var harborResumeFlags = []harborFlag{
	{"-p", ""}, {"-f", ""}, {"--upload", "proctor has no hosted hub to upload to"},
}

// TestHarborFlags finds every flag of Harbor's commands: it is there, or is
// refused with a reason before anything runs.
func TestHarborFlags(t *testing.T) {
	t.Parallel()
	env := &Env{Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer), Now: time.Now}
	for _, c := range []struct {
		words []string
		cmd   *cobra.Command
		flags []harborFlag
	}{
		{[]string{"run"}, newRun(env), harborRunFlags},
		{[]string{"job", "start"}, newJobStart(env), harborRunFlags},
		{[]string{"trial", "start"}, newTrialStart(env), harborTrialFlags},
		{[]string{"job", "resume"}, newJobResume(env), harborResumeFlags},
	} {
		for _, f := range c.flags {
			for name := range strings.SplitSeq(f.names, "/") {
				if !defines(c.cmd, name) {
					t.Errorf("%s: there is no %s", c.words, name)
					continue
				}
				if f.refused != "" {
					refuses(t, c.cmd, c.words, name, f.refused)
				}
			}
		}
		t.Logf("%s: %d flags", c.words, len(c.flags))
	}
}

func defines(cmd *cobra.Command, name string) bool {
	if long, ok := strings.CutPrefix(name, "--"); ok {
		return cmd.Flags().Lookup(long) != nil
	}
	return cmd.Flags().ShorthandLookup(name[1:]) != nil
}

// refuses runs the command with a flag and expects it to say why not.
func refuses(t *testing.T, cmd *cobra.Command, words []string, name, want string) {
	t.Helper()
	args := append([]string{"proctor"}, words...)
	args = append(args, name)
	if flag := cmd.Flags().Lookup(strings.TrimLeft(name, "-")); flag.NoOptDefVal == "" {
		args = append(args, "x=1")
	}
	made := filepath.Join(t.TempDir(), "made")
	switch words[len(words)-1] {
	case "resume":
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-p", dir)
	case "start":
		if words[0] == "trial" {
			args = append(args, "-p", repositoryPath(t, "examples/tasks/hello-world"), "--trials-dir", made)
			break
		}
		fallthrough
	default:
		args = append(args, "-p", repositoryPath(t, "examples/tasks"), "-o", made)
	}
	var out, errs bytes.Buffer
	env := Env{Args: args, Stdin: new(bytes.Buffer), Stdout: &out, Stderr: &errs, Now: time.Now}
	if code := Run(context.Background(), env); code != exitUsage || !strings.Contains(errs.String(), want) || out.Len() > 0 {
		t.Errorf("%q exits with %d and says %q, want %d and %q", args[1:], code, errs.String(), exitUsage, want)
	}
	if _, err := os.Stat(made); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q: there is %s although nothing was run", args[1:], made)
	}
}
