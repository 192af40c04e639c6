package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/llm/llmtest"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/oci"
)

// TestMain is the program when the tests execute themselves under its name, and
// what the program executes itself as.
func TestMain(m *testing.M) {
	sandboxes.Reexec()
	testscript.Main(withCache{m}, map[string]func(){"proctor": main})
}

// withCache gives all tests one cache directory, so that what has to be built
// or unpacked is so once.
type withCache struct{ *testing.M }

// Run runs the tests.
func (m withCache) Run() int {
	dir, err := os.MkdirTemp("", "proctor-test")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Setenv("PROCTOR_CACHE_DIR", dir)); err != nil {
		log.Print(err)
		return 1
	}
	// The supervisor is built here for the scripts too, whose environment has
	// no place for a Go toolchain. That runc is missing does not matter.
	if _, closeBackend, err := sandboxes.New(context.Background(), sandbox.BackendHost, sandboxes.Options{Runtime: oci.RuntimeRunc}); err == nil {
		defer func() { _ = closeBackend() }()
	}
	programtest.Overlap()
	return m.M.Run()
}

// TestScripts runs the scenarios of testdata/script. In them, $HARBOR_JOBS holds
// job directories that Harbor wrote, $EXAMPLES the example tasks, and $MIRROR
// images for -e sandbox.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("HARBOR_JOBS", repositoryPath(t, "jobdir/testdata/jobs"))
			e.Setenv("EXAMPLES", repositoryPath(t, "examples/tasks"))
			e.Setenv("PROCTOR_STATE_DIR", filepath.Join(e.WorkDir, ".state"))
			e.Setenv("PROCTOR_CACHE_DIR", os.Getenv("PROCTOR_CACHE_DIR"))
			e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
			if os.Getenv(need.RootfsVar) == "" {
				return nil
			}
			dir, err := mirror()
			e.Setenv("MIRROR", dir)
			return err
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"copydir":       copyDir,
			"edit":          edit,
			"proctor-exits": proctorExits,
			"json-lines":    jsonLines,
			"count":         countMatches,
			"fake-model":    fakeModel,
		},
	})
}

// fakeModel serves the models of a script: fake-model FILE [KEY]. $MODEL is the address,
// without a version.
func fakeModel(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: fake-model file [key]")
	}
	script, err := llmtest.ParseScript([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	model := &llmtest.Server{Answer: script.Answer}
	if len(args) == 2 {
		model.Key = args[1]
	}
	server := httptest.NewServer(model)
	ts.Defer(server.Close)
	ts.Setenv("MODEL", server.URL)
}

// condition reports what this machine has: [host], where -e host works; [no-network],
// where it does and unshare gives a program a network without routes; [own-network], where
// root's sandboxes have one; [docker], where
// an engine answers and has the image of the examples; [python-image], where it has
// one with Python, too, [tmux-image] one with tmux; [rootfs], where $MIRROR has images;
// [python3] and [tmux], where the system has them, which is what sandboxes of -e host
// see; [patience], where tests may take minutes; [npm], where they may install packages of
// npm from its registry.
func condition(name string) (bool, error) {
	var err error
	switch name {
	case "host":
		err = hostSandboxes()
	case "docker":
		err = engineAnswers(exampleImage)
	case "python-image":
		err = engineAnswers(pythonImage)
	case "no-network":
		// Sandboxes of -e host work within a network that has nothing.
		if err = hostSandboxes(); err == nil {
			err = exec.Command("unshare", "--net", "true").Run()
		}
	case "own-network":
		if _, err = sandboxes.OwnNetwork(); err == nil && os.Geteuid() != 0 {
			err = errors.New("only root can make a network to be measured")
		}
	case "tmux-image":
		err = engineAnswers(terminalImage)
	case "tmux":
		_, err = os.Stat("/usr/bin/tmux")
	case "python3":
		_, err = os.Stat("/usr/bin/python3")
	case "patience", "npm":
		return need.Required(name), nil
	case "rootfs":
		if os.Getenv(need.RootfsVar) == "" {
			err = errors.New(need.RootfsVar + " is not set")
		}
	default:
		return false, fmt.Errorf("unknown condition %q", name)
	}
	if err != nil && need.Required(name) {
		return false, err
	}
	return err == nil, nil
}

// terminalImage is an image with tmux.
const terminalImage = "proctor-test/terminal"

// pythonImage is an image with Python.
const pythonImage = "python:3-slim"

// engineAnswers tells why there is no engine with an image.
func engineAnswers(image string) error {
	b, err := docker.New(docker.Options{Getenv: os.Getenv, Now: time.Now})
	if err != nil {
		return err
	}
	if err := b.Check(context.Background()); err != nil {
		return err
	}
	host := cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock")
	return need.EngineImage(host, image)
}

// repositoryPath finds a file of the repository.
func repositoryPath(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// hostSandboxes tells, once, why -e host does not work on this machine.
var hostSandboxes = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "proctor")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env := &Env{Environ: append(os.Environ(), "PROCTOR_STATE_DIR="+dir), Stderr: os.Stderr, Now: time.Now}
	ctx := context.Background()
	b, closeBackend, err := sandboxes.New(ctx, "host", backendOptions{}.in(env))
	if err != nil {
		return err
	}
	return errors.Join(b.Check(ctx), closeBackend())
})

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

// jsonLines checks that every line of a file, or of "stdout", is one JSON
// object, and that their types begin and end as given: json-lines FILE FIRST
// LAST.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: json-lines FILE FIRST LAST")
	}
	var types []string
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		var event struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			ts.Fatalf("line %d is not a JSON object: %v\n%s", len(types)+1, err, line)
		}
		types = append(types, event.Type)
	}
	if len(types) == 0 || types[0] != args[1] || types[len(types)-1] != args[2] {
		ts.Fatalf("events %q, want %s first and %s last", types, args[1], args[2])
	}
}

// countMatches checks how many lines of a file, or of "stdout", match: count N
// REGEXP FILE.
func countMatches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: count N REGEXP FILE")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	n := 0
	for line := range strings.Lines(ts.ReadFile(args[2])) {
		if re.MatchString(strings.TrimSuffix(line, "\n")) {
			n++
		}
	}
	if strconv.Itoa(n) != args[0] {
		ts.Fatalf("%d lines match %q, want %s", n, args[1], args[0])
	}
}
