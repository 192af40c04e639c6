package installed_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// scripted is small with an installation and a version that is looked for.
const scripted = "[model]\nrequired = false\n[install]\nscript = 'make it {{.Version}}'\n"

func withVersion(t testing.TB, more string) func(settings ...string) (agent.Agent, agent.Config) {
	t.Helper()
	d := parse(t, scripted+more, `output =`, "version = '1.2.3'\noutput =", `command = "mine --version"`, `command = "mine --version"`+"\npattern = '\\d+\\.\\d+\\.\\d+'")
	return func(settings ...string) (agent.Agent, agent.Config) {
		c := agent.Config{Name: "mine", Settings: value.NewObject(1)}
		for i := 0; i+1 < len(settings); i += 2 {
			c.Settings.Set(settings[i], value.Str(settings[i+1]))
		}
		return open(t, d, c), c
	}
}

// prefix is the one that the profile of a command has, empty for none.
func prefix(p *fake.Process) string {
	data, err := p.Sandbox.ReadFile("/proctor/agent.sh")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "PATH="); ok {
			return strings.TrimSuffix(strings.TrimSuffix(dir, ":$PATH"), "/bin")
		}
	}
	return ""
}

// machine is what a sandbox has: the version of the program in the image, in what was
// installed before, and in what an installation makes; empty for none.
type machine struct{ image, known, made string }

const knownPrefix, ownPrefix = "/installed-agent/mine", "/installed-agent/mine-own"

func (m *machine) rules() []fake.Rule {
	installed := false
	here := func(p *fake.Process) string {
		switch at := prefix(p); {
		case at == knownPrefix:
			return m.known
		case at == ownPrefix && installed:
			return m.made
		}
		return m.image
	}
	return []fake.Rule{
		fake.On("command -v -- mine", func(_ context.Context, p *fake.Process) (int, error) {
			if here(p) == "" {
				return 1, nil
			}
			return 0, nil
		}),
		fake.On("mine --version", func(_ context.Context, p *fake.Process) (int, error) {
			v := here(p)
			if v == "" {
				_, _ = p.Stdout.Write([]byte("mine: not found\n"))
				return 127, nil
			}
			_, _ = p.Stdout.Write([]byte("mine version " + v + " (x)\n"))
			return 0, nil
		}),
		fake.On("make it", func(_ context.Context, p *fake.Process) (int, error) {
			installed = true
			if p.User != "root" || p.Env["PREFIX"] != ownPrefix {
				return 1, nil
			}
			return 0, nil
		}),
	}
}

// TestSetup: the program that runs is the one that was installed before, that of the image
// or one that is installed, as the settings ask.
func TestSetup(t *testing.T) {
	t.Parallel()
	known := &agent.Installed{Prefix: knownPrefix, Version: "1.2.3", Trusted: true}
	for name, c := range map[string]struct {
		machine  machine
		known    *agent.Installed
		settings []string
		version  string
		prefix   string // that commands have at the end
		made     bool
		warned   string
		err      string
	}{
		"in the image":             {machine: machine{image: "1.0.0"}, version: "1.0.0"},
		"in no image":              {machine: machine{made: "1.2.3"}, version: "1.2.3", prefix: ownPrefix, made: true},
		"known":                    {machine: machine{known: "1.2.3", image: "1.0.0"}, known: known, version: "1.2.3", prefix: knownPrefix},
		"known to be in the image": {machine: machine{image: "1.0.0"}, known: &agent.Installed{Version: "1.0.0", Trusted: true}, version: "1.0.0"},
		"known elsewhere": {machine: machine{known: "1.2.3"}, known: &agent.Installed{Prefix: knownPrefix, Version: "1.2.3"},
			version: "1.2.3", prefix: knownPrefix},
		"known, does not run": {machine: machine{made: "1.2.3"}, known: &agent.Installed{Prefix: knownPrefix, Version: "1.2.3"},
			version: "1.2.3", prefix: ownPrefix, made: true, warned: "does not run in this image"},
		"known, does not run, in the image": {machine: machine{image: "1.0.0"}, known: &agent.Installed{Prefix: knownPrefix, Version: "1.2.3"},
			version: "1.0.0", warned: "does not run in this image"},
		"always": {machine: machine{image: "1.0.0", known: "1.2.3", made: "1.2.3"}, known: known, settings: []string{"install", "always"},
			version: "1.2.3", prefix: ownPrefix, made: true},
		"skip":                    {machine: machine{image: "1.0.0"}, settings: []string{"install", "skip"}, version: "1.0.0"},
		"skip, not there":         {settings: []string{"install", "skip"}, version: "1.2.3", err: "mine is not in the image, and setting install is skip"},
		"another version":         {machine: machine{image: "1.0.0", made: "2.0.0"}, settings: []string{"version", "2.0.0"}, version: "2.0.0", prefix: ownPrefix, made: true},
		"that version":            {machine: machine{image: "2.0.0"}, settings: []string{"version", "2.0.0"}, version: "2.0.0"},
		"does not run":            {version: "1.2.3", prefix: ownPrefix, made: true, err: "mine was installed, but does not run: 'mine --version' ends with 127: mine: not found"},
		"prints no version":       {machine: machine{made: "new"}, version: "1.2.3", prefix: ownPrefix, made: true, err: "prints no version: mine version new"},
		"the image's has another": {machine: machine{image: "odd", made: "1.2.3"}, version: "1.2.3", prefix: ownPrefix, made: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desk := newDesk(t, c.machine.rules()...)
			desk.env.Installed = c.known
			a, _ := withVersion(t, "")(c.settings...)
			err := a.Setup(t.Context(), desk.env)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if got := a.Info(); got.Name != "mine" || got.Version != c.version {
				t.Errorf("it is %+v, want %q", got, c.version)
			}
			if got := prefix(&fake.Process{Sandbox: desk.sb}); got != c.prefix {
				t.Errorf("the profile has %q, want %q", got, c.prefix)
			}
			if made := slices.ContainsFunc(desk.shells(), func(s string) bool { return strings.HasPrefix(s, "make it ") }); made != c.made {
				t.Errorf("installed: %t", made)
			}
			if warned := strings.Join(desk.warned, "\n"); !strings.Contains(warned, c.warned) || c.warned == "" && warned != "" {
				t.Errorf("warned %q", warned)
			}
		})
	}
}

