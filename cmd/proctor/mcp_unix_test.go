//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

const (
	mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	mcpCall  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"submit_answer","arguments":{"answer":7}}}`
)

// mcpClient is a client that has started proctor mcp, and was answered once.
type mcpClient struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	stderr *os.File
}

func startMCP(t *testing.T, p place, args ...string) *mcpClient {
	t.Helper()
	c := &mcpClient{cmd: p.command(append([]string{"mcp", "arithmetic-cube", "-t", "add-3-4", "-o", "jobs", "--job-name", "j"}, args...)...)}
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.stdout, err = c.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stderr, c.cmd.Stderr = r, w
	t.Cleanup(func() { _ = r.Close() })
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	c.write(t, mcpHello)
	if line, err := bufio.NewReader(c.stdout).ReadString('\n'); err != nil || !strings.Contains(line, "What is 3 + 4?") {
		t.Fatalf("answered %q, %v", line, err)
	}
	return c
}

func (c *mcpClient) write(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.stdin, line); err != nil {
		t.Fatal(err)
	}
}

// TestMCPClientDies: when a client dies in the middle, what it did is scored all the same.
func TestMCPClientDies(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := startMCP(t, p)
	for _, end := range []io.Closer{c.stdout, c.stderr} {
		if err := end.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c.write(t, mcpCall)
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("proctor mcp ended with %v", err)
	}
	if got := p.run(t, "job", "show", "jobs/j"); got.code != 0 || !strings.Contains(got.stdout, "1.0") || !strings.Contains(got.stdout, "the last one finished") {
		t.Errorf("the job: %+v", got)
	}
}

// TestMCPInterrupted: an interrupt ends it also while the client waits, and the job is not said
// to be one that can be resumed.
func TestMCPInterrupted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := startMCP(t, p)
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(c.stderr)
	if err != nil || !strings.Contains(string(printed), "interrupted: 1 of 1 done") || strings.Contains(string(printed), "resume") {
		t.Errorf("printed %s, %v", printed, err)
	}
	_ = c.cmd.Wait()
	if code := c.cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	got := p.run(t, "job", "resume", "jobs/j")
	if got.code != exitUsage || !strings.Contains(got.stderr, "cannot be resumed") {
		t.Errorf("resuming it: %+v", got)
	}
}
