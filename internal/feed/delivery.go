package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// lineWriter writes a line for each event, those of an item in one call.
type lineWriter struct {
	w    io.Writer
	torn bool // the last line has no end
}

func (l *lineWriter) deliver(_ context.Context, lines [][]byte) error {
	text := append(bytes.Join(lines, []byte{'\n'}), '\n')
	if l.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := l.w.Write(text)
	if 0 < n && n <= len(text) {
		l.torn = text[n-1] != '\n'
	}
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	return err //nolint:wrapcheck // the sink says what was written to
}

func (l *lineWriter) whole() bool { return !l.torn }

// Bounds of what is read of a receiver, in bytes. Nothing it says is used.
const (
	maxAnswer       = 64 << 10
	maxAnswerHeader = 64 << 10
)

// poster sends an item's events to a receiver as one request.
type poster struct {
	to      *receiver
	client  *http.Client
	timeout time.Duration
}

func newPoster(to *receiver, timeout time.Duration) *poster {
	return &poster{to: to, timeout: timeout, client: &http.Client{
		Transport: &http.Transport{
			Proxy: proxy, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: maxAnswerHeader,
		},
		// The token is for this receiver alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// proxy is the one of the environment. An error of it would repeat a password in it.
func proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, errors.New("the proxy that the environment names is no URL")
	}
	return u, nil
}

func (p *poster) deliver(ctx context.Context, lines [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	body := bytes.NewReader(bytes.Join(lines, []byte{'\n'}))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.to.url, body)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	req.Header.Set("Content-Type", p.to.contentType)
	req.Header.Set("Authorization", "Bearer "+p.to.token())
	resp, err := p.client.Do(req)
	if err != nil {
		return p.failure(err)
	}
	defer func() { _ = resp.Body.Close() }()
	// Read to its end, so that the connection can be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	switch kind := resp.StatusCode / 100; kind {
	case 2:
		return nil
	case 3:
		return fmt.Errorf("the answer is status %d, and redirects are not followed", resp.StatusCode)
	default:
		return fmt.Errorf("the answer is status %d", resp.StatusCode)
	}
}

// failure is why there is no answer, without the URL.
func (p *poster) failure(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", p.timeout)
	}
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		return ue.Err
	}
	return err //nolint:wrapcheck // the sink says what was sent where
}

func (p *poster) whole() bool { return true }

// maxWarning bounds a warning: errors repeat what receivers answer.
const maxWarning = 400

// printable is a text for one line of a terminal.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxWarning)], "")
}
