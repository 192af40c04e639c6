package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// frontDoor is a socket before the engine's that can be taken away.
type frontDoor struct {
	path     string
	engine   string
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	shut  bool
}

func newFrontDoor(t *testing.T, dir string) *frontDoor {
	t.Helper()
	d := &frontDoor{path: filepath.Join(dir, "engine.sock"), engine: strings.TrimPrefix(need.Docker(t), "unix://")}
	var err error
	if d.listener, err = net.Listen("unix", d.path); err != nil {
		t.Fatal(err)
	}
	d.wg.Go(d.serve)
	t.Cleanup(d.vanish)
	return d
}

func (d *frontDoor) serve() {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		engine, err := net.Dial("unix", d.engine)
		if err != nil || !d.enter(conn, engine) {
			_ = conn.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{conn, engine}, {engine, conn}} {
			d.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_ = pair[0].(*net.UnixConn).CloseWrite()
			})
		}
	}
}

func (d *frontDoor) enter(conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conns...)
	return !d.shut
}

// vanish takes the socket away and cuts all connections.
func (d *frontDoor) vanish() {
	_ = d.listener.Close() // which removes the file
	d.mu.Lock()
	d.shut = true
	for _, c := range d.conns {
		_ = c.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}

func TestDockerSocketThatVanishes(t *testing.T) {
	t.Parallel()
	need.Image(t, exampleImage)
	p := newPlace(t)
	door := newFrontDoor(t, p.dir)
	for _, name := range []string{"a-first", "b-second"} {
		writeFiles(t, filepath.Join(p.dir, "tasks", name), map[string]string{
			"task.toml": "", "instruction.md": "Stand still.\n",
			"environment/Dockerfile": "FROM debian:bookworm-slim\nWORKDIR /app\n",
			"solution/solve.sh":      standStill("agent"), "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
		})
	}
	r := &running{cmd: p.command("run", "-p", "tasks", "-n", "1", "-e", "docker", "--job-name", "j", "--json"), job: filepath.Join(p.dir, "jobs", "j"), ended: make(chan struct{}), engine: true}
	r.cmd.Env = append(r.cmd.Env, "DOCKER_HOST=unix://"+door.path)
	r.stderr = filepath.Join(p.dir, "stderr")
	stderr, err := os.Create(r.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stderr.Close() }()
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, stderr
	r.begin(t, p)
	r.await(t, p, "agent/here")
	door.vanish()
	<-r.ended
	if code := r.cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("exit code %d, want 3\n%s", code, r.said())
	}
	result := jobResult(t, r.job)
	if s := result.Stats; result.FinishedAt == nil || s.NCompletedTrials != 2 || s.NErroredTrials != 2 {
		t.Errorf("stats %+v", s)
	}
	for name, rec := range jobRecords(t, r.job) {
		// What had a container has lost it, what wanted one finds no engine.
		if got := outcomeText(rec); got != "RuntimeError" && got != "SandboxLostError" {
			t.Errorf("%s: %s, want an error and no reward", name, got)
		}
	}
	messages := trialMessages(t, r.job)
	if !strings.Contains(messages, "engine") && !strings.Contains(messages, "connect") {
		t.Errorf("no message tells what is gone:\n%s", messages)
	}
	checkWhole(t, r.job)

	// With the engine there again the next command takes away what was left.
	if left := r.containers(t); len(left) == 0 {
		t.Error("nothing is left behind an engine that is gone: the test proves nothing")
	}
	if done := finish(t, p.command("gc")); done.code != 0 {
		t.Errorf("gc exits with %d\n%s%s", done.code, done.stdout, done.stderr)
	}
	if left := r.containers(t); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}

// trialMessages are the exceptions of a job's trials.
func trialMessages(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*__*", scan.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := jobdir.ParseTrialResult(data)
		if err != nil {
			t.Fatal(err)
		}
		if r.ExceptionInfo != nil {
			fmt.Fprintf(&all, "%s: %s\n", r.TrialName, r.ExceptionInfo.Message)
		}
	}
	return all.String()
}

