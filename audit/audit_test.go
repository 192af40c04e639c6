package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/audit"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
)

// harborJobs are job directories that Harbor wrote.
const harborJobs = "../jobdir/testdata/jobs"

func harborJob(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(harborJobs, name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

func check(t testing.TB, dir string, o audit.Options) *audit.Report {
	t.Helper()
	r, err := audit.Check(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func edit(t *testing.T, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%s does not have %s, or cannot be read: %v", path, from, err)
	}
	if err := os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestHarborJobs: nothing is found in what Harbor wrote.
func TestHarborJobs(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(filepath.Join(harborJobs, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(dirs, err)
	}
	for _, dir := range dirs {
		if r := check(t, dir, audit.Options{}); len(r.Findings) > 0 || r.Trials == 0 {
			t.Errorf("%s: %d trials, found %v", dir, r.Trials, r.Findings)
		}
	}
}

// TestWithoutJournal: what can be found where no journal helps.
func TestWithoutJournal(t *testing.T) {
	t.Parallel()
	const scored, other = "write-greeting__CWQUuue", "tenth__6fLdomV"
	for _, tt := range []struct {
		name   string
		tamper func(t *testing.T, dir string)
		want   audit.Kind
		says   string
	}{
		{"reward of one trial", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, scored, "result.json"), `"reward": 1.0`, `"reward": 0.9`)
		}, audit.Reward, `gives {"reward": 1.0}, result.json has {"reward": 0.9}`},
		{"reward file is gone", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, scored, "verifier", "reward.txt")); err != nil {
				t.Fatal(err)
			}
		}, audit.Reward, "gives no rewards"},
		{"reward file is a link out", func(t *testing.T, dir string) {
			path := filepath.Join(dir, scored, "verifier", "reward.txt")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "..", "elsewhere"), []byte("1"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, "..", "elsewhere"), path); err != nil {
				t.Fatal(err)
			}
		}, audit.Reward, "link out of the trial's directory"},
		{"agent of a trial", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, scored, "result.json"), `"name": "oracle"`, `"name": "nop"`)
		}, audit.Lock, `ran what lock.json does not plan: task "write-greeting", agent "nop"`},
		{"agent of the job", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "config.json"), `"name": "oracle"`, `"name": "nop"`)
		}, audit.Config, `ran with agent "oracle", which the job's config.json does not have`},
		{"checksum of a task", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, scored, "result.json"), `"task_checksum": "`, `"task_checksum": "0`)
		}, audit.Task, "ran another content of task"},
		{"removed trial", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, other)); err != nil {
				t.Fatal(err)
			}
		}, audit.Lock, `plans 1 trial of task "tenth" with agent "oracle" more than there are results`},
		{"removed result of the job", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "result.json")); err != nil {
				t.Fatal(err)
			}
		}, audit.Result, "is gone"},
		{"broken result of a trial", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, other, "result.json"), "{", "[")
		}, audit.Result, "of a trial cannot be read"},
		{"broken lock", func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "lock.json"), "{", "[") }, audit.Lock, "cannot be read"},
		{"times", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, scored, "result.json"), `"finished_at": "2`, `"finished_at": "1`)
		}, audit.Time, "finished (1"},
		{"configuration of a trial", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, scored, "config.json"), `"name": "oracle"`, `"name": "nop"`)
		}, audit.Config, "is not the configuration that its result.json has"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := harborJob(t, "mixed-oracle")
			tt.tamper(t, dir)
			r := check(t, dir, audit.Options{Manifest: true})
			if !slices.ContainsFunc(r.Findings, func(f audit.Finding) bool { return f.Kind == tt.want && strings.Contains(f.Message, tt.says) }) {
				t.Errorf("nothing of kind %s that says %q in %q", tt.want, tt.says, r.Findings)
			}
		})
	}
}

