package harbor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

func TestValidityVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name            string
		Files           map[string]content
		Valid           json.RawMessage `json:"is_valid_dir"`
		ValidUnverified json.RawMessage `json:"is_valid_dir_verification_disabled"`
		Task            *struct {
			Name             string
			ShortName        string `json:"short_name"`
			HasSteps         bool   `json:"has_steps"`
			Instruction      string
			StepInstructions map[string]string `json:"step_instructions"`
		}
		Error *struct{ Type, Message string }
	}
	vector(t, "tasks/task-validity.json", &cases)
	for _, tt := range cases {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			tmp := realTempDir(t)
			dir := filepath.Join(tmp, "my-task")
			plant(t, dir, tt.Files)
			checkValid(t, dir, false, string(tt.Valid))
			checkValid(t, dir, true, string(tt.ValidUnverified))

			task, err := harbor.Load(dir, harbor.LoadOptions{})
			if tt.Error != nil {
				checkLoadError(t, err, tt.Error.Type, strings.ReplaceAll(tt.Error.Message, "<dir>", tmp))
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if task.Name != tt.Task.Name || task.ShortName != tt.Task.ShortName ||
				task.Config.HasSteps() != tt.Task.HasSteps || task.Instruction != tt.Task.Instruction {
				t.Errorf("loaded %q, %q, %v, %q; want %+v", task.Name, task.ShortName, task.Config.HasSteps(), task.Instruction, tt.Task)
			}
			for name, want := range tt.Task.StepInstructions {
				if got, err := task.StepInstruction(name); err != nil || got != want {
					t.Errorf("instruction of step %q: %q, %v; want %q", name, got, err, want)
				}
			}
		})
	}
	t.Logf("%d cases", len(cases))
}

// checkValid compares with true, false or "raises <exception>"; the exception
// reaches whoever discovers tasks.
func checkValid(t *testing.T, dir string, disableVerification bool, want string) {
	t.Helper()
	if strings.Contains(want, "raises UnicodeDecodeError") {
		if _, err := harbor.Discover(dir, disableVerification); !errors.Is(err, value.UnicodeDecodeError) {
			t.Errorf("discovery gives %v, want a UnicodeDecodeError", err)
		}
		want = "false"
	}
	if got := fmt.Sprint(harbor.IsValidDir(dir, disableVerification)); got != want {
		t.Errorf("valid with verification disabled %v: %s, want %s", disableVerification, got, want)
	}
}

func checkLoadError(t *testing.T, err error, typ, message string) {
	t.Helper()
	if typ == "ValidationError" {
		if err == nil || !strings.Contains(err.Error(), message+"\n") {
			t.Errorf("got %v, want %s", err, message)
		}
		return
	}
	assertRaised(t, err, typ, message)
}

func TestExtraInstructions(t *testing.T) {
	t.Parallel()
	home := realTempDir(t)
	dir := filepath.Join(home, "t")
	plantTask(t, dir, "")
	write(t, filepath.Join(home, "one.md"), []byte("\n# canary kept\r\n"), 0o644)
	write(t, filepath.Join(home, "two.md"), []byte("two"), 0o644)
	task, err := harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: []string{"~/one.md", filepath.Join(home, "two.md")}, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	if want := "Do it.\n\n\n\n# canary kept\n\n\ntwo"; task.Instruction != want {
		t.Errorf("instruction %q, want %q", task.Instruction, want)
	}
	_, err = harbor.Load(dir, harbor.LoadOptions{ExtraInstructions: []string{"~/none.md"}, Home: home})
	assertRaised(t, err, exception.FileNotFoundError, "Extra instruction file not found: ~/none.md")
}

// plantTask makes a valid task directory.
func plantTask(t testing.TB, dir, config string) {
	t.Helper()
	write(t, filepath.Join(dir, "task.toml"), []byte(config), 0o644)
	write(t, filepath.Join(dir, "instruction.md"), []byte("Do it.\n"), 0o644)
	write(t, filepath.Join(dir, "environment", "Dockerfile"), []byte("FROM debian\n"), 0o644)
	write(t, filepath.Join(dir, "tests", "test.sh"), []byte("true\n"), 0o644)
}

func TestPathsOfATask(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(realTempDir(t), "t")
	plantTask(t, dir, "[[steps]]\nname = \"own\"\n[[steps]]\nname = \"none\"\n")
	for _, file := range []string{"steps/own/instruction.md", "steps/own/tests/test.sh", "steps/own/solution/x", "steps/none/instruction.md"} {
		write(t, filepath.Join(dir, file), nil, 0o644)
	}
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own, none := &task.Config.Steps[0], &task.Config.Steps[1]
	got := []string{
		task.TestScript(own), task.TestScript(none), task.SolutionScript(own), task.SolutionScript(none), task.SolutionScript(nil),
		task.VerifierDir(own), task.VerifierDir(none), task.VerifierDir(nil), task.StepDir("/etc"), task.StepDir("../x"),
	}
	want := []string{
		dir + "/steps/own/tests/test.sh", dir + "/tests/test.sh", dir + "/steps/own/solution/solve.sh", dir + "/solution/solve.sh", dir + "/solution/solve.sh",
		dir + "/steps/own/tests", dir + "/tests", dir + "/tests", "/etc", dir + "/steps/../x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := task.HasDefinition(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, "environment", "Dockerfile")); err != nil {
		t.Fatal(err)
	}
	if err := task.HasDefinition(); err == nil || !strings.HasPrefix(err.Error(), "Task environment directory "+dir+"/environment has no environment definition. ") {
		t.Errorf("no definition: %v", err)
	}
}

func TestHugeAndOddFilesAreRefused(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(realTempDir(t), "t")
	plantTask(t, dir, "")
	path := filepath.Join(dir, "task.toml")
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skipf("this file system has no sparse files: %v", err)
	}
	if _, err := harbor.Load(dir, harbor.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a task.toml of one TiB: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/zero", path); err != nil {
		t.Fatal(err)
	}
	if _, err := harbor.Load(dir, harbor.LoadOptions{}); err == nil {
		t.Error("a device is read as task.toml")
	}
}

func ExampleLoad() {
	_, err := harbor.Load("no/such/task", harbor.LoadOptions{ExtraInstructions: []string{"no/such/file.md"}})
	fmt.Println(err)
	// Output: Extra instruction file not found: no/such/file.md
}
