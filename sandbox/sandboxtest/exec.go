package sandboxtest

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

var execObligations = []obligation{
	{"exit code 0 is a result", processes, func(t *testing.T, s *suite) { exits(t, s, sh("true"), 0) }},
	{"exit code n is a result, not an error", 0, func(t *testing.T, s *suite) { exits(t, s, sh(ScriptExit3), 3) }},
	{"exit code 255 is kept", processes, func(t *testing.T, s *suite) { exits(t, s, sh("exit 255"), 255) }},
	{"death by signal n is 128+n", processes, func(t *testing.T, s *suite) {
		exits(t, s, sh("kill -KILL $$"), 128+9)
		exits(t, s, sh("kill -TERM $$"), 128+15)
	}},
	{"a program that is not found is 127", processes, func(t *testing.T, s *suite) {
		exits(t, s, sandbox.Command{Argv: []string{"sandboxtest-no-such-program"}}, 127)
		exits(t, s, sandbox.Command{Argv: []string{"/sandboxtest/no/such/program"}}, 127)
		exits(t, s, sh("sandboxtest-no-such-program"), 127)
	}},
	{"a program that is not executable is 126", processes, func(t *testing.T, s *suite) {
		exits(t, s, sandbox.Command{Argv: []string{"/etc/passwd"}}, 126)
		if r := exec(t, s.shared(t), sh("exit 126")); r.NotStarted {
			t.Errorf("exit 126: got %+v, but it was started", r.ExitStatus)
		}
		exits(t, s, sandbox.Command{Argv: []string{"/etc"}}, 126)
	}},
	{"an unknown user is 126", processes, func(t *testing.T, s *suite) {
		refuses(t, s, sandbox.Command{Shell: "true", User: "sandboxtest-nobody"}, 126)
		exits(t, s, sandbox.Command{Shell: "true", User: "root:sandboxtest-nobody"}, 126)
	}},
	{"a missing working directory is 126", processes, func(t *testing.T, s *suite) {
		refuses(t, s, sandbox.Command{Shell: "true", Dir: "/sandboxtest/no/such/dir"}, 126)
		exits(t, s, sandbox.Command{Shell: "true", Dir: "/etc/passwd"}, 126)
	}},
	{"Argv is run as it is", processes, argvAsIs},
	{"Shell is run by bash", processes, func(t *testing.T, s *suite) {
		prints(t, s, sh(`a=(x y z); echo "${a[1]} ${BASH_VERSION:+bash}"`), "y bash")
	}},
	{"Argv wins over Shell", processes, func(t *testing.T, s *suite) {
		prints(t, s, sandbox.Command{Argv: []string{"echo", "argv"}, Shell: "echo shell"}, "argv")
	}},
	{"a long Shell text is run", processes, func(t *testing.T, s *suite) {
		prints(t, s, sh(": "+strings.Repeat("x", 100_000)+"\necho end"), "end")
	}},
	{"the command's Env wins over the Spec's, later entries win", processes, envPrecedence},
	{"Env values are kept byte by byte", processes, func(t *testing.T, s *suite) {
		cmd := sh(`printf %s "$V" | od -An -tx1 | tr -d ' \n'`)
		cmd.Env = []string{"V=a b\n'\"$=\xff"}
		prints(t, s, cmd, "6120620a2722243dff")
	}},
	{"PATH and HOME are set when nobody sets them", processes, func(t *testing.T, s *suite) {
		prints(t, s, sh(`[ -n "$PATH" ] && [ -n "$HOME" ] && echo set`), "set")
	}},
	{"User by name", processes | otherUser, func(t *testing.T, s *suite) { userIs(t, s, s.cfg.User.Name) }},
	{"User by uid", processes | otherUser, func(t *testing.T, s *suite) { userIs(t, s, fmt.Sprint(s.cfg.User.UID)) }},
	{"User by uid:gid", processes | otherUser, func(t *testing.T, s *suite) {
		userIs(t, s, fmt.Sprintf("%d:%d", s.cfg.User.UID, s.cfg.User.GID))
	}},
	{"User by name:group", processes | otherUser, func(t *testing.T, s *suite) {
		userIs(t, s, s.cfg.User.Name+":"+s.cfg.User.Group)
	}},
	{"User by a uid that no passwd entry has", processes | otherUser, func(t *testing.T, s *suite) {
		prints(t, s, sandbox.Command{Shell: "id -u; id -g", User: "54321:54322"}, "54321\n54322")
	}},
	{"the Spec's User is for commands that name none", processes | otherUser, specUser},
	{"Dir is the working directory", processes, func(t *testing.T, s *suite) {
		prints(t, s, sandbox.Command{Shell: "pwd", Dir: "/etc"}, "/etc")
	}},
	{"the Spec's Workdir is for commands that name none", processes, specWorkdir},
	{"Stdin is read to its end", 0, stdinToEnd},
	{"without Stdin the command reads end of file", processes, func(t *testing.T, s *suite) {
		prints(t, s, sh("cat; echo end"), "end")
	}},
	{"a command need not read its Stdin", processes, func(t *testing.T, s *suite) {
		cmd := sh("exec true")
		cmd.Stdin = strings.NewReader(strings.Repeat("x", 8<<20))
		exits(t, s, cmd, 0)
	}},
	{"an endless Stdin does not keep Exec from returning", processes, func(t *testing.T, s *suite) {
		cmd := sh("head -c 3")
		cmd.Stdin = endless{}
		prints(t, s, cmd, "yyy")
	}},
	{"commands run at the same time", processes, concurrent},
	{"many commands in a row", processes, func(t *testing.T, s *suite) {
		for i := range 50 {
			prints(t, s, sh(fmt.Sprintf("echo %d", i)), fmt.Sprint(i))
		}
	}},
	{"orphans are reaped", processes, reaped},
}

