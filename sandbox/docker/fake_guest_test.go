package docker_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

const (
	streamsCall = "POST /containers/c1/attach"
	topCall     = "GET /containers/c1/top"
)

// framedOutput writes what a process says as an engine does.
type framedOutput struct {
	stream byte
	w      io.Writer
}

func (f framedOutput) Write(p []byte) (int, error) {
	head := make([]byte, 8, 8+len(p))
	head[0] = f.stream
	binary.BigEndian.PutUint32(head[4:], uint32(len(p)))
	_, err := f.w.Write(append(head, p...))
	return len(p), err
}

// firstProcess is the command that runs a program as the first process of a
// process namespace.
func firstProcess(t *testing.T, program string) []string {
	t.Helper()
	argv := []string{need.Program(t, "unshare"), "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() != 0 {
		argv = append(argv, "--user", "--map-root-user")
	}
	err := exec.CommandContext(t.Context(), argv[0], append(argv[1:], "true")...).Run()
	need.That(t, "userns", err == nil, "needs a process namespace")
	return append(argv, program)
}

// runGuest is an engine's attach to a container whose first process is the
// guest program, here a process of this machine.
func runGuest(argv ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
		cmd := exec.Command(argv[0], argv[1:]...) //nolint:gosec // it was built by the test
		cmd.Stdin, cmd.Stdout, cmd.Stderr = buffered, framedOutput{1, conn}, framedOutput{2, conn}
		_ = cmd.Run() // it ends with its input
	}
}

// newGuestFake is an engine elsewhere on which containers have a guest.
func newGuestFake(t *testing.T) (*fakeEngine, *docker.Backend) {
	t.Helper()
	f, url := serveFake(t)
	f.set(versionCall, answer(http.StatusOK, `{"Version":"20.10","ApiVersion":"1.41","Os":"linux","Arch":"`+runtime.GOARCH+`"}`))
	f.set(putCall, answer(http.StatusOK, ""))
	f.set(streamsCall, runGuest(guestProgram(t)))
	f.set(topCall, answer(http.StatusOK, `{"Titles":["PID"],"Processes":[["1"]]}`))
	b, err := docker.New(docker.Options{AllowRemote: true, Engine: url, Guest: guestOf(t), Build: version.Current().ID()})
	if err != nil {
		t.Fatal(err)
	}
	return f, b
}

func (f *fakeEngine) position(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Index(f.calls, call)
}

func TestFakeGuest(t *testing.T) {
	t.Parallel()
	f, b := newGuestFake(t)
	var asked struct {
		container.Config
		HostConfig container.HostConfig
	}
	f.set(createCall, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		answer(http.StatusCreated, `{"Id":"c1"}`)(w, r)
	})
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "img"}})
	if err != nil {
		t.Fatal(err)
	}
	if put, attached, started := f.position(putCall), f.position(streamsCall), f.position(startCall); put < 0 || attached < put || started < attached {
		t.Errorf("calls %q, want the copy, then the streams, then the start", f.calls)
	}
	if !slices.Equal(asked.Entrypoint, []string{"/.proctor/proctor-guest"}) || !slices.Equal(asked.Cmd, []string{"copied"}) ||
		!asked.StdinOnce || !asked.OpenStdin || asked.Tty || asked.User != "0:0" ||
		asked.HostConfig.LogConfig.Type != "none" || asked.HostConfig.Init == nil || *asked.HostConfig.Init {
		t.Errorf("asked for %+v", asked)
	}
	if got := output(t, sb, sandbox.Command{Argv: []string{"/bin/echo", "hi"}, User: "0"}); got != "hi" {
		t.Errorf("got %q", got)
	}
	if n := f.called(execCall); n != 0 {
		t.Errorf("%d execs of the engine", n)
	}
	if err := sb.Destroy(t.Context()); err != nil {
		t.Error(err)
	}
}

// The engine's list of processes is held against the supervisor's.
func TestFakeContradiction(t *testing.T) {
	t.Parallel()
	f, b := newGuestFake(t)
	f.set(streamsCall, runGuest(firstProcess(t, guestProgram(t))...))
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "img"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Destroy(t.Context()) })
	many := `{"Titles":["PID"],"Processes":[["1"]` + strings.Repeat(`,["2"]`, 2_000) + `]}`
	mark, err := sb.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		top  http.HandlerFunc
		want string
	}{
		"as many":                {answer(200, `{"Titles":["PID"],"Processes":[["1"]]}`), ""},
		"more":                   {answer(200, many), "processes in the container: the engine lists 2001, its supervisor sees"},
		"an engine without ps":   {answer(500, `{"message":"exec: \"ps\": executable file not found in $PATH"}`), ""},
		"an engine that refuses": {answer(500, `{"message":"broken inside"}`), "broken inside"},
		"an engine that is gone": {vanish, "EOF"},
	} {
		f.set(topCall, c.top)
		if err := sb.KillTree(t.Context(), mark, time.Millisecond); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: a kill: got error %v, want %q", name, err, c.want)
		}
		st, err := sb.Exec(t.Context(), sandbox.Command{Argv: []string{"/bin/sleep", "100"}, Timeout: 20 * time.Millisecond, User: "0"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || !st.TimedOut {
			t.Errorf("%s: a command whose time is up: got %+v, %v, want %q", name, st, err, c.want)
		}
	}
	// Processes that were just made are no contradiction.
	asked := 0
	f.set(topCall, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked < 3 {
			answer(200, many)(w, r)
			return
		}
		answer(200, `{"Titles":["PID"],"Processes":[["1"]]}`)(w, r)
	})
	if err := sb.KillTree(t.Context(), mark, time.Millisecond); err != nil || asked != 3 {
		t.Errorf("a list that changes: %v after %d looks", err, asked)
	}
}

// A supervisor that does not answer, or not as ours, is none.
func TestFakeGuestThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call string
		h    http.HandlerFunc
	}{
		"the copy is refused":  {putCall, answer(403, `{"message":"container rootfs is marked read-only"}`)},
		"no streams":           {streamsCall, answer(500, `{"message":"broken inside"}`)},
		"another program":      {streamsCall, upgrade("\x01\x00\x00\x00\x00\x00\x00\x05hello")},
		"a message of its own": {streamsCall, upgrade("\x02\x00\x00\x00\x00\x00\x00\x05oops\n")},
		"garbage":              {streamsCall, upgrade("nonsense, nonsense")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, b := newGuestFake(t)
			f.set(c.call, c.h)
			var said []string
			sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x", Image: sandbox.Image{Ref: "img"}, Warn: func(m string) { said = append(said, m) }})
			if err != nil {
				t.Fatal(err)
			}
			if s := sb.(sandbox.Supervised).Supervision(); s != sandbox.SupervisionEngine || len(said) != 1 {
				t.Errorf("supervision %q, said %q", s, said)
			}
			if f.called(createCall) != 2 || f.called(removeCall) != 1 {
				t.Errorf("calls %q", f.calls)
			}
			_, err = b.Create(t.Context(), sandbox.Spec{Name: "y", Image: sandbox.Image{Ref: "img"}, Network: sandbox.Network{Mode: sandbox.NetworkAllowlist}})
			if err == nil || f.called(createCall) != 2 {
				t.Errorf("an allow list without a supervisor: %v", err)
			}
		})
	}
}
