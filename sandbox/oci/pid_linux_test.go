package oci

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/internal/runtimes"
)

// TestRuntimeSaysPIDLate: a runtime may write the pid of the sandbox's first
// process long after the guest has greeted.
func TestRuntimeSaysPIDLate(t *testing.T) {
	t.Parallel()
	need.Root(t) // ordinary users have no late mounts
	need.Program(t, "bash")
	needRuntime(t, RuntimeRunc)
	real, err := runtimes.Find(RuntimeRunc)
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
`, real.Path())
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
