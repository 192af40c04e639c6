package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
)

// TestRuntimeSaysPIDLate: a runtime may write the pid of the sandbox's first
// process long after the guest has greeted.
func TestRuntimeSaysPIDLate(t *testing.T) {
	t.Parallel()
	need.Root(t) // ordinary users have no late mounts
	need.Program(t, "bash")
	needRuntime(t, RuntimeRunc)
	real, err := findRuntime(RuntimeRunc)
	if err != nil {
		t.Fatal(err)
	}
	// The runtime writes elsewhere. What it has written becomes the pid file
	// a second later, first without content.
	script := fmt.Sprintf(`#!/bin/bash
for a; do
	case $a in
	--pid-file=*) file=${a#*=}; args+=("$a.early");;
	*) args+=("$a");;
	esac
done
late() {
	until [ -s "$file.early" ]; do sleep 0.01; [ -d "${file%%/*}" ] || return; done
	sleep 0.5; : >"$file"; sleep 0.5; cat "$file.early" >"$file"
}
late </dev/null >/dev/null 2>&1 &
%s "${args[@]}"
`, real.path)
	path := filepath.Join(t.TempDir(), "late-runc")
	// Written by another process: who is forked by another test while this one
	// has the file open for writing keeps it from being executed.
	write := exec.Command("bash", "-c", `cat >"$0" && chmod 755 "$0"`, path)
	write.Stdin = strings.NewReader(script)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := newBackend(t, testOptions(t, path))
	p, err := b.Prepare(t.Context(), sandbox.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Destroy(cleanupContext(t)) }()
	host := t.TempDir()
	if err := os.WriteFile(filepath.Join(host, "f"), []byte("here\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := p.Take(t.Context(), sandbox.Spec{Name: "late", Mounts: []sandbox.Mount{{Source: host, Target: "/logs"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Destroy(cleanupContext(t)) }()
	if got := say(t, s, "cat /logs/f"); got != "here\n" {
		t.Errorf("got %q", got)
	}
}

// TestOpenFirst: the wait for the pid ends with it, with the runtime, and with
// the context.
func TestOpenFirst(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	given, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	closed := make(chan struct{})
	close(closed)
	for name, c := range map[string]struct {
		ctx   context.Context
		ended chan struct{}
		file  string // "-" for none
		want  string
	}{
		"the runtime has ended":         {t.Context(), closed, "-", "the runtime has ended"},
		"it has ended and left nothing": {t.Context(), closed, "", "the runtime has ended"},
		"the context has ended":         {given, nil, "-", "mine"},
		"no pid":                        {t.Context(), nil, "x1\n", `"x1"`},
		"not a sandbox's":               {t.Context(), nil, "1", `"1"`},
		"said, and ended":               {t.Context(), closed, fmt.Sprint(os.Getpid()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &Sandbox{dir: t.TempDir()}
			if c.file != "-" {
				if err := os.WriteFile(filepath.Join(s.dir, filePID), []byte(c.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			f, err := s.openFirst(c.ctx, c.ended)
			if f != nil {
				_ = f.Close()
			}
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	t.Run("written while it waits", func(t *testing.T) {
		t.Parallel()
		s := &Sandbox{dir: t.TempDir()}
		write := time.AfterFunc(50*time.Millisecond, func() {
			if err := os.WriteFile(filepath.Join(s.dir, filePID), []byte(fmt.Sprintln(os.Getpid())), 0o600); err != nil {
				t.Error(err)
			}
		})
		defer write.Stop()
		f, err := s.openFirst(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.first = f
		defer func() { _ = f.Close() }()
		if pid, err := s.firstPID(); err != nil || pid != os.Getpid() {
			t.Errorf("got %d, %v", pid, err)
		}
	})
}
