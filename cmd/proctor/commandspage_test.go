package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestCommandsPage: docs/commands.md has a row for each command, and names no
// command and no flag that does not exist.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot(&Env{})
	rows := commandRows(string(data))
	for _, cmd := range leaves(root) {
		if _, ok := rows[cmd.CommandPath()]; !ok {
			t.Errorf("the page has no row for %q", cmd.CommandPath())
		}
	}
	for path, text := range rows {
		cmd, _, err := root.Find(strings.Fields(path)[1:])
		if err != nil || cmd.CommandPath() != path {
			t.Errorf("the page has a row for %q, which is no command", path)
			continue
		}
		for _, span := range spans(text) {
			if name, ok := flagOf(span); ok && !hasFlag(cmd, name) {
				t.Errorf("the row of %q names --%s, which the command does not have", path, name)
			}
		}
	}
	for _, span := range spans(string(data)) {
		checkSpan(t, root, span)
	}
}

// checkSpan checks what a piece of code on the page names.
func checkSpan(t *testing.T, root *cobra.Command, span string) {
	t.Helper()
	name, isFlag := flagOf(span)
	if isFlag && !anyFlag(root, name) {
		t.Errorf("the page names --%s, which no command has", name)
	}
	if !strings.HasPrefix(span, "proctor ") {
		return
	}
	path := commandOf(span)
	cmd, _, err := root.Find(strings.Fields(path)[1:])
	if err != nil || cmd.CommandPath() != path {
		t.Errorf("the page names %q, which is no command", path)
		return
	}
	for word := range strings.FieldsSeq(span) {
		if name, ok := flagOf(word); ok && !hasFlag(cmd, name) {
			t.Errorf("the page names %q, but the command has no --%s", span, name)
		}
	}
}

// commandRows are the rows of the page's first table by the commands that they
// are about.
func commandRows(page string) map[string]string {
	rows := map[string]string{}
	started := false
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			if started {
				break
			}
			continue
		}
		started = true
		cells := strings.SplitN(strings.ReplaceAll(line, `\|`, "/"), "|", 3)
		for _, span := range spans(cells[1]) {
			rows[commandOf(span)] = cells[2]
		}
	}
	return rows
}

var codeSpan = regexp.MustCompile("`([^`\n]+)`")

func spans(text string) []string {
	var all []string
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

var commandWord = regexp.MustCompile(`^[a-z]+$`)

// commandOf is the part of a command line before its arguments and flags. An
// argument is in capitals on the page.
func commandOf(line string) string {
	words := strings.Fields(line)
	if i := slices.IndexFunc(words, func(w string) bool { return !commandWord.MatchString(w) }); i >= 0 {
		words = words[:i]
	}
	return strings.Join(words, " ")
}

var longFlag = regexp.MustCompile(`^--([a-z][a-z0-9-]*[a-z0-9])(?:[= ].*)?$`)

// flagOf is the name of the long flag that a text begins with.
func flagOf(text string) (name string, ok bool) {
	m := longFlag.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func hasFlag(cmd *cobra.Command, name string) bool {
	return name == "help" || cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil
}

func anyFlag(cmd *cobra.Command, name string) bool {
	return hasFlag(cmd, name) || slices.ContainsFunc(cmd.Commands(), func(sub *cobra.Command) bool { return anyFlag(sub, name) })
}

// leaves are the commands that do something. The shells of completion are one,
// and help explains the others.
func leaves(cmd *cobra.Command) []*cobra.Command {
	switch {
	case cmd.Name() == "help" || cmd.Hidden:
		return nil
	case !cmd.HasSubCommands() || cmd.Name() == "completion":
		return []*cobra.Command{cmd}
	}
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}
