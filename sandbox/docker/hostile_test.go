package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// Each script leaves processes that hide, and says "ready". $0 is a path that
// the survivors touch for as long as they live.
var hiders = map[string]string{
	"names with blanks, parentheses and line ends": `
for name in "a b" ") S 1 1 1 (" $'x\n1 (sh) S 0 1 1' ")" "("; do
  (printf %s "$name" >/proc/$BASHPID/comm; trap "" TERM; while :; do echo >>$0; sleep 0.05; done) &
done; echo ready; wait`,
	"arguments that look like the sweep or the first process": `
for argv0 in sweep "sleep infinity" "sh -c while :; do sleep infinity"; do
  (exec -a "$argv0" bash -c 'trap "" TERM; while :; do echo >>'$0'; sleep 0.05; done') &
done; echo ready; wait`,
	"a forged mark of another command": `
PROCTOR_EXEC=00000000000000000000000000000000 setsid bash -c 'trap "" TERM; while :; do echo >>'$0'; sleep 0.05; done' >/dev/null 2>&1 &
env -i PROCTOR_EXEC= /usr/bin/setsid /bin/bash -c 'trap "" TERM; while :; do echo >>'$0'; sleep 0.05; done' >/dev/null 2>&1 &
echo ready; wait`,
	"a cleared environment": `
(setsid env -i /bin/bash -c 'trap "" TERM; while :; do echo >>'$0'; sleep 0.05; done' >/dev/null 2>&1 &)
echo ready; exec tail -f /dev/null`,
	"forks that multiply": `
cat >$0.sh <<'E'
trap "" TERM HUP
echo >>"$1"
[ "$(ls /proc | grep -c '^[0-9]')" -gt 60 ] || setsid bash "$0" "$1" &
exec setsid bash "$0" "$1"
E
for i in 1 2 3; do setsid bash $0.sh $0 >/dev/null 2>&1 & done; echo ready; exec tail -f /dev/null`,
	"killing the first process's sleep": `
pkill() { for p in /proc/[0-9]*; do read -r -d '' c <$p/cmdline; [ "$c" = sleep ] && kill -9 ${p#/proc/}; done; }
pkill 2>/dev/null; (trap "" TERM; while :; do echo >>$0; sleep 0.05; done) & echo ready; wait`,
}

// listProcesses prints a line for each process of the sandbox but the shell itself
// and those that have ended.
const listProcesses = `for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || ! grep -qs '^State:[[:space:]]*[^ZX]' $p/status || echo $p; done`

func TestHostileProcessesAreEnded(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	for name, script := range hiders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "forks that multiply" { // they fill the machine until they are gone
				need.Patience(t)
			}
			sb := create(t, b, base())
			// Another command is under way, so that sparing is possible.
			otherCtx, endOther := context.WithCancel(t.Context())
			other := make(chan error, 1)
			otherReady := newAwait("ready\n")
			go func() {
				_, err := sb.Exec(otherCtx, sandbox.Command{Shell: "(exec -a under-way tail -f /dev/null) & echo ready; wait", Stdout: otherReady})
				other <- err
			}()
			<-otherReady.seen
			before := output(t, sb, sandbox.Command{Shell: listProcesses})

			ctx, cancel := context.WithCancel(t.Context())
			ready := newAwait("ready\n")
			done := make(chan error, 1)
			go func() {
				_, err := sb.Exec(ctx, sandbox.Command{Argv: []string{"bash", "-c", script, "/tmp/beat"}, Stdout: ready, Grace: 200 * time.Millisecond})
				done <- err
			}()
			<-ready.seen
			output(t, sb, sandbox.Command{Shell: "until [ -s /tmp/beat ]; do sleep 0.02; done"})
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want Canceled", err)
			}
			if after := output(t, sb, sandbox.Command{Shell: listProcesses}); after != before {
				t.Errorf("there are processes\n%s\nand before the command there were\n%s", after, before)
			}
			if got := output(t, sb, sandbox.Command{Shell: `grep -lsa '^under-way' /proc/[0-9]*/cmdline | wc -l`}); got != "1" {
				t.Errorf("the other command has %s processes, want its 1", got)
			}
			endOther()
			<-other //nolint:errcheck // it was ended
		})
	}
}

func TestMemoryShortage(t *testing.T) {
	t.Parallel()
	need.Patience(t) // it takes a minute
	spec := base()
	spec.Resources = sandbox.Resources{MemoryMB: 96, PIDs: 2000}
	sb := create(t, newBackend(t), spec)
	sandboxtest.MemoryShortage(t, sb)
	sandboxtest.Spared(t, sb)
}

func TestAbuse(t *testing.T) {
	t.Parallel()
	sandboxtest.Abuse(t, sandboxtest.AbuseConfig{
		Backend: newBackend(t), Spec: sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(t)}, Now: time.Now,
		Long: need.Required("patience"),
	})
}

// await is a sink that waits for a text.
type await struct {
	text string
	seen chan struct{}
	buf  bytes.Buffer
}

func newAwait(text string) *await { return &await{text: text, seen: make(chan struct{})} }

func (a *await) Write(p []byte) (int, error) {
	had := strings.Contains(a.buf.String(), a.text)
	a.buf.Write(p)
	if !had && strings.Contains(a.buf.String(), a.text) {
		close(a.seen)
	}
	return len(p), nil
}

