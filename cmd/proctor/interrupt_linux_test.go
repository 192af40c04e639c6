package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proctor-run/proctor/internal/need"
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

// TestInterruptedLine: whatever signal interrupts a run, before it has trials or while they
// run, there is one result line.
func TestInterruptedLine(t *testing.T) {
	t.Parallel()
	err := hostSandboxes()
	need.That(t, "host", err == nil, "needs sandboxes on the host's own root")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, json := range []string{"--json", "--json=false"} {
			t.Run("configuration/"+json+"/"+sig.String(), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				pipe := filepath.Join(p.dir, "job.json")
				if err := syscall.Mkfifo(pipe, 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := p.command("run", "-a", "nop", "-c", pipe, "--outcome-line", json)
				out := interruptedBy(t, cmd, sig, func() {
					w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until it reads
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = w.Close() })
				})
				if want := `BASE_BENCHMARK_RESULT={"reason_code": "harbor_cancelled_error", "resolved": 0, "score": 0.0, "status": "failed", "total": 0}` + "\n"; out != want {
					t.Errorf("printed %q, want %q", out, want)
				}
			})
			t.Run("trials/"+json+"/"+sig.String(), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				said := filepath.Join(p.dir, "jobs", "j", "*", "agent", "command.txt")
				cmd := p.command("run", "-p", repositoryPath(t, "examples/tasks/hello-world"), "-k", "2", "-n", "1", "-a", "command", "--ak", "run=echo begun; sleep 600",
					"-e", "host", "-y", "-q", "--job-name", "j", "--outcome-line", json)
				out := interruptedBy(t, cmd, sig, func() {
					for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
						if found, _ := filepath.Glob(said); len(found) > 0 {
							return
						}
						if time.Now().After(deadline) {
							t.Error("no agent has begun")
							return
						}
					}
				})
				_, last, _ := strings.Cut(out, "BASE_BENCHMARK_RESULT=")
				if want := `{"reason_code": null, "resolved": 0, "score": 0.0, "status": "failed", "total": 2}` + "\n"; last != want {
					t.Errorf("printed\n%s", out)
				}
			})
		}
	}
}

// interruptedBy starts a command, waits until it is ready for a signal, sends it, and
// returns what the command printed.
func interruptedBy(t *testing.T, cmd *exec.Cmd, sig syscall.Signal, ready func()) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d:\n%s", code, exitInterrupted, stderr.String())
	}
	return stdout.String()
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