// TestSetupFails: a sandbox that fails, or is gone, is an error of the set-up and no reason
// to install anything.
func TestSetupFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, command := range []string{"command -v", "mine --version", "make it", "chmod -R"} {
		m := machine{image: "1.0.0"}
		if command == "make it" || command == "chmod -R" {
			m.image = ""
		}
		desk := newDesk(t, append([]fake.Rule{fake.On(command, fake.Fail(broken))}, m.rules()...)...)
		a, _ := withVersion(t, "")()
		err := a.Setup(t.Context(), desk.env)
		if command == "mine --version" { // it says nothing of the sandbox: it is installed
			if err == nil {
				t.Errorf("%s: no error", command)
			}
			continue
		}
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", command, err)
		}
	}
	desk := newDesk(t, fake.On("mine --version", fake.Hang()))
	desk.env.Installed = &agent.Installed{Prefix: knownPrefix}
	ctx, cancel := context.WithCancel(t.Context())
	desk.env.Warn = func(string, ...any) { t.Error("it warns though it is over") }
	go cancel()
	a, _ := withVersion(t, "")()
	if err := a.Setup(ctx, desk.env); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestHangingCheck: a program that does not tell its version is one that does not run.
func TestHangingCheck(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, fake.On("mine --version", fake.Hang()))
	desk.env.Installed = &agent.Installed{Prefix: knownPrefix}
	a, _ := withVersion(t, "")("install", "auto")
	synctest.Test(t, func(t *testing.T) {
		err := a.Setup(context.Background(), desk.env)
		if err == nil || !strings.Contains(err.Error(), "has not ended after 2m0s") || len(desk.warned) != 1 {
			t.Errorf("got %v, warned %q", err, desk.warned)
		}
	})
}

// TestRun: the program gets its files, its variables and the instruction, as the agent's
// user, and what it printed is kept.
func TestRun(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, fake.Rule{Match: func(c sandbox.Command) bool { return strings.HasSuffix(c.Shell, "\nmine") }, Do: fake.InOrder(fake.Print("done\n"), fake.Exit(3))})
	d := parse(t, "after = 'keep it'\n[run.env]\nA = 'x{{.Model.Name}}'\nEMPTY = '{{.Skills}}'\nTHEIRS = 'no'\n[[file]]\npath = '~/.a b/c'\ncontent = 'one'\n[[file]]\npath = '/etc/d'\ncontent = ''\n[skills]\ndir = '~/.skills'\n")
	a := open(t, d, agent.Config{Model: "p/m", Env: []string{"THEIRS=yes"}})
	deadline := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	_, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "-do it\n", Deadline: deadline})
	exit, ok := errors.AsType[*agent.ExitError](err)
	if !ok || exit.Code != 3 || exit.Command != "mine" || exit.Output != "done\n" {
		t.Fatalf("got %v", err)
	}
	want := []string{
		"umask 077; mkdir -p \"$(dirname \"$HOME\"/'.a b/c')\" && rm -f \"$HOME\"/'.a b/c' && cat > \"$HOME\"/'.a b/c'",
		`umask 077; mkdir -p "$(dirname /etc/d)" && rm -f /etc/d && cat > /etc/d`, "mine", "keep it",
	}
	if got := desk.shells(); !slices.Equal(got, want) {
		t.Errorf("ran %q", got)
	}
	for _, cmd := range desk.ran {
		if cmd.User != "worker" {
			t.Errorf("%q ran as %q", cmd.Shell, cmd.User)
		}
	}
	run := desk.ran[2]
	for _, one := range []string{"A=xm", "PROCTOR_INSTRUCTION=-do it\n", "PROCTOR_MODEL=p/m", "PROCTOR_DEADLINE=2030-01-02T03:04:05Z"} {
		if !slices.Contains(run.Env, one) {
			t.Errorf("%q is not among %q", one, run.Env)
		}
	}
	if slices.Contains(run.Env, "EMPTY=") || slices.Index(run.Env, "THEIRS=yes") < slices.Index(run.Env, "THEIRS=no") || run.Stdin != nil {
		t.Errorf("variables %q, input %v", run.Env, run.Stdin)
	}
	if data, err := os.ReadFile(filepath.Join(desk.env.LogDir, "mine.txt")); err != nil || string(data) != "done\n" {
		t.Errorf("kept %q, %v", data, err)
	}
	desk.env.SkillsDir = "/my skills"
	desk.ran = nil
	if _, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "x"}); err == nil {
		t.Error("no error")
	}
	if got := desk.shells(); !slices.Contains(got, `mkdir -p "$HOME"/.skills && { cp -r '/my skills'/. "$HOME"/.skills/ || true; }`) {
		t.Errorf("ran %q", got)
	}
}

