package oci

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/internal/programtest"
	"github.com/proctor-run/proctor/sandbox/guest"
	"github.com/proctor-run/proctor/sandbox/oci/runsc"
)

const testBuild = "test"

// testTUN is an environment variable: the TUN device that ordinary users have.
const testTUN = "PROCTOR_TEST_TUN"

// testStatic is an environment variable: the program of staticProgram that a test
// program has built for those that it starts.
const testStatic = "PROCTOR_TEST_STATIC"

// TestMain is the program whose helpers the tests use: the guest, the built-in
// runtime, and the launcher.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == GuestArg0 {
		os.Exit(guest.Program(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, testBuild))
	}
	if code, handled := runsc.Reexec(os.Args, testBuild); handled {
		os.Exit(code)
	}
	if code, handled := Reexec(os.Args); handled {
		os.Exit(code)
	}
	if isProbe(os.Args[0]) {
		os.Exit(runProbe(os.Args[1:]))
	}
	if path := os.Getenv(testTUN); path != "" {
		tunPath = path
	}
	if os.Args[0] == ownerArg0 {
		os.Exit(runOwner(os.Args[1:]))
	}
	programtest.Overlap()
	code := m.Run()
	if dir, err := testsDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// testsDir returns a directory for what the tests of this process share.
var testsDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "oci") })

var builtProgram = sync.OnceValues(makeStatic)

// staticProgram returns a test program without shared libraries, as the
// built-in runtime and images need it. Where the race detector or a C compiler
// made this one need some, it is built again without.
func staticProgram(t testing.TB) string {
	t.Helper()
	path, err := builtProgram()
	if err != nil {
		need.That(t, "go", false, fmt.Sprintf("needs a static test program: %v", err))
	}
	return path
}

func makeStatic() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if dynamic, err := needsLibraries(exe); err != nil || !dynamic {
		return exe, err
	}
	if path := os.Getenv(testStatic); path != "" {
		return path, nil
	}
	dir, err := testsDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "oci.test")
	cmd := exec.Command("go", "test", "-c", "-buildvcs=false", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, os.Setenv(testStatic, path)
}

func TestNeedsLibraries(t *testing.T) {
	t.Parallel()
	if dynamic, err := needsLibraries(staticProgram(t)); err != nil || dynamic {
		t.Errorf("a static program: %v, %v", dynamic, err)
	}
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := needsLibraries(script); err == nil {
		t.Error("a script passes for a program")
	}
	shell := need.Program(t, "sh")
	f, err := elf.Open(shell)
	if err != nil {
		t.Skipf("the shell is no ELF program: %v", err)
	}
	defer func() { _ = f.Close() }()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if dynamic, err := needsLibraries(shell); err != nil || dynamic != (len(libraries) > 0) {
		t.Errorf("%s with %q: %v, %v", shell, libraries, dynamic, err)
	}
}
