package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/internal/planted"
)

// canary is the text of a file of this machine that no command may print or copy.
const canary = "sk-canary-of-the-host"

// outsider is what a stranger puts in the place of a file. It is made at a path, with a
// file outside that it may lead to.
type outsider struct {
	name  string
	plant func(t *testing.T, path, outside string)
}

// outsiders are all that may stand there.
func outsiders() []outsider {
	list := []outsider{
		{"link to a file", func(t *testing.T, path, outside string) { made(t, os.Symlink(outside, path)) }},
		{"link to a directory", func(t *testing.T, path, outside string) { made(t, os.Symlink(filepath.Dir(outside), path)) }},
		{"device", plantDevice},
		{secondName, func(t *testing.T, path, outside string) { made(t, os.Link(outside, path)) }},
	}
	for _, kind := range planted.Kinds() {
		list = append(list, outsider{string(kind), func(t *testing.T, path, _ string) { kind.Put(t, path) }})
	}
	return list
}

func made(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// secondName is that of a file that somebody else may read too, as copies made with
// "cp -l" have it: it is read like any other, and not written to.
const secondName = "second name"

// plantDevice makes /dev/zero anew, where the tests may.
func plantDevice(t *testing.T, path, _ string) {
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
		made(t, os.Symlink("/dev/zero", path))
	}
}

const (
	plantedTrial   = "one-score__4Ucooi9"
	plantedAttempt = plantedTrial + "/attempts/1"
)

// plantedPaths are all that proctor opens below a job directory, and the directories
// on the way.
var plantedPaths = []string{
	"trials", "config.json", "lock.json", "result.json", "job.log", "journal.jsonl", "proctor.lock",
	plantedTrial, plantedTrial + "/config.json", plantedTrial + "/result.json", plantedTrial + "/proctor.json",
	plantedTrial + "/trial.log", plantedTrial + "/exception.txt", plantedTrial + "/steps.jsonl", plantedTrial + "/info.json",
	plantedTrial + "/egress.jsonl",
	plantedTrial + "/verifier", plantedTrial + "/verifier/reward.json", plantedTrial + "/verifier/reward.txt", plantedTrial + "/verifier/test-stdout.txt",
	plantedTrial + "/agent", plantedTrial + "/agent/trajectory.json", plantedTrial + "/agent/oracle.txt",
	plantedTrial + "/artifacts/manifest.json",
	plantedTrial + "/attempts", plantedAttempt, plantedAttempt + "/config.json", plantedAttempt + "/result.json",
	plantedTrial + "/steps",
}

// readingCommands are all that read a job or a trial, for its directory, and where they
// may write.
func readingCommands(dir, out string) [][]string {
	one := filepath.Join(dir, plantedTrial)
	return [][]string{
		{"job", "list", filepath.Dir(dir)}, {"job", "list", filepath.Dir(dir), "--json"},
		{"job", "show", dir}, {"job", "show", dir, "--json"}, {"job", "summarize", dir},
		{"job", "export", "--junit", filepath.Join(out, "junit.xml"), dir},
		{"job", "resume", dir, "--dry-run"}, {"job", "resume", dir, "-y", "-e", "host"},
		{"trial", "show", one}, {"trial", "show", one, "--json"},
		{"trial", "attach", one}, {"trial", "attach", one, "--no-follow", "--tail", "3"}, {"trial", "attach", dir},
		{"score", dir}, {"score", dir, "--check"}, {"score", dir, "--write"}, {"score", dir, "--json"},
		{"verify", dir}, {"verify", dir, "--json"}, {"verify", dir, "--audit", filepath.Join(out, "audit.json")},
		{"outcome", dir}, {"outcome", dir, "--explain"}, {"outcome", filepath.Join(dir, "result.json")},
		{"compare", dir, dir}, {"view", dir, "--export", filepath.Join(out, "pages")},
		{"traj", "show", one}, {"traj", "validate", dir}, {"traj", "export", dir},
		{"traj", "export", dir, "-o", filepath.Join(out, "rows.jsonl")},
		{"traj", "convert", "--agent", "claude-code", filepath.Join(one, "agent")},
		{"ownrunner", "judge", "--stdout", os.DevNull, "--exit-code", "0", "--attempt", "1", "--json", dir},
		{"gc", "--dry-run"},
	}
}

