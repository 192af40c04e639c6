package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestHarborCommands: each command of Harbor (Harbor job format, section 7.3) is there or
// answered with what there is instead, and docs/commands.md names it; no answer names a
// command that proctor does not have, and none is for one that it has.
func TestHarborCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.FieldsFunc(`run, job start, job resume, trial start, view, task init, init, task start-env, dataset list, download,
		dataset download, task download, dataset init, add, remove, sync, task update, task migrate, cache clean, check, analyze, publish, upload,
		auth login, job share, job download, trial download, task visibility, dataset visibility, leaderboard submit, plugins list, adapter init,
		task annotate, traces export, sweeps run, admin upload-images`, func(r rune) bool { return r == ',' })
	for _, words := range commands {
		args := strings.Fields(words)
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			stderr, is := answer(t, args)
			key := strings.Join(args, " ")
			if _, answered := harborCommands[key]; !answered {
				key = args[0]
			}
			instead, answered := harborCommands[key]
			switch {
			case is && answered:
				t.Errorf("%s is a command, and answered with %q", key, instead)
			case !is && !answered:
				t.Errorf("%s is not a command, and not answered: %s", words, stderr)
			case is:
				return
			case !strings.Contains(stderr, "\nproctor: "+instead+"\n"):
				t.Errorf("it prints %s, want %q", stderr, instead)
			}
			if !bytes.Contains(page, []byte("`"+key+"`")) && !bytes.Contains(page, []byte("`"+strings.Join(args, " ")+"`")) {
				t.Errorf("docs/commands.md does not name %q", key)
			}
		})
	}
}

// TestInstead: what the answers name as commands of proctor are commands.
func TestInstead(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`(?:^| )'proctor ([^']+)'`)
	for key, instead := range harborCommands {
		for _, match := range command.FindAllStringSubmatch(instead, -1) {
			if stderr, is := answer(t, strings.Fields(match[1])); !is {
				t.Errorf("%s: %q is not a command: %s", key, match[1], stderr)
			}
		}
	}
}

// answer reports whether words lead to a command, and else what is printed.
func answer(t *testing.T, words []string) (stderr string, is bool) {
	t.Helper()
	var printed bytes.Buffer
	env := Env{Stdout: &printed, Stderr: &printed}
	root := newRoot(&env)
	found, rest, err := root.Find(words)
	if err != nil {
		t.Fatal(err)
	}
	if len(rest) == 0 || !found.HasSubCommands() {
		return "", found != root
	}
	printError(&env, noUnknownCommand(found, rest))
	return "\n" + printed.String(), false
}