// TestInstructions: what cannot be given to a program is refused before it runs.
func TestInstructions(t *testing.T) {
	t.Parallel()
	template := filepath.Join(t.TempDir(), "prompt.j2")
	if err := os.WriteFile(template, []byte("<{{ instruction }}>"), 0o644); err != nil {
		t.Fatal(err)
	}
	settings := value.NewObject(1)
	settings.Set("prompt_template_path", value.Str(template))
	for _, c := range []struct {
		instruction string
		settings    *value.Object
		want, err   string
	}{
		{instruction: "@x\n-y", want: "@x\n-y"},
		{instruction: "it", settings: settings, want: "<it>"},
		{instruction: strings.Repeat("é", 45<<10), want: strings.Repeat("é", 45<<10)},
		{instruction: strings.Repeat("x", 96<<10), want: strings.Repeat("x", 96<<10)},
		{instruction: strings.Repeat("x", 96<<10+1), err: "the instruction has 98305 bytes, and agent mine takes at most 98304"},
		{instruction: strings.Repeat("x", 96<<10), settings: settings, err: "has 98306 bytes"},
		{instruction: "a\x00b", err: "the instruction has a NUL character"},
	} {
		desk := newDesk(t)
		a := open(t, parse(t, ""), agent.Config{Settings: c.settings})
		_, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: c.instruction})
		if c.err != "" {
			typed, ok := errors.AsType[*exception.Error](err)
			if !ok || typed.ErrorType() != exception.ValueError || !strings.Contains(err.Error(), c.err) || len(desk.ran) > 0 {
				t.Errorf("got %v after %q", err, desk.shells())
			}
			continue
		}
		if err != nil || len(desk.ran) != 1 || !slices.Contains(desk.ran[0].Env, "PROCTOR_INSTRUCTION="+c.want) {
			t.Errorf("%.20q: %v", c.instruction, err)
		}
	}
}

// TestAfter: what is run when the program has ended runs also at its deadline, and is ended
// when it hangs; what goes wrong there is told.
func TestAfter(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, fake.On("keep it", fake.Hang()), fake.On("mine", fake.Hang()))
	a := open(t, parse(t, "after = 'keep it'\n"), agent.Config{})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		begun := time.Now()
		_, err := a.Run(ctx, desk.env, agent.Task{Instruction: "x"})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Hour+time.Minute {
			t.Errorf("got %v after %s", err, time.Since(begun))
		}
	})
	if got := desk.shells(); !slices.Equal(got, []string{"mine", "keep it"}) || len(desk.warned) != 1 || !strings.HasPrefix(desk.warned[0], "keeping what mine left: ") {
		t.Errorf("ran %q, warned %q", got, desk.warned)
	}
	desk = newDesk(t, fake.On("keep it", fake.Print("no space\n"), fake.Exit(1)))
	if _, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "x"}); err != nil || len(desk.warned) != 1 || desk.warned[0] != "keeping what mine left: exit 1: no space" {
		t.Errorf("got %v, warned %q", err, desk.warned)
	}
}

// TestUnwritableFile: where a file of the program cannot be written it does not run.
func TestUnwritableFile(t *testing.T) {
	t.Parallel()
	desk := newDesk(t, fake.On("umask", fake.Print("mkdir: cannot create directory\n"), fake.Exit(1)))
	a := open(t, parse(t, "[[file]]\npath = '~/x/y'\n"), agent.Config{})
	_, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "x"})
	if err == nil || err.Error() != "writing ~/x/y: exit 1: mkdir: cannot create directory" || len(desk.ran) != 1 {
		t.Errorf("got %v after %q", err, desk.shells())
	}
}
