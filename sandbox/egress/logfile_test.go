package egress_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/sandbox/egress"
)

// closing is a buffer that may fail.
type closing struct {
	bytes.Buffer
	err    error
	closed bool
}

func (c *closing) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	return c.Buffer.Write(p)
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestBoundedLogKeepsWholeLinesAndCountsTheRest(t *testing.T) {
	t.Parallel()
	out := &closing{}
	l := egress.NewBoundedLog(out, 10)
	for _, line := range []string{"{\"a\":1}\n", "{\"b\":2}\n", "{}\n"} {
		if n, err := l.Write([]byte(line)); err != nil || n != len(line) {
			t.Errorf("%q: got %d, %v", line, n, err)
		}
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	if err := l.Close(now); err != nil || !out.closed {
		t.Errorf("got %v, closed %t", err, out.closed)
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	var last egress.Line
	if err := json.Unmarshal([]byte(rest), &last); err != nil || first != `{"a":1}` {
		t.Fatalf("got %q, %v", out.String(), err)
	}
	if last.Reason != "2 more lines were dropped: the log is full" || !last.Time.Equal(now) || last.Time.Location() != time.UTC {
		t.Errorf("the last line is %+v", last)
	}
}

func TestBoundedLogThatFitsSaysNoMore(t *testing.T) {
	t.Parallel()
	out := &closing{}
	l := egress.NewBoundedLog(out, 3)
	if _, err := l.Write([]byte("{}\n")); err != nil {
		t.Error(err)
	}
	if err := l.Close(time.Unix(0, 0)); err != nil || out.String() != "{}\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestBoundedLogOnAFullDisk(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	out := &closing{err: full}
	l := egress.NewBoundedLog(out, 4)
	if _, err := l.Write([]byte("{}\n")); !errors.Is(err, full) {
		t.Errorf("Write: got %v", err)
	}
	_, _ = l.Write([]byte("{}\n"))
	if err := l.Close(time.Unix(0, 0)); !errors.Is(err, full) || !out.closed {
		t.Errorf("Close: got %v, closed %t", err, out.closed)
	}
}
