package fake_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func create(t testing.TB, b *fake.Backend, spec sandbox.Spec) *fake.Sandbox {
	t.Helper()
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return sb.(*fake.Sandbox)
}

func TestCommandsWriteBelowMounts(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.On("test.sh", fake.Write("/logs/verifier/reward.txt", "1\n"), fake.Print("done")),
	}})
	sb := create(t, b, sandbox.Spec{Name: "t", Mounts: []sandbox.Mount{
		{Source: t.TempDir(), Target: "/logs"}, {Source: host, Target: "/logs/verifier"},
	}})
	var out strings.Builder
	st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "bash /tests/test.sh", Stdout: &out})
	if err != nil || st.Code != 0 || out.String() != "done" {
		t.Errorf("got %+v, %v, output %q", st, err, out.String())
	}
	if got, err := os.ReadFile(filepath.Join(host, "reward.txt")); err != nil || string(got) != "1\n" {
		t.Errorf("on the host: %q, %v", got, err)
	}
	if got, err := sb.ReadFile("/logs/verifier/reward.txt"); err != nil || string(got) != "1\n" {
		t.Errorf("in the sandbox: %q, %v", got, err)
	}
	if got, want := sb.Path("/logs/verifier/x"), filepath.Join(host, "x"); got != want {
		t.Errorf("Path: got %q, want %q", got, want)
	}
}

func TestUnmountedFilesNeedADownload(t *testing.T) {
	t.Parallel()
	host := t.TempDir()
	b := fake.New(fake.Config{Dir: t.TempDir(), Capabilities: &sandbox.Capabilities{}, Rules: []fake.Rule{
		fake.Always(fake.Write("/logs/f", "x")),
	}})
	sb := create(t, b, sandbox.Spec{Name: "t", Mounts: []sandbox.Mount{{Source: host, Target: "/logs"}}})
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "w"}); err != nil {
		t.Fatal(err)
	}
	if names, _ := os.ReadDir(host); len(names) > 0 {
		t.Errorf("the host's directory got %v although nothing is mounted", names)
	}
	if got, err := sb.ReadFile("/logs/f"); err != nil || string(got) != "x" {
		t.Errorf("in the sandbox: %q, %v", got, err)
	}
}

func TestImageFilesAndReset(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Files: map[string]string{"/app/a": "image", "/empty/": ""}})
	sb := create(t, b, sandbox.Spec{Name: "t"})
	for range 2 {
		if got, err := sb.ReadFile("/app/a"); err != nil || string(got) != "image" {
			t.Errorf("/app/a: %q, %v", got, err)
		}
		if err := errors.Join(sb.WriteFile("/app/a", []byte("changed"), 0o644), sb.Remove("/empty")); err != nil {
			t.Fatal(err)
		}
		if err := sb.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFaultsHitTheCallOfChoice(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	b := fake.New(fake.Config{Dir: t.TempDir(), Before: fake.Faults(
		fake.FailAt(fake.OpCreate, 2, mine), fake.FailAt(fake.OpDestroy, 1, nil), fake.HangAt(fake.OpMark, 0),
	)})
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(t.Context(), sandbox.Spec{Name: "b"}); !errors.Is(err, mine) {
		t.Errorf("second Create: got %v, want the injected error", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := sb.Mark(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Mark: got %v, want the deadline", err)
	}
	if err := sb.Destroy(t.Context()); !errors.Is(err, fake.ErrInjected) || b.Live() != 1 {
		t.Errorf("first Destroy: got %v with %d live, want the injected error and 1", err, b.Live())
	}
	if err := sb.Destroy(t.Context()); err != nil || b.Live() != 0 {
		t.Errorf("second Destroy: got %v with %d live, want none", err, b.Live())
	}
	if v := b.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
}

func TestTimeStandsStill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := fake.New(fake.Config{Dir: dir, Rules: []fake.Rule{fake.Always(fake.Sleep(time.Hour), fake.Exit(4))}})
		sb := create(t, b, sandbox.Spec{Name: "t"})
		began := time.Now()
		st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "x"})
		if err != nil || st.Code != 4 || time.Since(began) != time.Hour {
			t.Errorf("got %+v, %v after %v", st, err, time.Since(began))
		}
		began = time.Now()
		st, err = sb.Exec(t.Context(), sandbox.Command{Shell: "x", Timeout: time.Minute})
		if err != nil || !st.TimedOut || time.Since(began) != time.Minute {
			t.Errorf("got %+v, %v after %v", st, err, time.Since(began))
		}
	})
}

