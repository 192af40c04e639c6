package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestView: the address that is printed leads to the jobs, and an interrupt ends it well.
func TestView(t *testing.T) {
	t.Parallel()
	for listen, token := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true} {
		t.Run(listen, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			out, printed := io.Pipe()
			ended := make(chan int, 1)
			go func() {
				ended <- Run(ctx, Env{
					Args: []string{"proctor", "view", "--listen", listen, repositoryPath(t, "jobdir/testdata/jobs")}, Stdin: strings.NewReader(""), Stdout: printed, Stderr: io.Discard,
					Environ: []string{"HOME=" + t.TempDir()}, Now: time.Now,
				})
			}()
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			at, err := url.Parse(strings.TrimSpace(line))
			if err != nil || at.Query().Has("token") != token {
				t.Fatalf("it prints %q (%v)", line, err)
			}
			at.Host = "127.0.0.1:" + at.Port()
			if status, page := ask(t, at.String()); status != http.StatusOK || !strings.Contains(page, "mixed-oracle") {
				t.Errorf("%s: %d, %s", at, status, page)
			}
			if at.RawQuery = ""; token {
				if status, _ := ask(t, at.String()); status != http.StatusForbidden {
					t.Errorf("without the token: %d", status)
				}
			}
			stop()
			if code := <-ended; code != exitOK {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// TestViewElsewhere: where the port that nobody asked for is taken, it is another one.
func TestViewElsewhere(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	l, err := listenView(t.Context(), taken.Addr().String(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if l.Addr().String() == taken.Addr().String() {
		t.Errorf("it listens at %s, which is taken", l.Addr())
	}
	if l, err := listenView(t.Context(), taken.Addr().String(), true); err == nil {
		t.Errorf("it listens at %s, and not where it was told to", l.Addr())
	}
}

// ask is a browser with a memory for cookies.
func ask(t *testing.T, address string) (status int, page string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&http.Client{Jar: jar}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}