// TestPlantedInJobs: whatever stands in the place of a file in a job directory, each
// command ends, with what it can tell or with an error of one line, and no byte of a
// file elsewhere is printed, copied or changed.
func TestPlantedInJobs(t *testing.T) {
	t.Parallel()
	for _, o := range outsiders() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range plantedPaths {
				plantIn(t, path, o)
			}
		})
	}
}

func plantIn(t *testing.T, path string, o outsider) {
	t.Helper()
	base := t.TempDir()
	outside, out := filepath.Join(base, "outside", "secret.json"), filepath.Join(base, "out")
	dir := filepath.Join(base, "jobs", "multi-oracle")
	strangersJob(t, dir)
	for _, d := range []string{filepath.Dir(outside), out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := `{"reward": 1, "token": "` + canary + `"}` + "\n"
	if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	o.plant(t, at, outside)
	for _, args := range readingCommands(dir, out) {
		if o.name == string(planted.Pipe) && args[1] == "show" && args[0] == "traj" && path == plantedTrial {
			continue // a pipe that the user names is waited for
		}
		said := runPlanted(t, base, path, args)
		checkCanary(t, outside, out, secret, o.name, path, args)
		if o.name == secondName {
			continue
		}
		if strings.Contains(said, canary) {
			t.Errorf("%s, proctor %s: it prints the file outside:\n%s", path, strings.Join(args, " "), said)
		}
		names := args[0] == "score" || args[1] == "show" && args[0] != "traj"
		if path == plantedTrial+"/result.json" && names && !strings.Contains(said, plantedTrial) {
			t.Errorf("%s, proctor %s: it does not name the trial:\n%s", path, strings.Join(args, " "), said)
		}
	}
}

// strangersJob is a job of Harbor's with all that proctor and agents leave besides.
func strangersJob(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(jobtest.Fixture("multi-oracle"))); err != nil {
		t.Fatal(err)
	}
	trial := filepath.Join(dir, plantedTrial)
	for _, d := range []string{filepath.Join(dir, plantedAttempt), filepath.Join(trial, "steps")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	jobtest.Write(t, filepath.Join(trial, "agent", "trajectory.json"), []byte(jobtest.Read(t, filepath.Join("..", "..", "report", "testdata", "trajectory.json"))))
	for _, name := range []string{"config.json", "result.json"} {
		jobtest.Write(t, filepath.Join(dir, plantedAttempt, name), []byte(jobtest.Read(t, filepath.Join(trial, name))))
	}
}

// plantedLimit is far more than any of the commands needs.
const plantedLimit = time.Minute

// runPlanted returns what the command printed.
func runPlanted(t *testing.T, home, path string, args []string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	env := Env{
		Args: append([]string{"proctor"}, args...), Stdin: new(bytes.Buffer), Stdout: &stdout, Stderr: &stderr, Now: time.Now,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "PROCTOR_STATE_DIR=" + filepath.Join(home, "state"), "PROCTOR_CACHE_DIR=" + filepath.Join(home, "cache")},
	}
	done := make(chan int, 1)
	go func() { done <- Run(t.Context(), env) }()
	select {
	case <-done:
	case <-time.After(plantedLimit):
		t.Fatalf("%s, proctor %s: it does not end", path, strings.Join(args, " "))
	}
	said := stdout.String() + stderr.String()
	if strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
		t.Errorf("%s, proctor %s: it panics:\n%s", path, strings.Join(args, " "), said)
	}
	return said
}

// checkCanary looks whether the file outside is as it was, and nowhere else.
func checkCanary(t *testing.T, outside, out, secret, kind, path string, args []string) {
	t.Helper()
	if got, err := os.ReadFile(outside); err != nil || string(got) != secret {
		t.Fatalf("%s, proctor %s: the file outside is now %q, %v", path, strings.Join(args, " "), got, err)
	}
	entries, err := os.ReadDir(filepath.Dir(outside))
	if err != nil || len(entries) != 1 {
		t.Fatalf("%s, proctor %s: outside there are now %v, %v", path, strings.Join(args, " "), entries, err)
	}
	err = filepath.WalkDir(out, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if kind != secondName && bytes.Contains(data, []byte(canary)) {
			t.Errorf("%s, proctor %s: it copies the file outside to %s", path, strings.Join(args, " "), name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