func TestSignalsToTheWholeGroup(t *testing.T) {
	t.Parallel()
	sb := create(t, newBackend(t), base())
	for _, tt := range []struct {
		script string
		code   int
		want   string
	}{
		{`trap 'echo caught' TERM; kill 0; echo after; exit 4`, 4, "caught\nafter\n"},
		{`kill 0; sleep 1; echo never`, 143, ""},
		{`trap 'trap "" TERM; kill 0; exit 5' EXIT; sleep 1000 & echo up`, 5, "up\n"},
		{`kill -INT $$; echo never`, 130, ""},
	} {
		var out strings.Builder
		st, err := sb.Exec(t.Context(), sandbox.Command{Shell: tt.script, Stdout: &out})
		if err != nil || st.Code != tt.code || out.String() != tt.want {
			t.Errorf("%s: got %+v, %v, output %q; want code %d, %q", tt.script, st, err, out.String(), tt.code, tt.want)
		}
	}
}

func TestCommandsSeeTheirOwnWorld(t *testing.T) {
	t.Parallel()
	spec := base()
	spec.Env = []string{"A=1", "odd-name=2", "BASH_ENV=/boot.sh"}
	sb := create(t, newBackend(t), spec)
	if err := sandbox.UploadBytes(t.Context(), sb, []byte("echo boot\n"), "/boot.sh", 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		cmd  sandbox.Command
		want string
	}{
		{sandbox.Command{Shell: `env | sed 's/=.*//' | sort | tr '\n' ' '`}, "boot\nA BASH_ENV HOME HOSTNAME PATH PWD SHLVL _ odd-name"},
		{sandbox.Command{Shell: `echo $SHLVL`}, "boot\n1"},
		{sandbox.Command{Shell: `ls /proc/self/fd | wc -l`}, "boot\n4"},
		{sandbox.Command{Shell: `trap -p; echo $-`}, "boot\nhBc"},
		{sandbox.Command{Argv: []string{"sh", "-c", `grep -E 'SigIgn|SigBlk' /proc/self/status | sed 's/.*://' | tr -d '\t\n0'`}}, ""},
		{sandbox.Command{Argv: []string{"-x"}, Dir: "/"}, ""},
	} {
		var out strings.Builder
		tt.cmd.Stdout = &out
		st, err := sb.Exec(t.Context(), tt.cmd)
		if tt.cmd.Dir != "" {
			if st.Code != 127 {
				t.Errorf("a program named -x: got %+v, %v, %q", st, err, out.String())
			}
			continue
		}
		if got := strings.TrimSpace(out.String()); err != nil || st.Code != 0 || got != tt.want {
			t.Errorf("%q %q: got %+v, %v, %q; want %q", tt.cmd.Argv, tt.cmd.Shell, st, err, got, tt.want)
		}
	}
}

func TestHostileLinks(t *testing.T) {
	t.Parallel()
	sb := create(t, newBackend(t), base())
	output(t, sb, sandbox.Command{Shell: `mkdir -p /real /logs
ln -s /../../../../../../../../tmp/proctor-escape /tests
ln -s /real/secret /logs/reward.txt; echo mine >/real/secret
ln -s /real /dirlink; ln -s loop /loop`})
	upload := func(dst string) error {
		return sandbox.UploadBytes(t.Context(), sb, []byte("new"), dst, 0o644)
	}
	if err := upload("/dirlink/file"); err != nil {
		t.Errorf("uploading through a link inside: %v", err)
	}
	if err := upload("/tests/file"); err == nil {
		if got := output(t, sb, sandbox.Command{Shell: "cat /tmp/proctor-escape/file"}); got != "new" {
			t.Errorf("the link was resolved elsewhere: %q", got)
		}
	}
	if err := upload("/loop/file"); err == nil {
		t.Error("uploading into a loop of links: no error")
	}
	if err := upload("/logs/reward.txt"); err != nil {
		t.Errorf("uploading over a link: %v", err)
	}
	if got := output(t, sb, sandbox.Command{Shell: "cat /real/file /real/secret"}); got != "newmine" {
		t.Errorf("got %q: a link in the last place must be replaced, not followed", got)
	}
	output(t, sb, sandbox.Command{Shell: "rm /logs/reward.txt; ln -s /etc/shadow /logs/reward.txt"})
	for path, target := range map[string]string{"/logs/reward.txt": "/etc/shadow", "/dirlink": "/real"} {
		var archive bytes.Buffer
		if err := sb.Download(t.Context(), path, &archive); err != nil {
			t.Errorf("downloading %s: %v", path, err)
			continue
		}
		r := tar.NewReader(&archive)
		h, err := r.Next()
		if err != nil || h.Typeflag != tar.TypeSymlink || h.Linkname != target {
			t.Errorf("%s: got %+v, %v; want the link itself", path, h, err)
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: more than one entry", path)
		}
	}
}

func TestUploadRefusesToLeave(t *testing.T) {
	t.Parallel()
	sb := create(t, newBackend(t), base())
	for _, h := range []tar.Header{
		{Name: "../out", Typeflag: tar.TypeReg},
		{Name: "a/../../out", Typeflag: tar.TypeReg},
		{Name: "hard", Linkname: "../../etc/passwd", Typeflag: tar.TypeLink},
	} {
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if err := sb.Upload(t.Context(), "/a/b", &archive); err == nil {
			t.Errorf("%q: no error", h.Name)
		}
	}
	if got := output(t, sb, sandbox.Command{Shell: "ls /a/out /out 2>/dev/null || true"}); got != "" {
		t.Errorf("files outside: %s", got)
	}
}

func TestDownloadOfTheRoot(t *testing.T) {
	t.Parallel()
	sb := create(t, newBackend(t), base())
	r, w := io.Pipe()
	go func() { w.CloseWithError(sb.Download(t.Context(), "/", w)) }()
	names := make(map[string]bool)
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		names[h.Name] = true
	}
	for _, want := range []string{"etc/passwd", "usr/"} {
		if !names[want] {
			t.Errorf("%q is not among the %d names", want, len(names))
		}
	}
}
