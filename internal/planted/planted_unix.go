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
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := k.put(path); err != nil {
		t.Fatal(err)
	}
}

func (k Kind) put(path string) error {
	switch k {
	case Pipe:
		return syscall.Mkfifo(path, 0o644)
	case Socket:
		return listen(path)
	case Endless:
		return os.Symlink("/dev/zero", path)
	case Sparse:
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			return err
		}
		return os.Truncate(path, sparseSize)
	default:
		return os.Mkdir(path, 0o755)
	}
}

// listen makes a socket elsewhere first: its path must be short.
func listen(path string) error {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	short := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		return err
	}
	return os.Rename(short, path)
}

// Files writes files, named with slashes, below a directory.
func Files(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
