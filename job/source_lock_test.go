package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// TestResumeWithChangedSources goes on with a job whose git task and skill are
// the same, and refuses when either has another content.
func TestResumeWithChangedSources(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "tasks/a")
	commit := r.Git("rev-parse", "HEAD")
	skill := filepath.Join(t.TempDir(), "greet")
	writeSkill := func(text string) {
		if err := errors.Join(os.MkdirAll(skill, 0o755), os.WriteFile(filepath.Join(skill, "SKILL.md"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	writeSkill("hello")
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{gitTask(r.URL(), "tasks/a", nil)}
	cfg.Agents[0].Skills = []string{skill}
	o := sourceOptions(t)
	p, err := job.Prepare(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	locked := p.Lock.Trials[0]
	if locked.Task.GitCommitID == nil || *locked.Task.GitCommitID != commit || *locked.Task.GitURL != r.URL() || *locked.Task.Path != "tasks/a" {
		t.Errorf("locked task is %+v", locked.Task)
	}
	if len(locked.Skills) != 1 || locked.Skills[0].Name != "greet" || locked.Skills[0].Source != skill || !strings.HasPrefix(locked.Skills[0].Digest, "sha256:") {
		t.Errorf("locked skills are %+v", locked.Skills)
	}
	if dir, err := p.TaskDir(p.Trials[0].Task); err != nil || jobtest.Instruction(t, dir) != "Do tasks/a" {
		t.Errorf("the task is in %q, %v", dir, err)
	}
	if err := errors.Join(
		os.MkdirAll(cfg.Dir(), 0o755),
		os.WriteFile(filepath.Join(cfg.Dir(), scan.ConfigFile), cfg.AppendJSON(nil, o.Lookup), 0o644),
		os.WriteFile(filepath.Join(cfg.Dir(), scan.LockFile), p.Lock.AppendJSON(nil, o.Lookup), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	const refused = "already has a lock.json that does not match the resolved job lock."
	check := func(when string, want string) {
		t.Helper()
		_, err := job.Prepare(cfg, o)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", when, err, want)
		}
	}
	check("nothing has changed", "")
	later := o
	later.Now, later.Invocation = o.Now.Add(time.Hour), []string{"proctor", "again"}
	if again, err := job.Prepare(cfg, later); err != nil || again.Lock.CreatedAt != p.Lock.CreatedAt || len(again.Lock.Invocation) != len(p.Lock.Invocation) {
		t.Errorf("the lock is %+v, %v: it does not keep when the job was begun", again.Lock, err)
	}
	r.Commit()
	check("another commit with the same task", "")
	writeSkill("good bye")
	check("another skill", refused+"\n  task \"a\": skills[0].digest: \"sha256:")
	writeSkill("hello")
	check("the skill as it was", "")
	jobtest.WriteTask(t, filepath.Join(r.Dir, "tasks", "a"), "Changed")
	r.Commit()
	check("another commit with another task", refused+"\n  task \"a\": task.digest: \"sha256:")
}

// TestBrokenSkill stops a job before anything runs.
func TestBrokenSkill(t *testing.T) {
	t.Parallel()
	task := filepath.Join(t.TempDir(), "task")
	jobtest.WriteTask(t, task, "x")
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{{Path: &task}}
	cfg.Agents[0].Skills = []string{filepath.Join(t.TempDir(), "nowhere")}
	_, err := job.Prepare(cfg, sourceOptions(t))
	if err == nil || !strings.Contains(err.Error(), "Skill path does not exist") {
		t.Errorf("got %v", err)
	}
}

// TestNotFetched says what is missing when nobody can fetch.
func TestNotFetched(t *testing.T) {
	t.Parallel()
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{gitTask("https://h/r", "a", nil)}
	o := sourceOptions(t)
	o.Fetch = nil
	if _, err := job.Prepare(cfg, o); err == nil || !strings.Contains(err.Error(), "nothing here fetches them") {
		t.Errorf("got %v", err)
	}
}

// TestLockNamesTasksByDirectory: locks call a task what filters call it, the
// resolved directory's name or the last part of the path in a repository, and
// not what its task.toml says (Harbor job format, sections 2.2 and 6.3).
func TestLockNamesTasksByDirectory(t *testing.T) {
	t.Parallel()
	r := jobtest.NewGitRepo(t, "tasks/in-git")
	dir := t.TempDir()
	local := filepath.Join(dir, "Local.Name_1")
	link := filepath.Join(dir, "link")
	jobtest.WriteTask(t, local, "x")
	named := []byte("[task]\nname = \"org/named\"\n")
	if err := errors.Join(
		os.Symlink(local, link),
		os.WriteFile(filepath.Join(local, "task.toml"), named, 0o644),
		os.WriteFile(filepath.Join(r.Dir, "tasks/in-git/task.toml"), named, 0o644),
	); err != nil {
		t.Fatal(err)
	}
	r.Commit()
	cfg := sourcesConfig(t, t.TempDir())
	cfg.Tasks = []jobdir.TaskConfig{{Path: &local}, {Path: &link}, gitTask(r.URL(), "tasks/in-git", nil)}
	p, err := job.Prepare(cfg, sourceOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, locked := range p.Lock.Trials {
		got = append(got, locked.Task.Name)
	}
	if want := []string{"Local.Name_1", "Local.Name_1", "in-git"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
