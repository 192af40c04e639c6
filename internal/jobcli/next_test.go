package jobcli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/jobdir"
)

// TestResumeCommand: the command names absolute paths, quoted, and goes to where the job
// was started when its tasks are only found from there.
func TestResumeCommand(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := func(p string) []jobdir.TaskConfig { return []jobdir.TaskConfig{{Path: &p}} }
	for name, c := range map[string]struct {
		dir, jobsDir string
		tasks        []jobdir.TaskConfig
		here         bool
		more         []string
		want         string
	}{
		"absolute tasks":              {"/w/jobs/j", "jobs", path("/t"), false, nil, "again /w/jobs/j"},
		"relative tasks":              {"/w/jobs/j", "jobs", path("t"), false, nil, "cd /w && again /w/jobs/j"},
		"quotes":                      {"/w x/my jobs/j", "my jobs", path("t"), false, nil, "cd '/w x' && again '/w x/my jobs/j'"},
		"a relative directory":        {"jobs/j", "jobs", path("/t"), false, nil, "again " + filepath.Join(here, "jobs/j")},
		"of this process":             {"/elsewhere/j", "/elsewhere", path("t"), true, []string{"--runtime", "runc"}, "cd " + here + " && again /elsewhere/j --runtime runc"},
		"moved":                       {"/v/old/j", "jobs", path("t"), false, nil, "again /v/old/j"},
		"started who knows where":     {"/w/jobs/j", "/w/jobs", path("t"), false, nil, "again /w/jobs/j"},
		"tasks of a cube":             {"/w/jobs/j", "jobs", path("cube/arithmetic-cube/add-1"), false, nil, "again /w/jobs/j"},
		"nothing but terminal tricks": {"/w/\x1b[2J/j", "/w", nil, false, nil, "again '/w/\ufffd[2J/j'"},
	} {
		cfg := jobdir.Config{JobName: "j", JobsDir: c.jobsDir, Tasks: c.tasks}
		if got := jobcli.ResumeCommand("again", c.dir, cfg, c.here, c.more...); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}
