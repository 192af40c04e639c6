package agents_test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/agent/installed"
)

// programsPage has the agents that are programs of their own, with their settings.
const programsPage = "../../docs/agent-settings.md"

// TestProgramsPage: docs/agent-settings.md is what agents' files say. With
// PROCTOR_UPDATE=1 it is written.
func TestProgramsPage(t *testing.T) {
	t.Parallel()
	want := programs()
	if os.Getenv("PROCTOR_UPDATE") != "" {
		if err := os.WriteFile(programsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(programsPage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/agent-settings.md differs (-files +page); write it with 'PROCTOR_UPDATE=1 go test ./agent/agents -run TestProgramsPage':\n%s", diff)
	}
}

func programs() string {
	var b strings.Builder
	b.WriteString("# Settings of known agents\n\nWhat `proctor agent show NAME` prints of each agent that is a program of its own. " +
		"[Known agents](known-agents.md)\nsays how they are run.\n\nEvery one of them has these settings, and those of [the gateway](models.md#agents-in-the-sandbox-the-gateway)\n" +
		"where it speaks to a model by its address:\n\n")
	all := installed.Definitions()
	common := map[string]bool{"api_base": true, "api": true, "model_info": true}
	table := func(rows [][2]string) {
		b.WriteString("| setting | meaning |\n|---|---|\n")
		for _, r := range rows {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r[0], r[1])
		}
	}
	var shared [][2]string
	for _, s := range all[0].Entry().Settings[:3] {
		shared = append(shared, [2]string{s.Name, s.Summary})
		common[s.Name] = true
	}
	shared[0][1] = "the version that is installed"
	table(shared)
	for _, d := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s%s. Version: %s. Installed with %s.\n", d.Name, strings.ToUpper(d.Summary[:1]), d.Summary[1:],
			cmp.Or(d.Version, "the newest"), d.HowInstalled())
		if !d.Tried {
			b.WriteString("\nUntried: its file follows what is known of it, and nobody has seen it work.\n")
		}
		var apis []string
		for _, api := range d.Model.APIs {
			apis = append(apis, "`"+string(api)+"`")
		}
		if len(apis) > 0 {
			fmt.Fprintf(&b, "\nSpeaks %s.\n", strings.Join(apis, ", "))
		}
		var rows [][2]string
		for _, s := range d.Entry().Settings {
			if !common[s.Name] {
				rows = append(rows, [2]string{s.Name, s.Summary})
			}
		}
		if len(rows) > 0 {
			b.WriteString("\n")
			table(rows)
		}
	}
	return b.String()
}
