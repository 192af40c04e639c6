//go:build unix

package planted

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Kind is something that may stand where a file is expected.
type Kind string

// Kinds of what may stand there.
const (
	Pipe      Kind = "pipe"
	Socket    Kind = "socket"
	Endless   Kind = "link to an endless device"
	Sparse    Kind = "sparse file"
	Directory Kind = "directory"
)

// Kinds lists all of them.
func Kinds() []Kind { return []Kind{Pipe, Socket, Endless, Sparse, Directory} }

// sparseSize is more than any reader may take, in bytes; a sparse file needs no room.
const sparseSize = 1 << 40

// Put replaces what is at path.
func (k Kind) Put(t testing.TB, path string) {
	t.Helper()
	must(t, os.RemoveAll(path))
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	switch k {
	case Pipe:
		must(t, syscall.Mkfifo(path, 0o644))
	case Socket:
		listen(t, path)
	case Endless:
		must(t, os.Symlink("/dev/zero", path))
	case Sparse:
		must(t, os.WriteFile(path, nil, 0o644))
		must(t, os.Truncate(path, sparseSize))
	default:
		must(t, os.Mkdir(path, 0o755))
	}
}

// listen makes a socket elsewhere first: its path must be short.
func listen(t testing.TB, path string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	defer func() { _ = os.RemoveAll(dir) }()
	short := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	must(t, os.Rename(short, path))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Files writes files, named with slashes, below a directory.
func Files(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}
