package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// limit bounds every call of the suite that is expected to return. It is no
// measurement: reaching it means that the call hangs.
const limit = 60 * time.Second

// suite is what the obligations of one group share.
type suite struct {
	cfg     Config
	backend sandbox.Backend
	caps    sandbox.Capabilities
	group   *testing.T

	common sandbox.Sandbox // see shared
	shoots *bool           // see snapshots
}

// conditions say for each need when it is not met, and why its obligations are
// then skipped.
var conditions = []struct {
	needs  needs
	unmet  func(s *suite) bool
	reason string
}{
	{processes, func(s *suite) bool { return s.cfg.Simulated }, "the backend runs no processes"},
	{otherUser, func(s *suite) bool { return s.cfg.OneUser }, "the backend has one user"},
	{privateRoot, func(s *suite) bool { return s.cfg.SharedRoot }, "the backend's sandboxes share a file system"},
	{hostRoot, func(s *suite) bool { return !s.caps.OwnRoot }, "Capabilities.OwnRoot is not claimed"},
	{mounted, func(s *suite) bool { return !s.caps.Mounted }, "Capabilities.Mounted is not claimed"},
	{noNetwork, func(s *suite) bool { return !s.caps.NoNetwork }, "Capabilities.NoNetwork is not claimed"},
	{allowlist, func(s *suite) bool { return !s.caps.Allowlist }, "Capabilities.Allowlist is not claimed"},
	{switching, func(s *suite) bool { return !s.caps.SwitchNetwork }, "Capabilities.SwitchNetwork is not claimed"},
	{outside, func(s *suite) bool { return s.cfg.World == nil || !s.cfg.Outside }, "public sandboxes do not reach a World"},
	{guarded, func(s *suite) bool { return !s.caps.GuardedMounts }, "Capabilities.GuardedMounts is not claimed"},
	{hardened, func(s *suite) bool { return !s.caps.Hardened }, "Capabilities.Hardened is not claimed"},
	{snapshots, func(s *suite) bool { return !s.snapshots() }, "the backend's sandboxes have no snapshots"},
	{allowlist | switching, func(s *suite) bool { return s.cfg.World == nil }, "the backend's egress is not that of a World"},
}

func (s *suite) require(t *testing.T, n needs) {
	t.Helper()
	for _, c := range conditions {
		if n&c.needs != 0 && c.unmet(s) {
			t.Skip(c.reason)
		}
	}
}

// serial makes names and directories of one test process distinct.
var serial atomic.Int64

// spec returns the base Spec under a name of its own.
func (s *suite) spec() sandbox.Spec {
	spec := s.cfg.Spec
	if spec.Name == "" {
		spec.Name = "sandboxtest"
	}
	spec.Name = fmt.Sprintf("%s-%d", spec.Name, serial.Add(1))
	return spec
}

// shared returns the group's sandbox, for obligations that leave nothing
// behind.
func (s *suite) shared(t *testing.T) sandbox.Sandbox {
	t.Helper()
	if s.common == nil {
		s.common = s.createFor(t, s.group, s.spec())
	}
	return s.common
}

// snapshots reports whether the backend's sandboxes have them. It is asked once,
// before anything is done for an obligation about them.
func (s *suite) snapshots() bool {
	if s.shoots == nil {
		s.shoots = new(takesSnapshot(s.group, s.createFor(s.group, s.group, s.spec())))
	}
	return *s.shoots
}

// fresh returns a sandbox of the obligation's own.
func (s *suite) fresh(t *testing.T) sandbox.Sandbox {
	t.Helper()
	return s.create(t, s.spec())
}

// create makes a sandbox that is destroyed when t ends.
func (s *suite) create(t *testing.T, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	return s.createFor(t, t, spec)
}

// createFor makes a sandbox that is destroyed when owner ends.
func (s *suite) createFor(t, owner *testing.T, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*limit)
	defer cancel()
	sb, err := s.backend.Create(ctx, spec)
	if err != nil {
		t.Fatalf("creating sandbox %q: %v", spec.Name, err)
	}
	owner.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := sb.Destroy(ctx); err != nil {
			owner.Errorf("destroying sandbox %q: %v", spec.Name, err)
		}
	})
	return sb
}

// dir returns a path below Scratch that no other obligation uses.
func (s *suite) dir() string {
	return path.Join(s.cfg.Scratch, fmt.Sprintf("d%x-%d", rand.Uint64(), serial.Add(1)))
}

// tag returns a word that marks processes of one obligation in /proc.
func (s *suite) tag() string {
	return fmt.Sprintf("sandboxtest-tag-%x-%d", rand.Uint64(), serial.Add(1))
}

// call bounds a call that has to return.
func call(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(t.Context()), limit, errHangs)
	t.Cleanup(cancel)
	return ctx
}

