package dataset_test

import (
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/jobdir"
)

func TestTakeFromGit(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	elsewhere := filepath.Join(here, "tasks", "a")
	commit := "0123abc"
	for name, c := range map[string]struct {
		path     string
		datasets int
		taken    bool
	}{
		"elsewhere":  {elsewhere, 1, true},
		"here":       {here, 1, false},
		"no dataset": {elsewhere, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := jobdir.Config{Datasets: make([]jobdir.DatasetConfig, c.datasets)}
			if got := dataset.TakeFromGit(&cfg, c.path, "https://git.example/tasks", &commit); got != c.taken {
				t.Fatalf("got %t", got)
			}
			if !c.taken {
				if len(cfg.Datasets) != c.datasets || len(cfg.Tasks) != 0 {
					t.Errorf("it was changed: %+v", cfg)
				}
				return
			}
			if len(cfg.Datasets) != 0 || len(cfg.Tasks) != 1 || cfg.Tasks[0].Kind() != jobdir.GitTask {
				t.Fatalf("got %+v", cfg)
			}
			if task := cfg.Tasks[0]; *task.Path != c.path || *task.GitURL != "https://git.example/tasks" || *task.GitCommitID != commit {
				t.Errorf("got %+v", task)
			}
		})
	}
}
