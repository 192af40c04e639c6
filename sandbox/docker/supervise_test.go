package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/egress"
)

// besides are backends whose containers do not get their supervisor by a mount
// of the test's own program, by what keeps them from it.
func besides(t *testing.T) map[string]*docker.Backend {
	t.Helper()
	program := guestProgram(t)
	// The engine does not see the program at this path, which this process has
	// open.
	f, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	hidden := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	// The processor is a number in a program's head.
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	text[18] ^= 0x40
	foreign := filepath.Join(t.TempDir(), "proctor-guest")
	if err := os.WriteFile(foreign, text, 0o755); err != nil {
		t.Fatal(err)
	}
	backends := map[string]*docker.Backend{}
	for name, find := range map[string]func(context.Context, string) (string, error){
		"copied":            func(context.Context, string) (string, error) { return hidden, nil },
		"none":              nil,
		"not to be found":   func(context.Context, string) (string, error) { return "", errors.New("it is lost") },
		"another machine's": func(context.Context, string) (string, error) { return foreign, nil },
		"another build's":   func(context.Context, string) (string, error) { return program, nil },
	} {
		build := version.Current().ID()
		if name == "another build's" {
			build = "another build"
		}
		b, err := docker.New(docker.Options{Engine: need.Image(t, testImage), Getenv: os.Getenv, Guest: find, Build: build})
		if err != nil {
			t.Fatal(err)
		}
		backends[name] = b
	}
	return backends
}

// reaching is what a process that is root in a container may try against its
// supervisor. It says what it achieved.
const reaching = `
kill -9 1; kill -STOP 1; kill -TERM 1; kill -SEGV 1
head -c 1 /proc/1/mem >/dev/null 2>&1 && echo "reads its memory"
[ -n "$(ls -l /proc/1/fd 2>/dev/null | grep -e '->')" ] && echo "sees its descriptors"
(echo x >/proc/1/fd/0) 2>/dev/null && echo "writes to its input"
(echo x >/proc/1/fd/1) 2>/dev/null && echo "writes to its output"
(echo x >>/proc/1/exe) 2>/dev/null && echo "writes its program"
readlink /proc/1/exe >/dev/null && echo "sees its program"
(echo 999 >/proc/1/oom_score_adj) 2>/dev/null
true`

func TestSupervisorIsOutOfReach(t *testing.T) {
	t.Parallel()
	backends := map[string]*docker.Backend{"mounted": newBackend(t), "copied": besides(t)["copied"]}
	for name, b := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sb := create(t, b, base())
			if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionGuest {
				t.Fatalf("supervision %q", s)
			}
			if got := output(t, sb, sandbox.Command{Shell: reaching, User: "root"}); got != "" {
				t.Errorf("root in the container %s", strings.ReplaceAll(got, "\n", ", "))
			}
			// Whatever becomes of the file, the supervisor goes on.
			status, err := sb.Exec(t.Context(), sandbox.Command{Shell: "echo forged >/.proctor/proctor-guest; umount /.proctor/proctor-guest; rm -rf /.proctor; true"})
			if err != nil || status.Code != 0 {
				t.Error(status, err)
			}
			output(t, sb, sandbox.Command{Shell: "(trap '' TERM; setsid sleep 1000 & setsid sleep 1000 &) >/dev/null 2>&1; true"})
			mark, err := sb.Mark(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			output(t, sb, sandbox.Command{Shell: "setsid sleep 2000 >/dev/null 2>&1 & true"})
			if err := sb.KillTree(t.Context(), mark, 10*time.Millisecond); err != nil {
				t.Error(err)
			}
			procs, err := sb.(sandbox.ProcessLister).Processes(t.Context())
			if err != nil || len(procs) != 3 {
				t.Errorf("%d processes, want the supervisor and two: %+v, %v", len(procs), procs, err)
			}
			program, err := os.ReadFile(guestProgram(t))
			if err != nil || bytes.Contains(program, []byte("forged\n")) {
				t.Errorf("the program on the host was changed: %v", err)
			}
		})
	}
}

