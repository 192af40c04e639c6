// Package programtest helps tests of programs and processes: it makes copies that
// can be executed at once, and lets tests that wait for other processes overlap.
package programtest

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
)

// Copy copies a program to a path that must not exist, so that it can be
// executed at once. While a file is open for writing nobody can execute it
// ("text file busy"), and a child process that another goroutine is starting has
// this process's files open until it executes its own program: no child begins
// between opening and closing.
func Copy(t testing.TB, source, path string) {
	t.Helper()
	in, err := os.Open(source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}