func exits(t *testing.T, s *suite, cmd sandbox.Command, want int) {
	t.Helper()
	r := exec(t, s.shared(t), cmd)
	if r.Code != want || r.TimedOut {
		t.Errorf("exec %s: got %+v, want exit code %d; output %q", describe(cmd), r.ExitStatus, want, r.stdout)
	}
}

// refuses checks that nothing of a shell command ran.
func refuses(t *testing.T, s *suite, cmd sandbox.Command, want int) {
	t.Helper()
	exits(t, s, cmd, want)
	if r := exec(t, s.shared(t), cmd); !r.NotStarted || len(r.stdout) == 0 {
		t.Errorf("exec %s: got %+v, want that it was not started; output %q", describe(cmd), r.ExitStatus, r.stdout)
	}
}

func prints(t *testing.T, s *suite, cmd sandbox.Command, want string) {
	t.Helper()
	if got := output(t, s.shared(t), cmd); got != want {
		t.Errorf("exec %s: got output %q, want %q", describe(cmd), got, want)
	}
}

func argvAsIs(t *testing.T, s *suite) {
	args := []string{"", " ", "a b", "$HOME", "*", "'", "\"", "\\n", "-n", "ünï", "\xfe"}
	cmd := sandbox.Command{Argv: append([]string{"bash", "-c", `printf '<%s>' "$@"`, "argv0"}, args...)}
	if got, want := output(t, s.shared(t), cmd), "<"+strings.Join(args, "><")+">"; got != want {
		t.Errorf("got arguments %q, want %q", got, want)
	}
}

