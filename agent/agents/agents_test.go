package agents_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/logs"
)

// TestDocumentation: the page about agents has every agent that is part of proctor, and
// every setting, in the words of the registry; the page about known agents has the others.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	all := agents.All()
	known, err := os.ReadFile("../../docs/known-agents.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := installed.Agents().Names()
	for _, name := range all.Names() {
		e, _ := all.Find(name)
		if slices.Contains(programs, name) {
			if row := "| `" + name + "` |"; !strings.Contains(string(known), row) {
				t.Errorf("docs/known-agents.md lacks a row that begins with %q", row)
			}
			continue
		}
		if row := "| `" + e.Name + "` | " + e.Summary + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/agents.md lacks the row %q", row)
		}
		for _, s := range e.Settings {
			if row := "| `" + s.Name + "` | " + s.Summary + " |"; !strings.Contains(string(page), row) {
				t.Errorf("docs/agents.md lacks the row %q", row)
			}
		}
	}
}

// TestKnown: an agent of Harbor that proctor cannot run is known as such, also where
// its logs can be read; one that it can run is not.
func TestKnown(t *testing.T) {
	t.Parallel()
	all := agents.All()
	for _, name := range all.HarborOnly() {
		err := all.Check(agent.Config{Name: name}, false)
		if err == nil || !strings.Contains(err.Error(), name+" is an agent of Harbor that proctor does not have") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"oracle", "nop"} {
		if slices.Contains(all.HarborOnly(), name) {
			t.Errorf("%s runs here, and is listed as one that does not", name)
		}
	}
	if got, want := len(agent.Registry(nil).HarborOnly()), 29; got != want {
		t.Errorf("Harbor has %d agents, want %d", got, want)
	}
}

// TestReadLogs: every agent whose logs can be read reads an empty directory, and
// others are refused with the names of those.
func TestReadLogs(t *testing.T) {
	t.Parallel()
	all := agents.All()
	names := all.LogNames()
	if len(names) == 0 || !slices.IsSorted(names) {
		t.Fatalf("names %q", names)
	}
	for _, name := range names {
		made, err := all.ReadLogs(name, logs.Input{Dir: t.TempDir()})
		if err != nil || made.Trajectory != nil {
			t.Errorf("%s: %v, %v", name, made, err)
		}
	}
	_, err := all.ReadLogs("aider", logs.Input{Dir: t.TempDir()})
	if bad, ok := errors.AsType[*agent.UnknownLogsError](err); !ok || bad.Agent != "aider" || !slices.Equal(bad.Known, names) {
		t.Errorf("got %v", err)
	}
}
