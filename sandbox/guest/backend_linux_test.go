package guest

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

const testBuild = "test build"

// TestMain lets the test binary be the supervisor.
func TestMain(m *testing.M) {
	switch os.Getenv("GUEST_TEST_SERVE") {
	case "":
		os.Exit(m.Run())
	case "init":
		if err := ownProc(); err != nil {
			fmt.Fprintln(os.Stderr, "mounting /proc:", err)
			os.Exit(2)
		}
	}
	os.Exit(Main(os.Stdin, os.Stdout, os.Stderr, testBuild))
}

// ownProc shows the processes of the new PID namespace, to this mount
// namespace alone.
func ownProc() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	return syscall.Mount("proc", "/proc", "proc", 0, "")
}

// bare is a backend without any isolation: a supervisor per sandbox.
type bare struct {
	init bool // as process 1 of a PID namespace
}

func (b bare) Name() string                       { return "bare" }
func (b bare) Capabilities() sandbox.Capabilities { return sandbox.Capabilities{} }
func (b bare) Check(context.Context) error        { return nil }

func (b bare) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if (spec.Network.Mode != "" && spec.Network.Mode != sandbox.NetworkPublic) || spec.Network.Switchable || spec.Resources.GPUs > 0 || spec.Hardened {
		return nil, sandbox.ErrUnsupported
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"GUEST_TEST_SERVE=child"}
	if b.init {
		cmd.Env = []string{"GUEST_TEST_SERVE=init"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	}
	s := &bareSandbox{cmd: cmd}
	cmd.Stderr = &s.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	opts := Options{Build: testBuild, Env: spec.Env, User: spec.User, Workdir: spec.Workdir}
	if s.Client, err = Dial(ctx, out, in, opts); err != nil {
		_ = cmd.Wait()
		return nil, fmt.Errorf("%w\n%s", err, s.stderr.String())
	}
	return s, nil
}

type bareSandbox struct {
	*Client
	cmd    *exec.Cmd
	stderr bytes.Buffer
	once   sync.Once
	err    error
}

var _ sandbox.Sandbox = (*bareSandbox)(nil)

func (s *bareSandbox) ID() string { return fmt.Sprint(s.cmd.Process.Pid) }

func (s *bareSandbox) Destroy(context.Context) error {
	_ = s.Close()
	s.once.Do(func() {
		if s.err = s.cmd.Wait(); s.stderr.Len() > 0 {
			s.err = fmt.Errorf("%w: %s", s.err, s.stderr.String())
		}
	})
	return s.err
}

// serve starts a supervisor for one test.
func serve(t testing.TB, b bare) *bareSandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	sb, err := b.Create(ctx, sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Destroy(ctx); err != nil {
			t.Errorf("the supervisor's end: %v", err)
		}
	})
	return sb.(*bareSandbox)
}

func TestContractAsProcess1(t *testing.T) {
	need.Root(t)
	need.Program(t, "bash")
	runContract(t, bare{init: true})
}

// TestPowerless looks at a command as root between two others: it has nothing, and
// the supervisor keeps what it has.
func TestPowerless(t *testing.T) {
	need.Root(t)
	sb := serve(t, bare{init: true})
	own := status(t, sb)
	sb.opts.Powerless = true
	for range 3 {
		got := status(t, sb)
		for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
			if got[name] != "0000000000000000" {
				t.Errorf("%s of a powerless command is %s", name, got[name])
			}
		}
		if got["NoNewPrivs"] != "1" {
			t.Errorf("a powerless command can gain privileges: %q", got["NoNewPrivs"])
		}
	}
	sb.opts.Powerless = false
	if after := status(t, sb); after["CapBnd"] != own["CapBnd"] || after["CapEff"] != own["CapEff"] {
		t.Errorf("a later command has %v, one before had %v", after, own)
	}
}

// status reads what the kernel says of a command.
func status(t testing.TB, sb sandbox.Sandbox) map[string]string {
	t.Helper()
	var out bytes.Buffer
	if st, err := sb.Exec(t.Context(), sandbox.Command{Argv: []string{"cat", "/proc/self/status"}, Stdout: &out}); err != nil || st.Code != 0 {
		t.Fatalf("got %+v, %v: %s", st, err, &out)
	}
	fields := map[string]string{}
	for line := range strings.Lines(out.String()) {
		name, text, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(text)
	}
	return fields
}

func runContract(t *testing.T, b bare) {
	scratch := t.TempDir()
	t.Cleanup(func() { // read-only directories are in the way of an ordinary user
		_ = filepath.WalkDir(scratch, func(p string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(p, 0o700)
			}
			return nil
		})
	})
	sandboxtest.Run(t, sandboxtest.Config{
		New:        func(testing.TB) sandbox.Backend { return b },
		Spec:       sandbox.Spec{User: fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())},
		Scratch:    scratch,
		OneUser:    os.Geteuid() != 0,
		SharedRoot: true,
	})
}
