//go:build unix

package installed_test

import (
	"bytes"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// bash runs a script with only these variables.
func bash(t testing.TB, script, dir string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// TestFinish: what an installation left can be kept: links into the prefix become relative,
// files with several names become several files, and everybody can read and run them.
func TestFinish(t *testing.T) {
	t.Parallel()
	top := filepath.Join(t.TempDir(), "the prefix")
	at := func(name string) string { return filepath.Join(top, name) }
	for _, err := range []error{
		os.MkdirAll(at("lib/deep er"), 0o755), os.Mkdir(at("bin"), 0o700),
		os.WriteFile(at("lib/deep er/program"), []byte("x"), 0o700), os.Link(at("lib/deep er/program"), at("lib/second")),
		os.Symlink(at("lib/deep er/program"), at("bin/absolute")), os.Symlink(at("lib"), at("lib/deep er/up")), os.Symlink("../lib/second", at("bin/relative")),
		os.Symlink("/etc/passwd", at("bin/elsewhere")), os.Symlink(at("none"), at("broken")), os.Chmod(at("lib/second"), 0o770),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, err := bash(t, installed.FinishScript, "/", "PREFIX="+top, "PATH="+os.Getenv("PATH")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range map[string]string{
		"bin/absolute": "../lib/deep er/program", "lib/deep er/up": "../../lib", "bin/relative": "../lib/second", "bin/elsewhere": "/etc/passwd", "broken": "none",
	} {
		if to, err := os.Readlink(at(name)); err != nil || to != want {
			t.Errorf("%s leads to %q, %v; want %q", name, to, err, want)
		}
	}
	one, err1 := os.Stat(at("lib/second"))
	two, err2 := os.Stat(at("bin/absolute"))
	if err := errors.Join(err1, err2); err != nil || os.SameFile(one, two) || one.Mode().Perm() != 0o755 || two.Mode().Perm() != 0o755 {
		t.Errorf("the program's names are %v and %v, %v", one, two, err)
	}
	if info, err := os.Stat(at("bin")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("bin is %v, %v", info, err)
	}
}

// TestInstructionsReachPrograms: each of the agents gives its program the instruction as it
// is, whatever it begins with or has in it, as an argument of its own, behind "=" or as
// its input.
func TestInstructionsReachPrograms(t *testing.T) {
	t.Parallel()
	for _, d := range installed.Definitions() {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			for _, instruction := range []string{"do it", "-x --version", "--help", "@/etc/passwd", "a\nb\n\nc", "$(touch planted) `touch planted` ${HOME} \"'\\", "/slash", "é✓", strings.Repeat("x y", 30<<10)} {
				desk := newDesk(t)
				desk.env.Model = model(d.Model.APIs...)
				a := open(t, d, agent.Config{Model: `p/it's "m" $(touch planted)`})
				var script string
				if _, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: instruction}); err != nil {
					t.Fatal(err)
				}
				var cmd sandbox.Command
				for _, c := range desk.ran {
					if strings.HasSuffix(c.Shell, "\n"+strings.TrimPrefix(c.Shell, ". /proctor/agent.sh\n")) && slices.Contains(c.Env, "PROCTOR_INSTRUCTION="+instruction) && !strings.Contains(c.Shell, "umask") && script == "" {
						cmd, script = c, strings.TrimPrefix(c.Shell, ". /proctor/agent.sh\n")
					}
				}
				dir := t.TempDir()
				program := strings.Fields(d.Check.Command)[0]
				// The shell writes it, since a file that this process has open for writing while
				// another test starts a program cannot be run.
				stub := "cat > " + program + " <<'END'\n#!/bin/bash\nprintf '%s\\0' \"$@\" > args\ncat > input\nEND\nchmod +x " + program + "\n"
				script = strings.ReplaceAll(script, "/logs/agent", dir+"/logs")
				if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
					t.Fatal(err)
				}
				out, err := bash(t, stub+script+"\n", dir, append(cmd.Env, "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))...)
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				args, err1 := os.ReadFile(filepath.Join(dir, "args"))
				input, err2 := os.ReadFile(filepath.Join(dir, "input"))
				if err := errors.Join(err1, err2); err != nil {
					t.Fatal(err)
				}
				words := strings.Split(string(args), "\x00")
				at := slices.IndexFunc(words, func(w string) bool { return w == instruction || isOption(w, instruction) })
				dashed := at >= 0 && words[at] == instruction && instruction[0] == '-' && !slices.Contains(words[:at], "--")
				if (at < 0 || dashed) && string(input) != instruction {
					t.Errorf("%.40q reaches it as %.300q with the input %.40q", instruction, words, input)
				}
				if _, err := os.Lstat(filepath.Join(dir, "planted")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%q was run", instruction)
				}
			}
		})
	}
}

// isOption reports whether a word is an option with the instruction behind it, or with the
// path of a file that has it.
func isOption(word, instruction string) bool {
	option, ok := strings.CutSuffix(word, instruction)
	if ok && (strings.HasPrefix(option, "--") && strings.HasSuffix(option, "=") || len(option) == 2 && option[0] == '-') {
		return true
	}
	_, file, _ := strings.Cut(word, ".path=")
	data, err := os.ReadFile(file)
	return err == nil && string(data) == instruction
}

// TestFilesOverPlantedOnes: a file of the program is written also where an agent left a pipe
// or a link, which is not followed; only the user can read it.
func TestFilesOverPlantedOnes(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	if _, err := open(t, parse(t, "[[file]]\npath = '~/a b/c'\ncontent = 'key'\n"), agent.Config{}).Run(t.Context(), desk.env, agent.Task{Instruction: "x"}); err != nil {
		t.Fatal(err)
	}
	script := desk.shells()[0]
	for name, plant := range map[string]func(file, other string) error{
		"nothing": func(string, string) error { return nil },
		"a pipe":  func(file, _ string) error { return syscall.Mkfifo(file, 0o666) },
		"a link":  func(file, other string) error { return os.Symlink(other, file) },
		"a file":  func(file, _ string) error { return os.WriteFile(file, []byte("long ago"), 0o444) },
	} {
		home := t.TempDir()
		file, other := filepath.Join(home, "a b", "c"), filepath.Join(home, "other")
		if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), plant(file, other)); err != nil {
			t.Fatal(err)
		}
		out, err := bash(t, "printf key | { "+script+"\n}", home, "HOME="+home, "PATH="+os.Getenv("PATH"))
		info, statErr := os.Lstat(file)
		if err := errors.Join(err, statErr); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
			continue
		}
		data, err := os.ReadFile(file)
		if info.Mode() != 0o600 || err != nil || string(data) != "key" {
			t.Errorf("%s: it is %v with %q, %v", name, info.Mode(), data, err)
		}
		if _, err := os.Lstat(other); err == nil {
			t.Errorf("%s: the link was followed", name)
		}
	}
}

