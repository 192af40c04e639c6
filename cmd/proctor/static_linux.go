package main

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
	"time"

	"golang.org/x/sys/unix"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/sandbox"
)

// The built-in gVisor executes proctor again inside a root that has no files,
// so it needs a proctor without shared libraries. "go run" and "go build" make
// one that needs the C library wherever a C compiler is installed. Then the
// same sources are built once more without it, and that program serves the
// sandboxes; releases are static and never come here.

// staticProgram returns a static build of the running program: itself, or one
// made of the same sources and kept below cache.
func staticProgram(ctx context.Context, env *Env, self, cache string) (string, error) {
	dynamic, err := isDynamic(self)
	if err != nil || !dynamic {
		return self, err
	}
	key, err := buildKey(self)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "builds", key, "proctor")
	if err := buildOnce(ctx, env, path); err != nil {
		return "", fmt.Errorf("%w: this proctor needs shared libraries, which its built-in gVisor cannot use (%w): build it with CGO_ENABLED=0, or choose --runtime runc",
			sandbox.ErrUnavailable, err)
	}
	return path, nil
}

func isDynamic(path string) (bool, error) {
	f, err := elf.Open(path)
	if err != nil {
		return false, fmt.Errorf("looking at the program: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return true, nil
		}
	}
	return false, nil
}

// buildKey differs between programs of different sources: it covers the build
// id, in which the linker puts a digest of everything that went in.
func buildKey(path string) (string, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("looking at the program: %w", err)
	}
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("looking at the program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	fmt.Fprintln(h, info)
	if note := f.Section(".note.go.buildid"); note != nil {
		if _, err := io.Copy(h, note.Open()); err != nil {
			return "", fmt.Errorf("looking at the program: %w", err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// buildOnce builds the program unless it is there. Of several that want it,
// also of other processes, one builds and the others wait.
func buildOnce(ctx context.Context, env *Env, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
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
	return buildStatic(ctx, env, path)
}

// buildPoll is how often somebody else's build is looked at.
const buildPoll = 200 * time.Millisecond

// buildStatic builds the command's own sources, where they and a Go toolchain
// are there, as with "go run".
func buildStatic(ctx context.Context, env *Env, path string) error {
	_, file, _, ok := runtime.Caller(0)
	if _, err := os.Stat(file); !ok || err != nil {
		return errors.New("its sources are not on this machine")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	fmt.Fprintln(env.Stderr, "proctor: building once without the C library, which the built-in gVisor cannot use; this takes a minute or two")
	cmd := exec.CommandContext(ctx, tool, "build", "-buildvcs=false", "-ldflags", version.Current().LinkerFlags(), "-o", filepath.Join(tmp, "proctor"), ".")
	cmd.Dir = filepath.Dir(file)
	cmd.Env = append(env.Environ[:len(env.Environ):len(env.Environ)], "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, clean(string(out)))
	}
	return os.Rename(filepath.Join(tmp, "proctor"), path)
}
