package docker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// testImage is made by .ci/base-image.
const testImage = "debian:12"

// newBackend returns the backend of the engine that is there and has the image.
func newBackend(t testing.TB) *docker.Backend {
	t.Helper()
	b, err := docker.New(docker.Options{
		Engine: need.Image(t, testImage), Getenv: os.Getenv, Guest: guestOf(t), Build: version.Current().ID(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func labels(t testing.TB) sandbox.Labels {
	t.Helper()
	self, err := procid.Self()
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Labels{Job: "test", Trial: trialOf(t), Owner: self}
}

// thisRun tells the tests of this process from those of another that uses the
// same engine.
var thisRun = strconv.FormatInt(time.Now().UnixNano(), 36)

// trialOf names what a test makes in the engine.
func trialOf(t testing.TB) string { return t.Name() + "-" + thisRun }

func TestContract(t *testing.T) {
	t.Parallel()
	need.Image(t, testImage)
	world := &sandboxtest.World{}
	sandboxtest.Run(t, sandboxtest.Config{
		New:   func(t testing.TB) sandbox.Backend { return newBackendIn(t, world) },
		World: world,
		Spec:  sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(t)},
	})
}

// newBackendIn returns a backend whose egress proxy reaches a test's world.
func newBackendIn(t testing.TB, world *sandboxtest.World) *docker.Backend {
	t.Helper()
	b, err := docker.New(docker.Options{
		Engine: need.Image(t, testImage), Getenv: os.Getenv, Egress: world.Upstream(),
		Guest: guestOf(t), Build: version.Current().ID(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkEgress(b *testing.B) {
	need.Image(b, testImage)
	world := &sandboxtest.World{}
	sandboxtest.BenchmarkEgress(b, sandboxtest.Config{
		New:   func(t testing.TB) sandbox.Backend { return newBackendIn(t, world) },
		World: world,
		Spec:  sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(b)},
	}, "172.17.0.1") // the engine's default bridge
}

// guestOf returns how a backend finds the guest program.
func guestOf(t testing.TB) func(context.Context, string) (string, error) {
	t.Helper()
	program := guestProgram(t)
	return func(context.Context, string) (string, error) { return program, nil }
}

// guestBuild is the guest program, built once for all tests.
var guestBuild struct {
	once sync.Once
	dir  string
	err  error
}

// testGuest is an environment variable: the guest program that a test program has
// built for those that it starts.
const testGuest = "PROCTOR_TEST_GUEST"

// TestMain removes the guest program that the tests built.
func TestMain(m *testing.M) {
	programtest.Overlap()
	code := m.Run()
	removeBuilt()
	if guestBuild.dir != "" {
		_ = os.RemoveAll(guestBuild.dir)
	}
	os.Exit(code)
}

func guestProgram(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(testGuest); path != "" {
		return path
	}
	tool := need.Program(t, "go")
	guestBuild.once.Do(func() {
		if guestBuild.dir, guestBuild.err = os.MkdirTemp("", "proctor-guest-"); guestBuild.err != nil {
			return
		}
		guestBuild.err = os.Chmod(guestBuild.dir, 0o755)
		cmd := exec.Command(tool, "build", "-buildvcs=false", "-ldflags", "-s -w "+version.Current().LinkerFlags(),
			"-o", filepath.Join(guestBuild.dir, "proctor-guest"), "github.com/proctor-run/proctor/cmd/proctor-guest")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := cmd.CombinedOutput(); err != nil {
			guestBuild.err = fmt.Errorf("building the guest program: %w: %s", err, out)
		}
	})
	if guestBuild.err != nil {
		t.Fatal(guestBuild.err)
	}
	return filepath.Join(guestBuild.dir, "proctor-guest")
}

// guestFor lets a test program that t starts use the guest program of this one.
func guestFor(t testing.TB) string { return testGuest + "=" + guestProgram(t) }
