package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAttach: what an agent prints is seen while it works; an interrupt ends attach and
// not the trial, and the end of the trial's process ends attach.
func TestAttach(t *testing.T) {
	t.Parallel()
	for _, e := range environments() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			e.oneIsEnough(t)
			flags := e.flags(t)
			p := newPlace(t)
			ph := phase{name: "agent", sign: "agent/here", args: []string{"-a", "command", "--ak", "run=echo hello from the agent; " + standStill("agent")}}
			r := ph.start(t, p, flags)

			first := attachTo(t, p, r.job)
			first.await(t, "hello from the agent")
			if err := first.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if code, rest := first.wait(); code != exitInterrupted {
				t.Errorf("interrupted: exit code %d, and it says %s", code, rest)
			}
			select {
			case <-r.ended:
				t.Fatal("the trial has ended, too")
			default:
			}

			second := attachTo(t, p, filepath.Join(r.job, r.trial))
			second.await(t, "hello from the agent")
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if code, rest := second.wait(); code != exitOK || !strings.HasSuffix(rest, ": it has not ended, and nobody works on it any more\n") {
				t.Errorf("killed: exit code %d, and it says %s", code, rest)
			}
		})
	}
}

// attaching is a process of proctor that follows a trial.
type attaching struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func attachTo(t *testing.T, p place, dir string) *attaching {
	t.Helper()
	cmd := p.command("trial", "attach", dir)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	return &attaching{cmd, bufio.NewReader(out)}
}

// await reads up to a line.
func (a *attaching) await(t *testing.T, want string) {
	t.Helper()
	var said strings.Builder
	for {
		line, err := a.out.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			t.Fatalf("it never printed %q, but:\n%s", want, said.String())
		}
		if strings.TrimSuffix(line, "\n") == want {
			return
		}
	}
}

// wait returns the exit code, and what was still printed.
func (a *attaching) wait() (code int, rest string) {
	var out strings.Builder
	_, _ = a.out.WriteTo(&out) // up to the end of the process
	_ = a.cmd.Wait()           // the code says what is asked for
	return a.cmd.ProcessState.ExitCode(), out.String()
}