// TestJournalOfTheJob: entries and files of a job that proctor went on with.
func TestJournalOfTheJob(t *testing.T) {
	t.Parallel()
	dir := harborJob(t, "multi-oracle")
	digest := func(name string) *jobdir.FileDigest {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return new(jobdir.DigestOf(data))
	}
	trials, err := filepath.Glob(filepath.Join(dir, "*__*"))
	if err != nil || len(trials) != 2 {
		t.Fatal(trials, err)
	}
	entries := []journal.Entry{
		{Kind: journal.JobResumed, Schema: journal.Schema, Planned: 2},
		{Kind: journal.TrialKept, Trial: filepath.Base(trials[0]), ResultDigest: digest(filepath.Base(trials[0]) + "/result.json"), Rewarded: true},
		{Kind: journal.TrialKept, Trial: filepath.Base(trials[1]), ResultDigest: digest(filepath.Base(trials[1]) + "/result.json"), Rewarded: true},
		{Kind: journal.InputsWritten, ConfigDigest: digest("config.json"), LockDigest: digest("lock.json")},
		{Kind: journal.JobFinished, ResultDigest: digest("result.json")},
	}
	write := func(entries []journal.Entry) {
		if err := os.RemoveAll(filepath.Join(dir, journal.File)); err != nil {
			t.Fatal(err)
		}
		w, err := journal.Open(dir, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := w.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(entries)
	if r := check(t, dir, audit.Options{}); len(r.Findings) > 0 {
		t.Errorf("found %q", r.Findings)
	}
	// In a job that proctor began, no trial comes from elsewhere.
	began := slices.Clone(entries)
	began[0].Kind = journal.JobStarted
	write(began)
	if r := check(t, dir, audit.Options{}); len(r.Findings) != 2 || !strings.Contains(r.Findings[0].Message, "no run made it") {
		t.Errorf("found %q", r.Findings)
	}
	unchained := []string{`{"event":"job_resumed","n_trials":2}`, `{"event":"job_finished"}`}
	if err := os.WriteFile(filepath.Join(dir, journal.File), []byte(strings.Join(unchained, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := check(t, dir, audit.Options{}); !slices.ContainsFunc(r.Unchecked, func(s string) bool { return strings.Contains(s, "they do not name the lines before them") }) {
		t.Errorf("unchecked %q", r.Unchecked)
	}
}

// TestManifest: the same directory has the same manifest, and only it.
func TestManifest(t *testing.T) {
	t.Parallel()
	dir := harborJob(t, "mixed-oracle")
	text := func() []byte {
		data, err := check(t, dir, audit.Options{Manifest: true}).Manifest.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	data := text()
	if again := text(); !bytes.Equal(data, again) {
		t.Errorf("two manifests of one directory:\n%s\n%s", data, again)
	}
	m, err := audit.ParseManifest(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Trials) != 8 || len(m.Tasks) != 4 || len(m.Agents) != 1 || !strings.HasPrefix(m.ResultLine, "BASE_BENCHMARK_RESULT={") {
		t.Errorf("the manifest is\n%s", data)
	}
	if r := check(t, dir, audit.Options{Against: m}); len(r.Findings) > 0 {
		t.Errorf("found %q", r.Findings)
	}
	empty := filepath.Join(dir, m.Trials[0].Trial, "verifier", "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := check(t, dir, audit.Options{Against: m})
	if len(r.Findings) != 1 || r.Findings[0].File != m.Trials[0].Trial+"/verifier" || r.Findings[0].Kind != audit.Manifested {
		t.Errorf("found %q", r.Findings)
	}
	if err := os.RemoveAll(filepath.Join(dir, m.Trials[1].Trial)); err != nil {
		t.Fatal(err)
	}
	if r := check(t, dir, audit.Options{Against: m}); !slices.ContainsFunc(r.Findings, func(f audit.Finding) bool {
		return f.Trial == m.Trials[1].Trial && f.Message == "has this trial, the directory does not"
	}) {
		t.Errorf("found %q", r.Findings)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"schema":"proctor-audit-v1","trials":[{"trial":"a","rewards":null,"files":{"x":{"sha256":"","size":1}}}]}`))
	f.Add([]byte(`{"schema":"proctor-audit-v1","files":null,"trials":[{}]}`))
	dir := harborJob(f, "multi-oracle")
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := audit.ParseManifest(data)
		if err != nil {
			return
		}
		if _, err := m.AppendJSON(nil); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
		if r := check(t, dir, audit.Options{Against: m}); len(r.Findings) == 0 {
			t.Error("a manifest that is not the directory's fits")
		}
	})
}