// TestProfile: commands have a home that they can write to, whatever the user's is, and
// find the program.
func TestProfile(t *testing.T) {
	t.Parallel()
	desk := newDesk(t)
	desk.env.Installed = &agent.Installed{Prefix: "/opt/it's here", Trusted: true}
	if err := open(t, parse(t, ""), agent.Config{}).Setup(t.Context(), desk.env); err != nil {
		t.Fatal(err)
	}
	profile, err := desk.sb.ReadFile("/proctor/agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	file := filepath.Join(temp, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{temp, filepath.Join(temp, "a b/new"), "", "/proc/nonexistent", file, "/dev/null/x"} {
		env := []string{"PATH=" + os.Getenv("PATH")}
		if home != "" {
			env = append(env, "HOME="+home)
		}
		out, err := bash(t, string(profile)+"touch \"$HOME/.probe\" && rm \"$HOME/.probe\" && printf '%s|%s' \"$HOME\" \"$PATH\"", temp, env...)
		got, path, _ := strings.Cut(out, "|")
		if err != nil || got == "" || strings.HasPrefix(home, temp) && home != file && got != home || !strings.HasPrefix(path, "/opt/it's here/bin:") {
			t.Errorf("home %q: %q, %v", home, out, err)
		}
	}
}

// TestTrust: an installation gets the certificates that this machine trusts, and no key
// that is beside them.
func TestTrust(t *testing.T) {
	t.Parallel()
	random := make([]byte, 64)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: random})
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: random[:32]})
	file := filepath.Join(t.TempDir(), "both.pem")
	if err := os.WriteFile(file, slices.Concat([]byte("# mine\n"), key, certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	desk := newDesk(t, fake.On("make it", fake.Exit(0)))
	d := parse(t, scripted)
	in, err := d.Entry().Install(agent.Config{Name: "mine", Lookup: func(name string) (string, bool) { return file, name == "SSL_CERT_FILE" }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := in.Install(t.Context(), desk.env); err != nil {
		t.Fatal(err)
	}
	got, err := desk.sb.ReadFile("/installed-agent/.work/ca.crt")
	if err != nil || !bytes.Equal(got, certificate) || !slices.Contains(desk.ran[0].Env, "SSL_CERT_FILE=/installed-agent/.work/ca.crt") {
		t.Errorf("got %s, %v; %q", got, err, desk.ran[0].Env)
	}
}