// Where no supervisor can be had, the engine alone does what it can, and a
// person is told.
func TestEngineAloneWhereThereIsNoSupervisor(t *testing.T) {
	t.Parallel()
	for name, b := range besides(t) {
		if name == "copied" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said []string
			spec := base()
			spec.Warn = func(m string) { said = append(said, m) }
			sb := create(t, b, spec)
			if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionEngine {
				t.Fatalf("supervision %q", s)
			}
			if len(said) != 1 || !strings.Contains(said[0], "supervised by the container engine alone") {
				t.Errorf("said %q", said)
			}
			if _, err := sb.(sandbox.ProcessLister).Processes(t.Context()); !errors.Is(err, sandbox.ErrUnsupported) {
				t.Errorf("a list of processes: %v", err)
			}
			if _, err := sb.(egress.Listener).Listen(t.Context()); !errors.Is(err, sandbox.ErrUnsupported) {
				t.Errorf("a listener: %v", err)
			}
			if got := output(t, sb, sandbox.Command{Shell: "cat; echo $A; id -u", Env: []string{"A=1"}, User: "daemon", Stdin: strings.NewReader("in\n")}); got != "in\n1\n1" {
				t.Errorf("got %q", got)
			}
			if err := sandbox.UploadBytes(t.Context(), sb, []byte("kept"), "/d/file", 0o644); err != nil {
				t.Error(err)
			}
			mark, err := sb.Mark(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The shell that could lie about it is the agent's own.
			output(t, sb, sandbox.Command{Shell: `cp /bin/bash /tmp/own; printf '#!/tmp/own\necho left 0\n' >/tmp/sh; chmod 755 /tmp/sh
(trap '' TERM; setsid sleep 1000 &) >/dev/null 2>&1 </dev/null; mv /tmp/sh /usr/bin/kill`})
			if err := sb.KillTree(t.Context(), mark, 10*time.Millisecond); err != nil {
				t.Error(err)
			}
			if got := output(t, sb, sandbox.Command{Shell: `for p in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$p; echo; done | grep -c '^sleep 1000'; cat /d/file`}); got != "0\nkept" {
				t.Errorf("got %q, want no process and the file", got)
			}
			st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "sleep 1000", Timeout: 100 * time.Millisecond})
			if err != nil || !st.TimedOut {
				t.Errorf("a command whose time is up: %+v, %v", st, err)
			}
			output(t, sb, sandbox.Command{Shell: "true"})
		})
	}
}

// A sandbox that somebody else ends is an error of its own, at once.
func TestLostContainers(t *testing.T) {
	t.Parallel()
	now := 0
	for name, c := range map[string]struct {
		end  func(api *client.Client, id string) error
		want string
	}{
		"stopped": {func(api *client.Client, id string) error {
			_, err := api.ContainerStop(t.Context(), id, client.ContainerStopOptions{Timeout: &now})
			return err
		}, "stopped the container"},
		"removed": {func(api *client.Client, id string) error {
			_, err := api.ContainerRemove(t.Context(), id, client.ContainerRemoveOptions{Force: true})
			return err
		}, "removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sb := create(t, newBackend(t), base())
			ready := newAwait("ready\n")
			ended := make(chan error, 1)
			go func() {
				_, err := sb.Exec(t.Context(), sandbox.Command{Shell: "echo ready; exec sleep 1000", Stdout: ready})
				ended <- err
			}()
			<-ready.seen
			if err := c.end(api(t), sb.ID()); err != nil {
				t.Fatal(err)
			}
			var lost *sandbox.LostError
			select {
			case err := <-ended:
				if !errors.As(err, &lost) || !strings.Contains(lost.Reason, c.want) && name != "removed" {
					t.Errorf("the command under way: %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the command under way hangs")
			}
			if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "true"}); !errors.As(err, &lost) {
				t.Errorf("the next command: %v", err)
			}
			if _, err := sb.Mark(t.Context()); !errors.As(err, &lost) {
				t.Errorf("a mark: %v", err)
			}
			if err := sb.Upload(t.Context(), "/x", strings.NewReader("")); !errors.As(err, &lost) {
				t.Errorf("an upload: %v", err)
			}
			if err := sb.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What passes over the connection is not written to the engine's disk.
func TestNothingIsLogged(t *testing.T) {
	t.Parallel()
	sb := create(t, newBackend(t), base())
	r, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Container.HostConfig.LogConfig; got.Type != "none" || r.Container.LogPath != "" {
		t.Errorf("log %+v at %q", got, r.Container.LogPath)
	}
}
