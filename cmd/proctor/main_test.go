package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"proctor": main})
}

// TestScripts runs the scenarios of testdata/script. In them, $HARBOR_JOBS holds
// job directories that Harbor wrote.
func TestScripts(t *testing.T) {
	t.Parallel()
	jobs, err := filepath.Abs(filepath.Join("..", "..", "job", "testdata", "jobs"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("HARBOR_JOBS", jobs)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"copydir":       copyDir,
			"edit":          edit,
			"proctor-exits": proctorExits,
		},
	})
}

// copyDir copies a directory: copydir FROM TO.
func copyDir(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: copydir FROM TO")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// edit replaces the first occurrence of a text in a file, which must be there:
// edit FILE OLD NEW.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if !bytes.Contains(data, []byte(args[1])) {
		ts.Fatalf("%s does not contain %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, bytes.Replace(data, []byte(args[1]), []byte(args[2]), 1), 0o600))
}

// proctorExits runs proctor and checks its exit code: proctor-exits CODE ARGS...
func proctorExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: proctor-exits CODE ARGS...")
	}
	err := ts.Exec("proctor", args[1:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("proctor exits with %d, not %s", got, args[0])
	}
}
