package main

import (
	"github.com/proctor-run/proctor/jobdir"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// Jobs without a name that start in the same second each get a directory.
func TestClaimNameInTheSameSecond(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "jobs")
	names := make([]string, 8)
	releases := make([]func(), len(names))
	var wg sync.WaitGroup
	for i := range names {
		wg.Go(func() {
			cfg := jobdir.Config{JobName: "2026-06-09__10-00-00", JobsDir: dir}
			release, err := claimName(&cfg, given{})
			if err != nil {
				t.Error(err)
				return
			}
			names[i], releases[i] = cfg.JobName, release
		})
	}
	wg.Wait()
	slices.Sort(names)
	if got := slices.Compact(slices.Clone(names)); len(got) != len(names) {
		t.Fatalf("names are %q, want them all different", names)
	}
	if names[0] != "2026-06-09__10-00-00" || names[1] != "2026-06-09__10-00-00-2" {
		t.Errorf("names start with %q", names[:2])
	}

	used := filepath.Join(dir, names[3])
	if err := os.WriteFile(filepath.Join(used, "config.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		release()
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != names[3] {
		t.Errorf("after release %v is left (%v), want only what was written to", left, err)
	}
}

func TestClaimNameLeavesGivenNamesAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "jobs")
	cfg := jobdir.Config{JobName: "mine", JobsDir: dir}
	release, err := claimName(&cfg, given{jobName: true})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := os.Stat(dir); !os.IsNotExist(err) || cfg.JobName != "mine" {
		t.Errorf("the name is %q and the directory %v, want mine and none", cfg.JobName, err)
	}
}
