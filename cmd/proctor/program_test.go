package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/value"
)

// place is where a test runs proctor as a process of its own: a working
// directory and a state directory that nobody else uses.
type place struct {
	dir, state string
}

func newPlace(t testing.TB) place {
	t.Helper()
	// The paths of sockets are short; those of t.TempDir are not.
	dir, err := os.MkdirTemp("", "pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("something of a sandbox is left: %v", err)
		}
	})
	return place{dir: dir, state: filepath.Join(dir, "state")}
}

// command prepares a run of proctor: this test program under that name.
func (p place) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err) // never on the systems that have sandboxes
	}
	cmd := exec.Command(self)
	cmd.Args = append([]string{"proctor"}, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PROCTOR_STATE_DIR="+p.state)
	return cmd
}

// finished is how a run of proctor ended.
type finished struct {
	code           int
	stdout, stderr string
}

func (p place) run(t testing.TB, args ...string) finished {
	t.Helper()
	return finish(t, p.command(args...))
}

func finish(t testing.TB, cmd *exec.Cmd) finished {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%q: %v", cmd.Args, err)
	} else if ok && exit.ExitCode() < 0 {
		t.Fatalf("%q: %v\n%s", cmd.Args, err, stderr.String())
	}
	return finished{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// exampleImage is what the examples, and the tasks of most tests, are made from.
const exampleImage = "debian:bookworm-slim"

// environment is one way to run trials.
type environment struct {
	name string
	args []string
	// need skips where it does not work.
	need func(testing.TB)
	// image: it takes images from mirrors, see [mirror].
	image bool
}

func environments() []environment {
	host := func(t testing.TB) {
		t.Helper()
		err := hostSandboxes()
		need.That(t, "host", err == nil, fmt.Sprintf("needs sandboxes on the host's own root: %v", err))
	}
	runc := func(t testing.TB) {
		t.Helper()
		host(t)
		need.Program(t, "runc")
	}
	engine := func(t testing.TB) {
		t.Helper()
		need.Image(t, exampleImage)
	}
	return []environment{
		{name: "host-gvisor", args: []string{"-e", "host", "--runtime", "gvisor"}, need: host},
		{name: "host-runc", args: []string{"-e", "host", "--runtime", "runc"}, need: runc},
		{name: "sandbox-gvisor", args: []string{"-e", "sandbox", "--runtime", "gvisor"}, need: host, image: true},
		{name: "sandbox-runc", args: []string{"-e", "sandbox", "--runtime", "runc"}, need: runc, image: true},
		{name: "docker", args: []string{"-e", "docker"}, need: engine},
	}
}

// oneIsEnough skips, without patience, all environments but the quickest one:
// for tests of what proctor does the same way whatever the sandbox is made of.
func (e environment) oneIsEnough(t testing.TB) {
	t.Helper()
	if !e.quickest() {
		need.Patience(t)
	}
}

// quickest reports whether no other environment of this machine is as quick.
func (e environment) quickest() bool {
	if _, err := exec.LookPath("runc"); err != nil {
		return e.name == "host-gvisor"
	}
	return e.name == "host-runc"
}

// flags are the arguments that choose the environment, after making sure that
// it works.
func (e environment) flags(t testing.TB) []string {
	t.Helper()
	e.need(t)
	if !e.image {
		return e.args
	}
	need.Rootfs(t)
	dir, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	return append(e.args[:len(e.args):len(e.args)], "--ek", "mirror="+dir)
}

// mirror is an OCI layout with the image that the examples are made from, made
// once of a root file system, in the directory that all tests share.
var mirror = sync.OnceValues(func() (string, error) {
	layer, err := tarball.LayerFromFile(os.Getenv(need.RootfsVar), tarball.WithCompressedCaching)
	if err != nil {
		return "", err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(os.Getenv("PROCTOR_CACHE_DIR"), "mirror")
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	name := map[string]string{"org.opencontainers.image.ref.name": exampleImage}
	return dir, path.AppendImage(img, layout.WithAnnotations(name))
})

// jobRecords reads the trials of a job by task name.
func jobRecords(t testing.TB, dir string) map[string]jobdir.Record {
	t.Helper()
	scanned, err := scan.Dir(context.Background(), dir)
	if err := errors.Join(append(scanned.Errors, err)...); err != nil {
		t.Fatal(err)
	}
	records := map[string]jobdir.Record{}
	for _, r := range scanned.Records {
		records[r.TaskName] = r.Record
	}
	return records
}

// jobResult reads what a job's result.json says.
func jobResult(t testing.TB, dir string) jobdir.Result {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	result, err := jobdir.ParseResult(data)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// outcomeText is the outcome of a trial in the words of its result.
func outcomeText(r jobdir.Record) string {
	var parts []string
	if r.Rewards != nil {
		parts = append(parts, string(value.AppendPydantic(nil, r.Rewards.Object(), 0)))
	}
	if r.ExceptionType != "" {
		parts = append(parts, r.ExceptionType)
	}
	return strings.Join(parts, " ")
}

// metricsText is the metrics of all groups of a job, in order.
func metricsText(r jobdir.Result) string {
	var b strings.Builder
	for key, e := range r.Stats.Evals.All() {
		fmt.Fprintf(&b, "%s: %d trials, %d errors", key, e.NTrials, e.NErrors)
		for _, m := range e.Metrics {
			fmt.Fprintf(&b, " %s", value.AppendPydantic(nil, m, 0))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// onlyTrial reads the result of a job's only trial.
func onlyTrial(t testing.TB, dir string) (name string, result jobdir.TrialResult) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", scan.ResultFile))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d trials in %s, want 1 (%v)", len(found), dir, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	result, err = jobdir.ParseTrialResult(data)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(filepath.Dir(found[0])), result
}
