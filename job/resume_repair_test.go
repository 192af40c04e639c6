package job_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// damage is what can happen to a file.
var damages = map[string]func(path string) error{
	"gone":  os.Remove,
	"empty": func(path string) error { return os.Truncate(path, 0) },
	"torn":  func(path string) error { return os.Truncate(path, 40) },
	"zeros": func(path string) error { return os.WriteFile(path, make([]byte, 4096), 0o644) },
}

// TestResumeRepairs damages each file of a finished job in each way: resuming
// makes it again of what the others know, or runs the one trial again.
func TestResumeRepairs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file string // TRIAL is a trial's directory
		said string // of what the file is made again; "" for nothing
		runs int    // trials that run again
	}{
		{"config.json", "config.json: rebuilt from the journal (", 0},
		{"result.json", "result.json: rebuilt from the trials (", 0},
		{"TRIAL/config.json", "config.json: rebuilt from the trial's result (", 0},
		{"TRIAL/result.json", "", 1},
		{"TRIAL/trial.log", "", 0},
		{"TRIAL/proctor.json", "", 0},
		{"job.log", "", 0},
	} {
		for how, damage := range damages {
			t.Run(tt.file+" "+how, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{
					fake.On("/tests/test.sh", fake.Each(fake.Exit(0), fake.Write("/logs/verifier/reward.txt", "1"))),
				}})
				h.cfg.NConcurrentTrials, h.cfg.Retry.MaxRetries, h.cfg.Retry.ExcludeExceptions = 1, 1, []string{}
				out := h.run(t)
				made := h.backend.Count(fake.OpCreate)
				before := dirTexts(t, h.dir())
				path := filepath.Join(h.dir(), strings.Replace(tt.file, "TRIAL", trialOf(t, out, "b"), 1))
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
				r, again := h.resume(t, h.dir(), resumeOptions())
				if n := h.backend.Count(fake.OpCreate) - made; n != tt.runs || len(r.Remaining) != tt.runs {
					t.Errorf("%d trials ran again, want %d: %v", n, tt.runs, r.Reruns)
				}
				if tt.said != "" && (len(r.Repaired) != 1 || !strings.Contains(r.Repaired[0], tt.said)) || tt.said == "" && len(r.Repaired) > 0 {
					t.Errorf("repaired %q, want %q", r.Repaired, tt.said)
				}
				checkWhole(t, h.dir(), 2)
				if again.Result.ID != out.Result.ID || again.Result.Stats.NRetries != out.Result.Stats.NRetries {
					t.Errorf("id %v and %d retries, want %v and %d", again.Result.ID, again.Result.Stats.NRetries, out.Result.ID, out.Result.Stats.NRetries)
				}
				after := dirTexts(t, h.dir())
				if base := filepath.Base(tt.file); base == scan.ConfigFile && after[path] != before[path] {
					t.Errorf("%s is now\n%s\nand was\n%s", tt.file, after[path], before[path])
				}
			})
		}
	}
}