func TestWhatIsLeftRunning(t *testing.T) {
	t.Parallel()
	daemon := fake.Leave(func(ctx context.Context, p *fake.Process) (int, error) {
		<-ctx.Done()
		return 0, p.Sandbox.WriteFile("/ended", []byte(p.Env["NAME"]), 0o644)
	})
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.On("leave", daemon), fake.On("hang", daemon, fake.Hang()),
	}})
	sb := create(t, b, sandbox.Spec{Name: "t"})
	leave := func(name string) {
		t.Helper()
		if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "leave", Env: []string{"NAME=" + name}}); err != nil {
			t.Fatal(err)
		}
	}
	left := func(what string, want int) {
		t.Helper()
		if n := sb.Processes(); n != want {
			t.Errorf("%s: %d processes are left, want %d", what, n, want)
		}
	}
	leave("before")
	m, err := sb.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leave("since")
	left("after two commands", 2)
	if err := sb.KillTree(t.Context(), m, 0); err != nil {
		t.Fatal(err)
	}
	left("after KillTree", 1)
	if got, _ := sb.ReadFile("/ended"); string(got) != "since" {
		t.Errorf("KillTree ended %q and must have waited for it", got)
	}
	st, err := sb.Exec(t.Context(), sandbox.Command{Shell: "hang", Timeout: time.Millisecond})
	if err != nil || !st.TimedOut {
		t.Errorf("got %+v, %v", st, err)
	}
	left("after a timeout", 1)
	if err := sb.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	left("after Destroy", 0)
}

func TestViolations(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Created: func(ctx context.Context, sb *fake.Sandbox) error {
		if sb.Spec().Name == "early" {
			_, err := sb.Exec(ctx, sandbox.Command{Shell: "x"})
			if err == nil {
				t.Error("Exec before the end of Create: got no error")
			}
		}
		return nil
	}})
	create(t, b, sandbox.Spec{Name: "early"})
	create(t, b, sandbox.Spec{Name: "twin"})
	create(t, b, sandbox.Spec{Name: "twin"})
	sb := create(t, b, sandbox.Spec{Name: "gone"})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_ = sb.Destroy(canceled)
	_ = sb.Upload(t.Context(), "/x", strings.NewReader(""))
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "x"}); !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("Exec after Destroy: got %v", err)
	}
	want := []string{
		`exec in sandbox "early" before Create has returned`,
		`create "twin": the name is in use by a sandbox that is not destroyed`,
		`destroy of sandbox "gone" with a context that has ended`,
		`upload in sandbox "gone" after Destroy`,
		`exec in sandbox "gone" after Destroy`,
		`sandbox "early" was never destroyed`,
		`sandbox "twin" was never destroyed`,
		`sandbox "twin" was never destroyed`,
	}
	if diff := cmp.Diff(want, b.Violations()); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestCallsAreRecorded(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{
		fake.Always(fake.Each(fake.Exit(1), fake.Fail(nil), fake.Exit(2))),
	}})
	sb := create(t, b, sandbox.Spec{Name: "t"})
	for range 4 {
		_, _ = sb.Exec(t.Context(), sandbox.Command{Shell: "x", User: "u"})
	}
	var got []string
	for _, c := range b.Calls() {
		got = append(got, fmt.Sprintf("%s %d %s %q %d %t", c.Op, c.N, c.Sandbox, c.Command.User, c.Status.Code, errors.Is(c.Err, fake.ErrInjected)))
	}
	want := []string{
		`create 1 t "" 0 false`, `exec 1 t "u" 1 false`, `exec 2 t "u" 0 true`, `exec 3 t "u" 2 false`, `exec 4 t "u" 2 false`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if n := b.Count(fake.OpExec); n != 4 {
		t.Errorf("Count: got %d, want 4", n)
	}
}

