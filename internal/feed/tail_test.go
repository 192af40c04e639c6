package feed

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// deltas is a writer that hands each message on.
type deltas chan string

func (d deltas) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		var event struct{ Message string }
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return 0, err
		}
		d <- event.Message
	}
	return len(p), nil
}

// following is a log that is followed in a directory of its own.
type following struct {
	t     *testing.T
	path  string
	ticks chan time.Time
	got   deltas
	stop  context.CancelFunc
	ended chan error
	feed  *Feed
}

func follow(t *testing.T) *following {
	t.Helper()
	o := options(t, StandardOutput, nil)
	got := make(deltas, 10)
	o.Out = got
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	l := &following{t, filepath.Join(dir, "agent.log"), make(chan time.Time), got, cancel, make(chan error, 1), New(o)}
	go func() {
		l.ended <- l.feed.Tail(ctx, Follow{Task: "t", Trial: "n", Dir: dir, Name: "agent.log", Tick: l.ticks})
	}()
	return l
}

// write replaces the log at once, so that no look finds half of it.
func (l *following) write(text string) {
	l.t.Helper()
	next := l.path + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, l.path)); err != nil {
		l.t.Fatal(err)
	}
}

// look ticks twice: the second tick is taken when what belongs to the first is done. What
// belongs to the second may find what is written next, which changes nothing.
func (l *following) look() {
	l.ticks <- time.Time{}
	l.ticks <- time.Time{}
}

// end returns the messages that were sent and not yet received.
func (l *following) end() (rest []string, err error) {
	l.stop()
	err = <-l.ended
	l.feed.Close(context.Background())
	close(l.got)
	for text := range l.got {
		rest = append(rest, text)
	}
	return rest, err
}

func TestTail(t *testing.T) {
	t.Parallel()
	l := follow(t)
	l.look() // there is no log yet
	l.write("one\ntw")
	l.look()
	l.write("one\ntwo\nthree\rfour")
	l.look()
	l.write("another\n")
	l.look()
	l.write("another\nlast")
	rest, err := l.end()
	if want := "one\n|two\nthree\r|another\n|last"; strings.Join(rest, "|") != want || err != nil {
		t.Errorf("got %q and %v, want %q", rest, err, want)
	}
}

// TestTailWithoutTarget returns at once.
func TestTailWithoutTarget(t *testing.T) {
	t.Parallel()
	f := New(Options{})
	if err := f.Tail(t.Context(), Follow{Dir: t.TempDir(), Name: "log"}); err != nil {
		t.Error(err)
	}
	f.Close(t.Context())
}

// TestTailOfAnUnreadableLog: the log of a directory that is none is an error, one that is
// not there is none.
func TestTailOfAnUnreadableLog(t *testing.T) {
	t.Parallel()
	l := follow(t)
	if rest, err := l.end(); len(rest) > 0 || err != nil {
		t.Errorf("no log: %q, %v", rest, err)
	}
	l = follow(t)
	if err := os.Mkdir(l.path, 0o700); err != nil {
		t.Fatal(err)
	}
	l.look()
	if rest, err := l.end(); len(rest) > 0 || err == nil || !strings.Contains(err.Error(), "this is a directory") {
		t.Errorf("a directory: %q, %v", rest, err)
	}
}

// TestTailOfALongLog: what is read and sent is bounded, and begins with a whole line.
func TestTailOfALongLog(t *testing.T) {
	t.Parallel()
	l := follow(t)
	l.write("begin\n")
	l.look()
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 40 // with a hole
	err = file.Truncate(size)
	_, writeErr := file.WriteString("\nlast line\n")
	if err := errors.Join(err, writeErr, file.Close()); err != nil {
		t.Skipf("this file system has no files of a terabyte: %v", err)
	}
	l.look()
	rest, err := l.end()
	want := []string{"begin\n", "[proctor: 1099511627771 bytes of output cut here]\nlast line\n"}
	if err != nil || strings.Join(rest, "|") != strings.Join(want, "|") {
		t.Errorf("got %q and %v, want %q", rest, err, want)
	}
}

// TestTailNext: what is sent of the ends of a log.
func TestTailNext(t *testing.T) {
	t.Parallel()
	type look struct {
		window string
		from   int64
		last   bool
		want   string
	}
	for _, c := range []struct {
		name  string
		looks []look
	}{
		{"nothing new", []look{{"a\n", 0, false, "a\n"}, {"a\n", 0, false, ""}, {"a\n", 0, true, ""}}},
		{"a line in parts", []look{{"se", 0, false, ""}, {"secr", 0, false, ""}, {"secret\n", 0, false, "secret\n"}}},
		{"a rest", []look{{"a\nb", 0, false, "a\n"}, {"a\nb", 0, true, "b"}}},
		{"shorter", []look{{"a\nb\n", 0, false, "a\nb\n"}, {"a\n", 0, false, "a\n"}}},
		{"emptied", []look{{"a\n", 0, false, "a\n"}, {"", 0, false, ""}, {"a\n", 0, false, "a\n"}}},
		{"changed", []look{{"a\nb\n", 0, false, "a\nb\n"}, {"x\nb\nc\n", 0, false, "x\nb\nc\n"}}},
		{"moved on", []look{{"a\nb\n", 0, false, "a\nb\n"}, {"b\nc\n", 2, false, "c\n"}}},
		{"moved on and changed", []look{
			{"a\nb\n", 0, false, "a\nb\n"}, {"x\nc\n", 2, false, "[proctor: 4 bytes of output cut here]\nc\n"},
		}},
		{"moved past what was sent", []look{
			{"a\nb\n", 0, false, "a\nb\n"}, {"cret\nd\n", 9, false, "[proctor: 10 bytes of output cut here]\nd\n"},
		}},
		{"a line without an end", []look{
			{"a\n", 0, false, "a\n"}, {"xxxx", 9, false, ""}, {"xx\nb\n", 12, false, "[proctor: 13 bytes of output cut here]\nb\n"},
		}},
		{"a last line without a beginning", []look{{"cret", 9, true, ""}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log tail
			for i, l := range c.looks {
				if got := log.next([]byte(l.window), l.from, l.last); got != l.want {
					t.Errorf("look %d: got %q, want %q", i+1, got, l.want)
				}
			}
		})
	}
}
