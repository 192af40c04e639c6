package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
)

// cliVector is one recorded command line of Harbor's run: either the config.json
// that came of it, or how it failed.
type cliVector struct {
	Input struct {
		Argv  []string          `json:"argv"`
		Files map[string]string `json:"files"`
	} `json:"input"`
	ExpectedText  *string `json:"expected_text"`
	ExpectedError *struct {
		ExitCode int    `json:"exit_code"`
		Message  string `json:"message"`
		// Output is what Harbor printed where it raised nothing.
		Output string `json:"output"`
	} `json:"expected_error"`
}

// message is the text of the error, whichever way Harbor told it.
func (v *cliVector) message() string {
	text := v.ExpectedError.Message + v.ExpectedError.Output
	for _, mark := range []string{"Error: ", "❌ "} {
		text = strings.TrimPrefix(text, mark)
	}
	return strings.TrimSuffix(text, "\n")
}

// TestCommandLineVectors compares command lines with the configurations that
// Harbor makes of them (Harbor job format, section 7.1).
//
// Exit codes differ by design: where Harbor leaves with 1 because of what the
// command line says, proctor leaves with 2. Where Harbor leaves with 2, only
// the code is compared: the text is its argument parser's.
func TestCommandLineVectors(t *testing.T) {
	const topic = "harbor-jobs/cli"
	names := vectors.Dir(t, topic, "*.json")
	for _, name := range names {
		var v cliVector
		if err := json.Unmarshal(vectors.File(t, topic+"/"+name), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			t.Chdir(t.TempDir())
			writeFiles(t, ".", v.Input.Files)
			if v.ExpectedError != nil {
				checkRefused(t, &v)
				return
			}
			got, err := configText(v.Input.Argv)
			if err != nil {
				t.Fatalf("%q: %v", v.Input.Argv, err)
			}
			if diff := cmp.Diff(*v.ExpectedText, got); diff != "" {
				t.Errorf("%q: config.json (-want +got):\n%s", v.Input.Argv, diff)
			}
		})
	}
	t.Logf("%d command lines", len(names))
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// standstill is the time of tests that a job name may come from.
func standstill() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local) }

// configText is the config.json of a command line "run …". A job name that the
// command line does not give is JOBNAME.
func configText(argv []string) (string, error) {
	env := &Env{Args: argv, Stderr: io.Discard, Now: standstill}
	cmd := &cobra.Command{Use: argv[0]}
	f := program(env).NewFlags()
	program(env).DefineRun(cmd, f, jobcli.DefineTasks)
	if err := cmd.ParseFlags(argv[1:]); err != nil {
		return "", err
	}
	if _, err := loadEnvFile(env, f.EnvFile); err != nil {
		return "", err
	}
	cfg, _, err := program(env).Merge(f)
	if err != nil {
		return "", err
	}
	if cfg.JobName == jobdir.NewConfig(standstill()).JobName {
		cfg.JobName = "JOBNAME"
	}
	return string(cfg.AppendJSON(nil, env.Lookup)), nil
}

// checkRefused runs the whole program on a command line that is wrong.
func checkRefused(t *testing.T, v *cliVector) {
	t.Helper()
	var stdout, stderr strings.Builder
	code := Run(t.Context(), Env{
		Args:   append([]string{"proctor"}, v.Input.Argv...),
		Stdin:  strings.NewReader(""),
		Stdout: &stdout, Stderr: &stderr,
		Now: standstill,
	})
	if code != exitUsage {
		t.Errorf("%q: exit code %d, want %d; it says %s", v.Input.Argv, code, exitUsage, stderr.String())
	}
	if want := "proctor: " + v.message() + "\n"; v.ExpectedError.ExitCode == 1 && !strings.HasPrefix(stderr.String(), want) {
		t.Errorf("%q: it says %q, want %q", v.Input.Argv, stderr.String(), want)
	}
	if stdout.Len() > 0 {
		t.Errorf("%q: standard output is %q", v.Input.Argv, stdout.String())
	}
	if _, err := os.Stat("jobs"); err == nil {
		t.Errorf("%q: there is a jobs directory although nothing was run", v.Input.Argv)
	}
}

// TestFlagSpellings holds that all spellings of a flag fill one value, and that
// numbers are read as Harbor's command line reads them.
func TestFlagSpellings(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ argv, same []string }{
		"mixed aliases": {
			[]string{"--ak", "a=1", "--agent-kwarg", "b=2", "--ak", "c=3", "-a", "nop"},
			[]string{"--ak", "a=1", "--ak", "b=2", "--ak", "c=3", "-a", "nop"},
		},
		"commas are no separators": {[]string{"-i", "a,b", "-d", "x"}, []string{"--include-task-name=a,b", "--dataset=x"}},
		"numbers":                  {[]string{"-k", " 1_0 ", "--timeout-multiplier", "1_0.5"}, []string{"-k", "10", "--timeout-multiplier", "10.5"}},
		"last one wins":            {[]string{"--no-delete", "--delete", "--mounts", "[", "--mounts-json", "[]"}, []string{"--delete", "--mounts", "[]"}},
		"switched off":             {[]string{"--delete=false", "--force-build=true"}, []string{"--no-delete", "--force-build"}},
		"policies in any case":     {[]string{"--cpus", "LIMIT"}, []string{"--cpus", "limit"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := configText(append([]string{"run"}, tt.argv...))
			if err != nil {
				t.Fatal(err)
			}
			want, err := configText(append([]string{"run"}, tt.same...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q differs from %q:\n%s", tt.argv, tt.same, diff)
			}
		})
	}
}
