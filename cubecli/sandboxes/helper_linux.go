package sandboxes

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/version"
)

// With "go run", "go test" and "go build", what sandboxes need beside the program is built
// once of the same sources.

// helper is a command that is built of the sources of the running program.
type helper struct {
	name  string // of the program
	pkg   string
	flags string // for the linker, besides those of the version
	// ownModules: it is built with the versions of modules that proctor chose, also in a
	// module of an author's that has others.
	ownModules bool
	// notice is for users, before what takes long.
	notice string
}

func isDynamic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, fmt.Errorf("looking at the program: %w", err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return false, nil
}

// buildKey differs between helpers of different sources. Those of a module with
// a checksum are told by the module versions of the program; those in a
// directory by the build id, in which the linker puts a digest of everything
// that went into the program.
func buildKey(path string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("looking at the program: %w", err)
	}
	h := sha256.New()
	_, _ = fmt.Fprintln(h, version.Current())
	if i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == modulePath }); i >= 0 && info.Deps[i].Sum != "" {
		for _, m := range info.Deps {
			for ; m != nil; m = m.Replace {
				_, _ = fmt.Fprintln(h, m.Path, m.Version, m.Sum)
			}
		}
		return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("looking at the program: %w", err)
	}
	defer func() { _ = f.Close() }()
	_, _ = fmt.Fprintln(h, info)
	if note := f.Section(".note.go.buildid"); note != nil {
		if _, err := io.Copy(h, note.Open()); err != nil {
			return "", fmt.Errorf("looking at the program: %w", err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// buildOnce builds the program unless it is there. Of several that want it,
// also of other processes, one builds and the others wait.
func (h helper) buildOnce(ctx context.Context, o Options, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making a directory for the helper: %w", err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("locking the helper: %w", err)
	}
	defer func() { _ = lock.Close() }() // and with it the lock
	for {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for another build: %w", err)
		}
		if err := clock.Sleep(ctx, buildPoll); err != nil {
			return err
		}
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return h.build(ctx, o, path)
}

// buildPoll is how often somebody else's build is looked at.
const buildPoll = 50 * time.Millisecond

// build builds the helper of the sources that this program was built of, where
// they and a Go toolchain are there, as with "go run" and "go test".
func (h helper) build(ctx context.Context, o Options, path string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("finding a toolchain: %w", err)
	}
	env := append(o.Environ[:len(o.Environ):len(o.Environ)], "CGO_ENABLED=0")
	dir, err := h.buildDir(ctx, tool, env)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return fmt.Errorf("making a directory for the build: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	built := filepath.Join(tmp, h.name)
	if h.notice != "" {
		o.Notice(h.notice)
	}
	// Unlike "go build", "go run" keeps what it links in the build cache, where
	// the next program of the same sources finds it. What it runs is not the
	// helper but the command that copies it.
	flags := strings.TrimSpace(h.flags + " " + version.Current().LinkerFlags())
	cmd := exec.CommandContext(ctx, tool, "run", "-buildvcs=false", "-exec", "cp", "-ldflags", flags, h.pkg, built)
	cmd.Dir, cmd.Env = dir, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", h.name, err, console.Clean(string(out)))
	}
	if err := os.Rename(built, path); err != nil {
		return fmt.Errorf("keeping the build: %w", err)
	}
	return nil
}

const modulePath = "github.com/proctor-run/proctor"

// buildDir returns the directory to build in: the working directory (empty) where
// it belongs to a module with the sources of this program, as in an author's
// tests, so that the versions of all modules are those that the author chose;
// else, and with modules of its own, the sources.
func (h helper) buildDir(ctx context.Context, tool string, env []string) (string, error) {
	_, file, _, ok := runtime.Caller(0)
	cmd := exec.CommandContext(ctx, tool, "list", "-m", "-f", "{{.Path}}{{with .Version}}@{{.}}{{end}}\n{{.Dir}}", modulePath)
	cmd.Env = env
	if out, err := cmd.Output(); err == nil {
		name, dir, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		switch {
		case !isSourceOf(file, name, dir):
		case h.ownModules:
			return dir, nil
		default:
			return "", nil
		}
	}
	if _, err := os.Stat(file); !ok || err != nil || !filepath.IsAbs(file) {
		return "", errors.New("its sources are not on this machine")
	}
	return moduleRoot(file), nil
}

// isSourceOf reports whether this file, as the compiler calls it, belongs to the
// module of a name, with its version if it has one, in a directory. A program
// that was built with -trimpath knows the names of its modules and no directory.
func isSourceOf(file, name, dir string) bool {
	if filepath.IsAbs(file) {
		return filepath.Clean(dir) == moduleRoot(file)
	}
	return dir != "" && strings.HasPrefix(file, name+"/")
}

// moduleRoot returns the top of the module from the path of this file.
func moduleRoot(file string) string { return filepath.Join(filepath.Dir(file), "..", "..") }
