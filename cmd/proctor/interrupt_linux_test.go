package main

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestInterruptedWhileItReads: a command that waits for a pipe that the user named ends
// at the first signal.
func TestInterruptedWhileItReads(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"trajectory":    {"traj", "show"},
		"configuration": {"run", "-a", "nop", "-c"},
		"registry":      {"dataset", "list", "--registry-path"},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			t.Run(name+"/"+sig.String(), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				pipe := filepath.Join(p.dir, "pipe.json")
				if err := syscall.Mkfifo(pipe, 0o600); err != nil {
					t.Fatal(err)
				}
				var said bytes.Buffer
				cmd := p.command(append(args, pipe)...)
				cmd.Stdout, cmd.Stderr = &said, &said
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until it reads
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = w.Close() }()
				if err := cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
					t.Errorf("exit code %d, want %d:\n%s", code, exitInterrupted, said.String())
				}
			})
		}
	}
}

// TestHangupIgnored: what was started to survive its terminal does.
func TestHangupIgnored(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pipe := filepath.Join(p.dir, "pipe.json")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := p.command("traj", "show", pipe)
	program := filepath.Join(p.dir, "proctor") // the name by which the tests know that they are the program
	if err := os.Symlink(cmd.Path, program); err != nil {
		t.Fatal(err)
	}
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap '' HUP; exec "$0" "$@"`, program, "traj", "show", pipe}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("no trajectory"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code == exitInterrupted {
		t.Error("an ignored hangup interrupted it")
	}
}