// dirTexts reads all files of a directory.
func dirTexts(t *testing.T, dir string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		texts[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestResumeAfterAnyDamage damages any files at once. Only a lock that cannot be
// read, and a configuration that neither file nor journal has any more, stop a
// job; nothing that can be read runs again.
func TestResumeAfterAnyDamage(t *testing.T) {
	t.Parallel()
	data := writeDataset(t, "a", "b", "c")
	rapid.Check(t, func(rt *rapid.T) {
		h := newHarness(t, data, fake.Config{Rules: []fake.Rule{grant("1")}})
		h.run(t)
		made := h.backend.Count(fake.OpCreate)
		paths := slices.Sorted(func(yield func(string) bool) {
			for path := range dirTexts(t, h.dir()) {
				if filepath.Base(path) != scan.LockFile && !yield(path) {
					return
				}
			}
		})
		lost := map[string]bool{}
		damagedConfig, damagedJournal := false, false
		for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom(paths), 0, 5, rapid.ID).Draw(rt, "files") {
			how := rapid.SampledFrom([]string{"gone", "empty", "torn", "zeros"}).Draw(rt, "how")
			if err := damages[how](path); err != nil {
				rt.Fatal(err)
			}
			rel, _ := filepath.Rel(h.dir(), path) // it is below
			damagedConfig = damagedConfig || rel == scan.ConfigFile
			damagedJournal = damagedJournal || rel == journal.File
			if dir, name := filepath.Split(rel); name == scan.ResultFile && dir != "" {
				lost[dir] = true
			}
		}
		r, err := job.PrepareResume(h.dir(), resumeOptions())
		if damagedConfig && damagedJournal {
			if err == nil {
				rt.Errorf("it goes on with no configuration")
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := h.runner.Run(t.Context(), r.Prepared); err != nil {
			rt.Fatal(err)
		}
		if n := h.backend.Count(fake.OpCreate) - made; n != len(lost) {
			rt.Errorf("%d trials ran again, %d were lost", n, len(lost))
		}
		checkWhole(t, h.dir(), 3)
	})
}

// TestResumeTellsEditedFiles: what was edited is kept, and named.
func TestResumeTellsEditedFiles(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{grant("1")}})
	out := h.run(t)
	setException(t, filepath.Join(h.dir(), trialOf(t, out, "a")), "MyError")
	r, again := h.resume(t, h.dir(), resumeOptions())
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "was changed since, and is kept") || len(r.Remaining) > 0 {
		t.Errorf("warnings %q, remaining %v", r.Warnings, r.Remaining)
	}
	if again.Result.Stats.NErroredTrials != 1 {
		t.Errorf("stats %+v", again.Result.Stats)
	}

	h.cfg.NConcurrentTrials = 9
	path := filepath.Join(h.dir(), scan.ConfigFile)
	if err := os.WriteFile(path, h.cfg.AppendJSON(nil, noVariables), 0o644); err != nil {
		t.Fatal(err)
	}
	o := resumeOptions()
	if _, err := job.PrepareResume(h.dir(), o); err == nil || !strings.Contains(err.Error(), "n_concurrent_trials: 4 → 9 (does not change results)") {
		t.Errorf("the edited configuration gives %v", err)
	}
	o.AcceptHarmless = true
	r, _ = h.resume(t, h.dir(), o)
	if !slices.ContainsFunc(r.Warnings, func(w string) bool {
		return strings.HasPrefix(w, "config.json was changed since the job ran: n_concurrent_trials: 4 → 9")
	}) {
		t.Errorf("warnings %q", r.Warnings)
	}
	checkWhole(t, h.dir(), 2)
}

// TestResumeWithRedactedValues: commands get the values that the environment
// has, files keep the redacted text, and what is missing is named.
func TestResumeWithRedactedValues(t *testing.T) {
	t.Parallel()
	const secret = "sk-0123456789"
	var seen []string
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{
		Before: fake.FailAt(fake.OpCreate, 2, nil),
		Rules: []fake.Rule{fake.On("the-agent", func(_ context.Context, p *fake.Process) (int, error) {
			seen = append(seen, p.Env["API_KEY"]+" "+p.Env["MY_TOKEN"])
			return 0, nil
		}), grant("1")},
	})
	h.cfg.NConcurrentTrials = 1
	settings := value.NewObject(1)
	settings.Set("run", value.Str("the-agent"))
	h.cfg.Agents[0] = jobdir.AgentConfig{Name: new("command"), Kwargs: settings, Env: jobdir.EnvOf("API_KEY", secret, "MY_TOKEN", secret)}
	h.run(t)
	o := resumeOptions()
	o.Errored = true
	o.Lookup = func(name string) (string, bool) { return secret, name == "API_KEY" }
	h.runner.Trials.Lookup = o.Lookup
	r, _ := h.resume(t, h.dir(), o)
	if want := []string{"redacted in config.json, taken from the environment: agents[0].env.API_KEY", "agents[0].env.MY_TOKEN is redacted in config.json and not set"}; len(r.Warnings) != 2 || r.Warnings[0] != want[0] || !strings.HasPrefix(r.Warnings[1], want[1]) {
		t.Errorf("warnings %q", r.Warnings)
	}
	if want := []string{secret + " " + secret, secret + " sk-0****789"}; !slices.Equal(seen, want) {
		t.Errorf("the agents got %q", seen)
	}
	for path, text := range dirTexts(t, h.dir()) {
		if strings.Contains(text, secret) {
			t.Errorf("the secret is in %s", path)
		}
	}
	if r, err := job.PrepareResume(h.dir(), o); err != nil || len(r.Remaining) > 0 {
		t.Errorf("once more: %v", err)
	}
	checkWhole(t, h.dir(), 2)
}