func TestCollectSparesWhatIsClaimed(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir()})
	mine, dead := procid.ID{PID: 1}, procid.ID{PID: 2}
	create(t, b, sandbox.Spec{Name: "mine", Labels: sandbox.Labels{Owner: mine}})
	create(t, b, sandbox.Spec{Name: "dead", Labels: sandbox.Labels{Owner: dead}})
	removed, err := b.Collect(t.Context(), func(o procid.ID) bool { return o == mine })
	if err != nil || !slices.Equal(removed, []string{"sandbox fake-2 (dead)"}) || b.Live() != 1 {
		t.Errorf("got %q, %v with %d live", removed, err, b.Live())
	}
}

func TestGarbageIsTheSameForASeed(t *testing.T) {
	t.Parallel()
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.Always(fake.Garbage(1000, 7))}})
	sb := create(t, b, sandbox.Spec{Name: "t"})
	var out, again bytes.Buffer
	for _, w := range []io.Writer{&out, &again} {
		if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "x", Stdout: w, Stderr: io.Discard}); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() != 1000 || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("got %d and %d bytes that differ", out.Len(), again.Len())
	}
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const n = 300
	all := make(chan struct{})
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.Always(fake.Wait(all))}})
	var wg, begun sync.WaitGroup
	begun.Add(n)
	for i := range n {
		wg.Go(func() {
			sb, err := b.Create(t.Context(), sandbox.Spec{Name: fmt.Sprint(i)})
			begun.Done()
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "x"}); err != nil {
				t.Error(err)
			}
			if err := sb.Destroy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	close(all)
	wg.Wait()
	fake.Verify(t, b)
	if b.Live() != 0 || b.MostLive() != n {
		t.Errorf("%d live, most %d; want 0 and %d", b.Live(), b.MostLive(), n)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "fake")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := fake.New(fake.Config{Dir: dir, Rules: []fake.Rule{
		fake.On("make test", fake.Print("2 of 3 passed\n"), fake.Exit(1)),
	}})
	ctx := context.Background()
	sb, err := b.Create(ctx, sandbox.Spec{Name: "example"})
	if err != nil {
		panic(err)
	}
	st, err := sb.Exec(ctx, sandbox.Command{Shell: "make test", Stdout: os.Stdout})
	fmt.Println("code", st.Code, err)
	_ = sb.Destroy(ctx)
	fmt.Println(len(b.Violations()), "violations")
	// Output:
	// 2 of 3 passed
	// code 1 <nil>
	// 0 violations
}

func BenchmarkLife(b *testing.B) {
	backend := fake.New(fake.Config{Dir: b.TempDir()})
	host := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		sb, err := backend.Create(b.Context(), sandbox.Spec{Name: "t", Mounts: []sandbox.Mount{{Source: host, Target: "/logs/verifier"}}})
		if err != nil {
			b.Fatal(err)
		}
		for range 3 {
			if _, err := sb.Exec(b.Context(), sandbox.Command{Shell: "x"}); err != nil {
				b.Fatal(err)
			}
		}
		if err := sb.Destroy(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFloodOneGiB(b *testing.B) {
	backend := fake.New(fake.Config{Dir: b.TempDir(), Rules: []fake.Rule{fake.Always(fake.Flood(1 << 30))}})
	sb := create(b, backend, sandbox.Spec{Name: "t"})
	b.SetBytes(1 << 30)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sb.Exec(b.Context(), sandbox.Command{Shell: "x", Stdout: io.Discard}); err != nil {
			b.Fatal(err)
		}
	}
}
