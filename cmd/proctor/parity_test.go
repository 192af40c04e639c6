package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/internal/need"
)

// exampleOutcomes are the tables of examples/README.md, all tasks in one.
var exampleOutcomes = map[string]map[string]string{
	"oracle": {
		"build-rpn":         `{"reward":1.0}`,
		"env-templates":     `{"reward":1.0}`,
		"failing-oracle":    `{"reward":0.0}`,
		"fractional-reward": `{"reward":0.75}`,
		"healthcheck":       `{"reward":1.0}`,
		"hello-world":       `{"reward":1.0}`,
		"multi-key-reward":  `{"correctness":1,"brevity":0.5}`,
		"verifier-crash":    "RewardFileNotFoundError",
	},
	"nop": {
		"build-rpn":         `{"reward":0.0}`,
		"env-templates":     `{"reward":0.0}`,
		"failing-oracle":    `{"reward":0.0}`,
		"fractional-reward": `{"reward":0.0}`,
		"healthcheck":       `{"reward":0.0}`,
		"hello-world":       `{"reward":0.0}`,
		"multi-key-reward":  `{"correctness":0,"brevity":0}`,
		"verifier-crash":    "RewardFileNotFoundError",
	},
}

// exampleMetrics is what follows from the table: without further ado the mean
// of each reward over all eight, where none counts as 0.
var exampleMetrics = map[string]string{
	"oracle": "oracle__tasks: 7 trials, 1 errors {\"brevity\":0.0625,\"correctness\":0.125,\"reward\":0.59375}\n",
	"nop":    "nop__tasks: 7 trials, 1 errors {\"brevity\":0.0,\"correctness\":0.0,\"reward\":0.0}\n",
}

// allExamples copies the tasks of all sets of examples to one directory.
func allExamples(t *testing.T, dir string) {
	t.Helper()
	for _, set := range []string{"tasks", "rewards", "failing"} {
		if err := os.CopyFS(dir, os.DirFS(repositoryPath(t, "examples/"+set))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSameEverywhere runs the examples in every environment: the same rewards,
// metrics and exception types come of them in all.
func TestSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, where := range environments() {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			flags := where.flags(t)
			p := newPlace(t)
			examples := filepath.Join(p.dir, "tasks")
			allExamples(t, examples)
			for agent, want := range exampleOutcomes {
				if agent == "nop" && !where.quickest() && !need.Required("patience") {
					continue // the oracle does all that it does, and more
				}
				args := append([]string{"run", "-p", examples, "-a", agent, "-n", "2", "-o", p.dir, "--job-name", agent}, flags...)
				done := p.run(t, args...)
				if done.code != exitTrialErrors {
					t.Errorf("-a %s: exit code %d, want %d; it says\n%s", agent, done.code, exitTrialErrors, done.stderr)
				}
				got := map[string]string{}
				for task, r := range jobRecords(t, p.dir+"/"+agent) {
					got[task] = outcomeText(r)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-a %s: outcomes (-want +got):\n%s\n%s", agent, diff, done.stderr)
				}
				if diff := cmp.Diff(exampleMetrics[agent], metricsText(jobResult(t, p.dir+"/"+agent))); diff != "" {
					t.Errorf("-a %s: metrics (-want +got):\n%s", agent, diff)
				}
			}
		})
	}
}