var errHangs = errors.New("sandboxtest: the call did not return in time")

// result of a command that was run to its end.
type result struct {
	sandbox.ExitStatus
	stdout, stderr string
}

// exec runs cmd with buffers as sinks where it has none, and fails the test
// on an error. Stderr is merged unless split is set.
func exec(t testing.TB, sb sandbox.Sandbox, cmd sandbox.Command) result {
	t.Helper()
	var out bytes.Buffer
	cmd.Stdout = &out
	st, err := sb.Exec(call(t), cmd)
	if err != nil {
		t.Fatalf("exec %s: %v", describe(cmd), err)
	}
	return result{ExitStatus: st, stdout: out.String()}
}

// execSplit is exec with standard error apart.
func execSplit(t testing.TB, sb sandbox.Sandbox, cmd sandbox.Command) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	st, err := sb.Exec(call(t), cmd)
	if err != nil {
		t.Fatalf("exec %s: %v", describe(cmd), err)
	}
	return result{ExitStatus: st, stdout: out.String(), stderr: errs.String()}
}

// output runs cmd, which must exit 0, and returns its output without the last
// newline.
func output(t testing.TB, sb sandbox.Sandbox, cmd sandbox.Command) string {
	t.Helper()
	r := exec(t, sb, cmd)
	if r.Code != 0 {
		t.Fatalf("exec %s: exit code %d, output %q", describe(cmd), r.Code, r.stdout)
	}
	return strings.TrimSuffix(r.stdout, "\n")
}

func sh(script string) sandbox.Command { return sandbox.Command{Shell: script} }

func describe(cmd sandbox.Command) string {
	if len(cmd.Argv) > 0 {
		return fmt.Sprintf("%q", cmd.Argv)
	}
	return strconv.Quote(cmd.Shell)
}

// tagged is a bash script whose process and forks carry tag as $0, and so in
// /proc/PID/cmdline.
func tagged(tag, script string) sandbox.Command {
	return sandbox.Command{Argv: []string{"bash", "-c", script, tag}}
}

// alive counts the processes that carry tag. The search itself does not: the
// tag reaches it on standard input.
func alive(t testing.TB, sb sandbox.Sandbox, tag string) int {
	t.Helper()
	cmd := sh(`grep -lsaFf - /proc/[0-9]*/cmdline | wc -l`)
	cmd.Stdin = strings.NewReader(tag + "\n")
	n, err := strconv.Atoi(strings.TrimSpace(output(t, sb, cmd)))
	if err != nil {
		t.Fatalf("counting processes: %v", err)
	}
	return n
}

// settled waits until want processes carry tag and fails if that never comes. For a moment
// there can be one more: a fork carries its parent's arguments until it executes its own.
func settled(t testing.TB, sb sandbox.Sandbox, tag string, want int) {
	t.Helper()
	ctx := call(t)
	for n := alive(t, sb, tag); n != want; n = alive(t, sb, tag) {
		if ctx.Err() != nil {
			t.Fatalf("%d processes carry the tag, want %d", n, want)
		}
	}
}

// underway is an Exec that runs in the background.
type underway struct {
	ready  chan struct{} // closed when the command has written "ready"
	done   chan struct{}
	status sandbox.ExitStatus
	err    error

	mu   sync.Mutex
	text []byte
	once sync.Once
}

// start runs cmd in the background. When the test ends the command is
// cancelled and waited for.
func start(t testing.TB, ctx context.Context, sb sandbox.Sandbox, cmd sandbox.Command) *underway {
	t.Helper()
	u := &underway{ready: make(chan struct{}), done: make(chan struct{})}
	cmd.Stdout = u
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(u.done)
		u.status, u.err = sb.Exec(ctx, cmd)
	}()
	t.Cleanup(func() {
		cancel()
		u.wait(t)
	})
	return u
}

func (u *underway) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.text = append(u.text, p...)
	if bytes.Contains(u.text, []byte("ready\n")) {
		u.once.Do(func() { close(u.ready) })
	}
	return len(p), nil
}

func (u *underway) output() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return string(u.text)
}

// untilReady waits until the command has said "ready".
func (u *underway) untilReady(t testing.TB) {
	t.Helper()
	select {
	case <-u.ready:
	case <-u.done:
		t.Fatalf("the command ended before it was ready: status %+v, error %v, output %q", u.status, u.err, u.output())
	case <-time.After(limit):
		t.Fatalf("the command was not ready in time; output %q", u.output())
	}
}

// wait waits until Exec has returned.
func (u *underway) wait(t testing.TB) {
	t.Helper()
	select {
	case <-u.done:
	case <-time.After(2 * limit):
		t.Errorf("Exec did not return")
	}
}
