package source

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"
)

// Retry is one row of the table that says which failures of a registry are
// tried again. The first row that matches decides.
type Retry struct {
	// Name of the failure, for the log.
	Name string
	// MinStatus and MaxStatus bound the HTTP statuses of the row.
	MinStatus, MaxStatus int
	// Connection: the row is for connections that break or time out. A name
	// that does not resolve and a port where nobody listens are not retried.
	Connection bool
	// Attempts in all, the first included.
	Attempts int
	// Delay before the second attempt; it doubles up to MaxDelay.
	Delay, MaxDelay time.Duration
	// RetryAfter: the registry's Retry-After header, up to MaxDelay, replaces Delay.
	RetryAfter bool
}

// defaultRetries returns the table that is used when Options has none.
func defaultRetries() []Retry {
	return []Retry{
		{Name: "rate limit", MinStatus: http.StatusTooManyRequests, MaxStatus: http.StatusTooManyRequests,
			Attempts: 6, Delay: 2 * time.Second, MaxDelay: time.Minute, RetryAfter: true},
		{Name: "request timeout", MinStatus: http.StatusRequestTimeout, MaxStatus: http.StatusRequestTimeout,
			Attempts: 4, Delay: time.Second, MaxDelay: 10 * time.Second},
		{Name: "server error", MinStatus: 500, MaxStatus: 599,
			Attempts: 4, Delay: time.Second, MaxDelay: 10 * time.Second, RetryAfter: true},
		{Name: "connection", Connection: true,
			Attempts: 5, Delay: 500 * time.Millisecond, MaxDelay: 8 * time.Second},
	}
}

// retrier decides by the table and waits.
type retrier struct {
	table []Retry
	log   *slog.Logger
	// sleep waits or returns the context's cause.
	sleep func(ctx context.Context, d time.Duration) error
	now   func() time.Time // for a Retry-After that is a date
}

func (r *retrier) forStatus(status int) (Retry, bool) {
	for _, row := range r.table {
		if status >= row.MinStatus && status <= row.MaxStatus && row.MaxStatus > 0 {
			return row, true
		}
	}
	return Retry{}, false
}

func (r *retrier) forError(err error) (Retry, bool) {
	if !breaks(err) {
		return Retry{}, false
	}
	for _, row := range r.table {
		if row.Connection {
			return row, true
		}
	}
	return Retry{}, false
}

// errStalled ends a download on which nothing arrives any more.
var errStalled = errors.New("nothing arrived for too long")

// breaks reports whether an error is a connection's that broke or timed out.
func breaks(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsTemporary && !dns.IsNotFound
	}
	for _, one := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ETIMEDOUT, net.ErrClosed, errStalled} {
		if errors.Is(err, one) {
			return true
		}
	}
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}

// wait sleeps before attempt number next (the first retry is 2).
func (r *retrier) wait(ctx context.Context, row Retry, next int, header http.Header, why string) error {
	d := row.Delay
	for range next - 2 {
		d = min(2*d, row.MaxDelay)
	}
	if row.RetryAfter && header != nil {
		if after, ok := r.retryAfter(header); ok {
			d = min(after, row.MaxDelay)
		}
	}
	r.log.Warn("asking the registry again", "failure", row.Name, "error", why, "attempt", next, "of", row.Attempts, "in", d)
	return r.sleep(ctx, d)
}

// retryAfter reads a Retry-After header, seconds or a date (RFC 9110, section 10.2.3).
func (r *retrier) retryAfter(h http.Header) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(r.now())), true
	}
	return 0, false
}

// retryTransport repeats requests by the table. Bodies that break later are
// the download's affair.
type retryTransport struct {
	next    http.RoundTripper
	retrier *retrier
}

func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := t.next.RoundTrip(req)
		row, again, why, header := t.judge(resp, err)
		if !again || attempt >= row.Attempts || req.Context().Err() != nil {
			return resp, err
		}
		if req.Body != nil {
			if req.GetBody == nil {
				return resp, err
			}
			body, bodyErr := req.GetBody()
			if bodyErr != nil {
				return resp, err
			}
			req = req.Clone(req.Context())
			req.Body = body
		}
		if resp != nil {
			discard(resp)
		}
		if err := t.retrier.wait(req.Context(), row, attempt+1, header, why); err != nil {
			return nil, err
		}
	}
}

func (t *retryTransport) judge(resp *http.Response, err error) (row Retry, again bool, why string, header http.Header) {
	if err != nil {
		row, again = t.retrier.forError(err)
		return row, again, err.Error(), nil
	}
	row, again = t.retrier.forStatus(resp.StatusCode)
	return row, again, resp.Status, resp.Header
}

// discard ends a response so that its connection can be used again.
func discard(resp *http.Response) {
	const worthReading = 64 << 10
	_, _ = io.CopyN(io.Discard, resp.Body, worthReading)
	_ = resp.Body.Close()
}
