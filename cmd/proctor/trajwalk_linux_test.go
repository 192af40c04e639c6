package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/proctor-run/proctor/internal/need"
)

// TestWalkInTerminal: in a terminal keys lead from step to step, and it is left as it was.
func TestWalkInTerminal(t *testing.T) {
	t.Parallel()
	controller, terminal, err := pty.Open()
	need.That(t, "pty", err == nil, fmt.Sprintf("needs a pseudo-terminal: %v", err))
	defer func() { _ = controller.Close() }()
	defer func() { _ = terminal.Close() }()
	if err := pty.Setsize(controller, &pty.Winsize{Rows: 20, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() {
		ended <- Run(t.Context(), Env{
			Args:  []string{"proctor", "traj", "show", "--step", repositoryPath(t, "report/testdata/trajectory.json")},
			Stdin: terminal, Stdout: terminal, Stderr: terminal, Environ: []string{"TERM=xterm"}, Now: time.Now,
		})
	}()
	var seen bytes.Buffer
	until := func(text string) {
		t.Helper()
		buf := make([]byte, 4096)
		for !strings.Contains(seen.String(), text) {
			n, err := controller.Read(buf)
			if seen.Write(buf[:n]); err != nil {
				t.Fatalf("%v before %q in %q", err, text, seen.String())
			}
		}
	}
	until("step 1 of")
	until("q quit")
	if _, err := controller.WriteString("\x1b[C"); err != nil {
		t.Fatal(err)
	}
	until("step 2 of")
	if _, err := controller.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	until("\x1b[?1049l")
	if code := <-ended; code != exitOK || !strings.Contains(seen.String(), "\x1b[?1049h") {
		t.Errorf("exit code %d, after %q", code, seen.String())
	}
}