// checkWhole fails the test when a JSON file of a job is half written.
func checkWhole(t *testing.T, dir string) {
	t.Helper()
	cmdFiles, err := filepath.Glob(filepath.Join(dir, "*"))
	trialFiles, err2 := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	n := 0
	for _, path := range append(cmdFiles, trialFiles...) {
		if filepath.Ext(path) != ".json" {
			continue
		}
		n++
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 || !json.Valid(data) {
			t.Errorf("%s is not whole: %v", path, err)
		}
	}
	if n < 4 {
		t.Errorf("%d JSON files in %s", n, dir)
	}
}

// busyRegistry answers 429 to the first requests of each kind.
func busyRegistry(t *testing.T, refusals int64) (host string, refused *atomic.Int64) {
	t.Helper()
	refused = &atomic.Int64{}
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var open atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") && refused.Add(1) <= refusals {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	layer, err := tarball.LayerFromFile(need.Rootfs(t), tarball.WithCompressedCaching)
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/task:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	open.Store(true)
	return host, refused
}

func TestRegistryThatIsBusyAndRecovers(t *testing.T) {
	t.Parallel()
	need.Rootfs(t)
	for _, e := range environments() {
		if e.name != "sandbox-runc" {
			continue
		}
		e.need(t)
		p := newPlace(t)
		host, refused := busyRegistry(t, 2)
		writeFiles(t, filepath.Join(p.dir, "task"), map[string]string{
			"task.toml": fmt.Sprintf("[environment]\ndocker_image = \"%s/task:1\"\n", host), "instruction.md": "Do it.\n",
			"environment/keep": "", "solution/solve.sh": "true\n", "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
		})
		done := p.run(t, append([]string{"run", "-p", "task", "-a", "oracle", "--job-name", "j", "-q", "--fail-under", "1"}, e.args...)...)
		if done.code != 0 {
			t.Errorf("exit code %d\n%s%s", done.code, done.stderr, trialMessages(t, filepath.Join(p.dir, "jobs", "j")))
		}
		if n := refused.Load(); n < 3 {
			t.Errorf("the registry was asked %d times, want it to refuse twice", n)
		}
		checkWhole(t, filepath.Join(p.dir, "jobs", "j"))
	}
}

// TestFullDiskOnTheCommandLine: proctor fails itself, says why in one line, and
// goes on when there is room.
func TestFullDiskOnTheCommandLine(t *testing.T) {
	t.Parallel()
	need.Root(t)
	e := environments()[1]
	flags := e.flags(t)
	p := newPlace(t)
	disk := filepath.Join(p.dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=300k"); err != nil {
		need.That(t, "mount", false, "needs to mount file systems: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"a", "b", "c"} {
		writeFiles(t, filepath.Join(p.dir, "tasks", name), map[string]string{
			"task.toml": "", "instruction.md": "Fill it.\n", "environment/Dockerfile": "FROM debian:bookworm-slim\n",
			"solution/solve.sh": "head -c 200000 /dev/zero > /logs/agent/zeros 2> /dev/null\n", "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
		})
	}
	done := p.run(t, append([]string{"run", "-p", "tasks", "-a", "oracle", "-n", "1", "-o", disk, "--job-name", "j", "-q"}, flags...)...)
	if done.code != exitFailed || !strings.Contains(done.stderr, "no space left on device") {
		t.Errorf("exit code %d, want %d\n%s", done.code, exitFailed, done.stderr)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", unix.MS_REMOUNT, "size=16m"); err != nil {
		t.Fatal(err)
	}
	args := []string{"job", "resume", "-p", filepath.Join(disk, "j"), "--retry-errored", "--retry-unscored"}
	if done := p.run(t, append(args, flags[2:]...)...); done.code != 0 {
		t.Errorf("with room again: exit code %d\n%s", done.code, done.stderr)
	}
	if s := jobResult(t, filepath.Join(disk, "j")).Stats; s.NCompletedTrials != 3 || s.NErroredTrials != 0 {
		t.Errorf("stats %+v", s)
	}
	checkWhole(t, filepath.Join(disk, "j"))
}
