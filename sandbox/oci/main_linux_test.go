package oci

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/sandbox/guest"
)

const testBuild = "test"

// TestMain is the program whose helpers the tests use: the guest, the built-in
// runtime, and the launcher.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == GuestArg0 {
		os.Exit(guest.Main(os.Stdin, os.Stdout, os.Stderr, testBuild))
	}
	if code, handled := Reexec(os.Args); handled {
		os.Exit(code)
	}
	if os.Args[0] == ownerArg0 {
		os.Exit(runOwner(os.Args[1:]))
	}
	os.Exit(m.Run())
}
