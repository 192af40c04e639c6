package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
)

// TestCubeInit makes a module, builds it against this tree without a network,
// and uses it as its author would.
func TestCubeInit(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	f := cubeInit{name: "word-puzzles", parent: parent, module: "example.org/word-puzzles"}
	if err := f.findSources(); err != nil || f.sources != repositoryPath(t, ".") {
		t.Fatalf("the sources are in %q (%v)", f.sources, err)
	}
	dir, err := initCube(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := initCube(cubeInit{name: "word-puzzles", parent: parent}); exitCode(err) != exitUsage {
		t.Errorf("making it again: %v, want a refusal", err)
	}
	for _, name := range []string{"", "../x", "A b", "x/y", "cube", "main", "go", "con", "fmt"} {
		if _, err := initCube(cubeInit{name: name, parent: parent}); exitCode(err) != exitUsage {
			t.Errorf("a cube called %q: %v, want a refusal", name, err)
		}
	}
	if ignored, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || !strings.Contains(string(ignored), "jobs/") {
		t.Errorf("git is told to ignore %q, %v", ignored, err)
	}
	sums, err := os.ReadFile(repositoryPath(t, "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "CGO_ENABLED=0", "XDG_CACHE_HOME="+parent)
		if name == "go" { // the build cache is the user's
			cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOWORK=off", "CGO_ENABLED=0")
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("go", "test", "./...")
	run("go", "build", "-o", "program", ".")
	for _, c := range []struct{ command, want string }{
		{"list", "word-puzzles  2 tasks"},
		{"show", "benchmark"},
		{"test", "word-puzzles: 15 of 15 checks passed"},
		{"install", "nothing to install"},
		{"run -o jobs --job-name j", "Mean 1.000"},
	} {
		if out := run("./program", strings.Fields(c.command)...); !strings.Contains(out, c.want) {
			t.Errorf("%s says\n%s\nwant %q", c.command, out, c.want)
		}
	}
	if out := run("./program", "run", "-t", "cat", "-a", "nop", "-o", "jobs", "--job-name", "n"); !strings.Contains(out, "1 trial: 1 scored") {
		t.Errorf("one task with agent nop: %s", out)
	}
	// A killed run is resumed by the same program.
	results, err := filepath.Glob(filepath.Join(dir, "jobs", "j", "cat__*", "result.json"))
	if err != nil || len(results) != 1 {
		t.Fatalf("results are %q (%v)", results, err)
	}
	for _, path := range []string{results[0], filepath.Join(dir, "jobs", "j", "result.json")} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if out := run("./program", "resume", "jobs/j"); !strings.Contains(out, "1 trial of 2 kept, 1 to run") || !strings.Contains(out, "Mean 1.000") {
		t.Errorf("resume says\n%s", out)
	}
}

// TestCubeInitWalk does what init prints, with sources that it finds and with those
// that it is told of afterwards.
func TestCubeInitWalk(t *testing.T) {
	t.Parallel()
	for name, found := range map[string]bool{"found sources": true, "told sources": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := cubeInit{name: "word-puzzles", parent: filepath.Join(t.TempDir(), "it's here")}
			if found {
				f.sources = repositoryPath(t, ".")
			}
			dir, err := initCube(f)
			if err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			printInit(&Env{Stdout: &said}, dir, f)
			walk(t, dir, printedCommands(t, said.String(), found))
		})
	}
}

// printedCommands are the lines for a shell in what init says.
func printedCommands(t *testing.T, said string, found bool) string {
	t.Helper()
	if found {
		_, commands, ok := strings.Cut(said, "; try it with: ")
		if !ok || strings.Contains(said, sourcesPlace) {
			t.Fatalf("init says %q", said)
		}
		return commands
	}
	var commands []string
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "  ") {
			commands = append(commands, line)
		}
	}
	if len(commands) != 2 || strings.Count(commands[0], "="+sourcesPlace+"\n") != 1 {
		t.Fatalf("init says %q", said)
	}
	return strings.Replace(strings.Join(commands, ""), sourcesPlace, repositoryPath(t, "."), 1)
}

// walk runs a shell's commands, from the modules that are on this machine or else
// from those of a proxy.
func walk(t *testing.T, dir, commands string) {
	t.Helper()
	sums, err := os.ReadFile(repositoryPath(t, "go.sum"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, more := range []string{"GOPROXY=off", "GOSUMDB=off"} {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", commands)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", more)
		if out, err = cmd.CombinedOutput(); err == nil {
			break
		}
	}
	need.That(t, "modules", err == nil || !strings.Contains(string(out), "dial tcp"), "needs the modules that 'go mod tidy' reads")
	if err != nil || !strings.Contains(string(out), "Mean 1.000") {
		t.Errorf("%s: %v\n%s", commands, err, out)
	}
}

// TestSmallCubes: programs of cubes that need no containers have no container
// runtime in them.
func TestSmallCubes(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "github.com/proctor-run/proctor/cubecli").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		for _, heavy := range []string{"gvisor.dev/", "/sandbox/oci", "/sandbox/docker", "github.com/moby/", "cloud"} {
			if strings.Contains(dep, heavy) {
				t.Errorf("cubecli needs %s", strings.TrimSpace(dep))
			}
		}
	}
}
