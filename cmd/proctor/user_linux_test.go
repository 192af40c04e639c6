package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
)

// nobodyElse is a user id that no other process has.
const nobodyElse = 54321

// ordinary makes commands run as a user who is not root, and who owns the
// place. The program is copied to where that user can execute it.
func (p place) ordinary(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	home := filepath.Join(p.dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	program := ""
	var as *syscall.SysProcAttr
	if os.Geteuid() == 0 {
		program = filepath.Join(p.dir, "proctor")
		programtest.Copy(t, "/proc/self/exe", program)
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyElse, Gid: nobodyElse}}
		for _, dir := range []string{p.dir, home} {
			if err := os.Chown(dir, nobodyElse, nobodyElse); err != nil {
				t.Fatal(err)
			}
		}
	}
	return func(args ...string) *exec.Cmd {
		cmd := p.command(args...)
		if program != "" {
			cmd.Path = program
		}
		cmd.SysProcAttr = as
		// No variable names a place for files: the home directory has it.
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return name == "PROCTOR_STATE_DIR" || name == "XDG_STATE_HOME"
		})
		cmd.Env = append(cmd.Env, "HOME="+home, "TMPDIR="+p.dir)
		return cmd
	}
}

// TestOrdinaryUser runs the README's first command as a user who is not root:
// what comes of it is the same, and nothing is left.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	for _, runtime := range []string{"gvisor", "runc"} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			err := hostSandboxes() // makes what this and all other users execute
			need.That(t, "host", err == nil, "needs sandboxes on the host's own root")
			p := newPlace(t)
			command := p.ordinary(t)
			needRuntime(t, finish(t, command("doctor", "--json")), runtime)
			if err := os.CopyFS(filepath.Join(p.dir, "examples", "tasks"), os.DirFS(repositoryPath(t, "examples/tasks"))); err != nil {
				t.Fatal(err)
			}

			done := finish(t, command("run", "-p", "examples/tasks", "-a", "oracle", "-e", "host", "--runtime", runtime, "--job-name", "j"))
			if done.code != 0 {
				t.Errorf("exit code %d, want 0; it says\n%s", done.code, done.stderr)
			}
			got := map[string]string{}
			for task, r := range jobRecords(t, filepath.Join(p.dir, "jobs", "j")) {
				got[task] = outcomeText(r)
			}
			want := map[string]string{"build-rpn": scoresOne, "env-templates": scoresOne, "healthcheck": scoresOne, "hello-world": scoresOne}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s\n%s", diff, done.stderr)
			}
			p.state = filepath.Join(p.dir, "home", ".local", "state", "proctor")
			if _, err := os.Stat(p.state); err != nil {
				t.Errorf("the state is not where it should be: %v", err)
			}
			if found := p.sandboxes(t); len(found) > 0 {
				t.Errorf("directories of sandboxes are left: %q", found)
			}
			if found := processesNaming(t, p.state); len(found) > 0 {
				t.Errorf("processes are left: %q", found)
			}
		})
	}
}

// needRuntime skips where the doctor says that the user cannot use a runtime.
func needRuntime(t *testing.T, doctor finished, runtime string) {
	t.Helper()
	var found []sandboxes.Diagnosis
	if err := json.Unmarshal([]byte(doctor.stdout), &found); err != nil {
		t.Fatalf("%v: %s%s", err, doctor.stdout, doctor.stderr)
	}
	i := slices.IndexFunc(found, func(d sandboxes.Diagnosis) bool { return d.Kind == sandboxes.KindRuntime && d.Name == runtime })
	if i < 0 {
		t.Fatalf("the doctor does not tell of %s: %s", runtime, doctor.stdout)
	}
	need.That(t, "userns", found[i].Available, "needs sandboxes for ordinary users: "+found[i].Detail)
}

// TestOrdinaryUserOwnsWhatAContainerLeft: an agent and tests that are root in a
// container leave nothing to its user's engine that the user cannot read, redact, move
// or remove.
func TestOrdinaryUserOwnsWhatAContainerLeft(t *testing.T) {
	t.Parallel()
	need.Root(t)
	engine := need.Image(t, exampleImage)
	socket, ok := strings.CutPrefix(engine, "unix://")
	need.That(t, "docker", ok, "needs an engine with a socket")
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	command := p.ordinary(t)
	const key = "k3y-of-the-step-0123456789"
	step := map[string]string{
		"instruction.md":    "Work.\n",
		"solution/solve.sh": "umask 077\nmkdir -p /logs/agent/deep/er /logs/artifacts/deep\nchmod 0 /logs/agent/deep/er\necho $STEP_KEY > /logs/artifacts/deep/key\ncp /bin/sh /logs/agent/sh && chmod 4755 /logs/agent/sh\n",
		"tests/test.sh":     "umask 077\necho 1 > /logs/verifier/reward.txt\n",
	}
	files := map[string]string{
		"task.toml":              "[environment.env]\nSTEP_KEY = \"" + key + "\"\n[[steps]]\nname = \"one\"\n[[steps]]\nname = \"two\"\n",
		"environment/Dockerfile": "FROM " + exampleImage + "\n",
	}
	for name, text := range step {
		files["steps/one/"+name], files["steps/two/"+name] = text, text
	}
	writeFiles(t, filepath.Join(p.dir, "task"), files)

	cmd := command("run", "-p", "task", "-e", "docker", "--job-name", "j")
	cmd.Env = append(cmd.Env, "DOCKER_HOST="+engine)
	cmd.SysProcAttr.Credential.Groups = []uint32{info.Sys().(*syscall.Stat_t).Gid}
	done := finish(t, cmd)
	if done.code != 0 || strings.Contains(done.stderr, "stays closed") {
		t.Errorf("exit code %d; it says\n%s%s", done.code, done.stdout, done.stderr)
	}
	if got := outcomeText(jobRecords(t, filepath.Join(p.dir, "jobs", "j"))["task"]); got != scoresOne {
		t.Errorf("the outcome is %s", got)
	}
	found := 0
	if err := filepath.WalkDir(filepath.Join(p.dir, "jobs"), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; uid != nobodyElse || info.Mode()&os.ModeSetuid != 0 {
			t.Errorf("%s belongs to %d, %v", path, uid, info.Mode())
		}
		if !e.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), key) {
			t.Errorf("%s holds the key", path)
		}
		if strings.HasSuffix(path, "/deep/key") {
			found++
		}
		return err
	}); err != nil || found == 0 {
		t.Errorf("%d files with a key were left, %v", found, err)
	}
}