func envPrecedence(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Env = append(append([]string(nil), spec.Env...), "SBT_A=spec", "SBT_B=spec-first", "SBT_B=spec-last", "SBT_C=spec")
	sb := s.create(t, spec)
	cmd := sh(`echo "$SBT_A $SBT_B $SBT_C $SBT_D"`)
	cmd.Env = []string{"SBT_C=cmd-first", "SBT_C=cmd-last", "SBT_D=a=b"}
	if got, want := output(t, sb, cmd), "spec spec-last cmd-last a=b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func userIs(t *testing.T, s *suite, user string) {
	t.Helper()
	want := fmt.Sprintf("%d\n%d", s.cfg.User.UID, s.cfg.User.GID)
	prints(t, s, sandbox.Command{Shell: "id -u; id -g", User: user}, want)
}

func specUser(t *testing.T, s *suite) {
	spec := s.spec()
	spec.User = s.cfg.User.Name
	sb := s.create(t, spec)
	if got, want := output(t, sb, sh("id -u")), fmt.Sprint(s.cfg.User.UID); got != want {
		t.Errorf("a command without User: got uid %s, want %s", got, want)
	}
	if got := output(t, sb, sandbox.Command{Shell: "id -u", User: "root"}); got != "0" {
		t.Errorf("a command with User root: got uid %s, want 0", got)
	}
}

func specWorkdir(t *testing.T, s *suite) {
	spec := s.spec()
	spec.Workdir = "/etc"
	sb := s.create(t, spec)
	if got := output(t, sb, sh("pwd")); got != "/etc" {
		t.Errorf("a command without Dir: got %q, want /etc", got)
	}
	if got := output(t, sb, sandbox.Command{Shell: "pwd", Dir: "/usr"}); got != "/usr" {
		t.Errorf("a command with Dir: got %q, want /usr", got)
	}
}

func stdinToEnd(t *testing.T, s *suite) {
	text := strings.Repeat("0123456789abcdef\n", 20_000)
	cmd := sh(ScriptCat)
	cmd.Stdin = strings.NewReader(text)
	if r := exec(t, s.shared(t), cmd); r.Code != 0 || r.stdout != text {
		t.Errorf("got %+v and %d bytes, want code 0 and the %d bytes of standard input", r.ExitStatus, len(r.stdout), len(text))
	}
}

// endless is a reader of "y" without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'y'
	}
	return len(p), nil
}

// concurrent lets commands wait for each other: they end only when all run at
// the same time.
func concurrent(t *testing.T, s *suite) {
	const n = 8
	sb, dir := s.shared(t), s.dir()
	output(t, sb, sh("mkdir -p "+dir))
	script := fmt.Sprintf(`cd %s; : >$I; while [ "$(ls | wc -l)" -lt %d ]; do sleep 0.01; done; echo $I`, dir, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			cmd := sh(script)
			cmd.Env = []string{fmt.Sprintf("I=%d", i)}
			var out strings.Builder
			cmd.Stdout = &out
			st, err := sb.Exec(call(t), cmd)
			if err != nil || st.Code != 0 || out.String() != fmt.Sprintf("%d\n", i) {
				t.Errorf("command %d: status %+v, error %v, output %q", i, st, err, out.String())
			}
		})
	}
	wg.Wait()
}

// reaped leaves orphans that end, and waits until no zombie of theirs is left.
func reaped(t *testing.T, s *suite) {
	sb, dir := s.shared(t), s.dir()
	output(t, sb, sh(fmt.Sprintf(`mkdir -p %s; for i in 1 2 3 4 5; do ( (echo $BASHPID >%s/$i; exec true) & ) ; done`, dir, dir)))
	got := output(t, sb, sh(fmt.Sprintf(`cd %s; while [ "$(cat * | wc -l)" -lt 5 ]; do sleep 0.01; done
for p in $(cat *); do while [ -e /proc/$p ] && grep -q '^State:.Z' /proc/$p/status 2>/dev/null && [ $((n+=1)) -lt 1000 ]; do sleep 0.01; done; done
echo ${n:-0}`, path.Clean(dir))))
	if n := strings.TrimSpace(got); len(n) >= 4 {
		t.Errorf("zombies stayed for %s polls", n)
	}
}
