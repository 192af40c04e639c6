package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCPOverHTTP plays a task with a client of the official kit, which connects to the
// address that is printed, and has others refused.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said, stderr := io.Pipe()
	var stdout bytes.Buffer
	code := make(chan int, 1)
	go func() {
		defer func() { _ = stderr.Close() }()
		code <- Run(t.Context(), Env{
			Args:  []string{"proctor", "mcp", "arithmetic-cube", "-t", "add-3-4", "--http", "127.0.0.1:0", "-o", dir, "--job-name", "j", "--json"},
			Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: stderr,
			Environ: []string{"HOME=" + dir, "PROCTOR_STATE_DIR=" + dir}, Now: time.Now,
		})
	}()
	lines := bufio.NewScanner(said)
	url := ""
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\w+`).FindString(lines.Text())
	}
	var rest strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() {
			rest.WriteString(lines.Text() + "\n")
		}
	}()
	playSum(t, url)
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d", got)
	}
	<-read
	if stdout.Len() > 0 {
		t.Errorf("standard output has %q", stdout.String())
	}
	if !strings.Contains(rest.String(), `"reward":1.0`) && !strings.Contains(rest.String(), `"reward": 1.0`) {
		t.Errorf("it says %s", rest.String())
	}
}

// playSum answers what three and four are.
func playSum(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	post := func(address string) int {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	if status := post(url[:strings.LastIndexByte(url, '/')+1] + "guessed"); status != http.StatusNotFound {
		t.Errorf("without the secret the status is %d", status)
	}
	if status := post(url); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, want := range []string{"The task has ended.", "The task has ended: no more actions are possible."} {
		res, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "submit_answer", Arguments: map[string]any{"answer": 7}})
		if err != nil {
			return // the program may have ended before a second call
		}
		if text, _ := json.Marshal(res.Content); !bytes.Contains(text, []byte(want)) {
			t.Errorf("the answer is %s, want %q", text, want)
		}
	}
}
