package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func frame(stream byte, text string) string {
	head := make([]byte, frameHeader)
	head[0] = stream
	binary.BigEndian.PutUint32(head[4:], uint32(len(text)))
	return string(head) + text
}

func TestDemultiplex(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, stdout, stderr, err string }{
		{"nothing", "", "", "", ""},
		{"both", frame(1, "out") + frame(2, "err") + frame(1, "") + frame(0, "more"), "outmore", "err", ""},
		{"garbage", "HTTP/1.1 500 oops", "", "", "unknown stream"},
		{"a cut head", frame(1, "out") + "\x01\x00", "out", "", "frame"},
		{"a cut frame", frame(1, "output")[:10], "ou", "", "2 of 6 bytes"},
		{"a frame that claims 4 GiB", "\x01\x00\x00\x00\xff\xff\xff\xffabc", "abc", "", "3 of 4294967295"},
		{"the engine's own error", frame(3, "broke\n"), "", "", "engine reports: broke"},
	} {
		for _, chunk := range []bool{false, true} {
			var out, errs bytes.Buffer
			var src io.Reader = strings.NewReader(tt.in)
			if chunk {
				src = iotest.OneByteReader(src)
			}
			err := demultiplex(src, &out, &errs)
			if out.String() != tt.stdout || errs.String() != tt.stderr {
				t.Errorf("%s: got %q and %q", tt.name, out.String(), errs.String())
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got error %v, want %q", tt.name, err, tt.err)
			}
		}
	}
}

// What a container's first process writes comes out of the frames, and what it
// says besides is kept apart.
func TestOutputReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, stdout, stderr, err string }{
		{"nothing", "", "", "", ""},
		{"both", frame(1, "out") + frame(2, "err") + frame(1, "") + frame(1, "more"), "outmore", "err", ""},
		{"garbage", "HTTP/1.1 500 oops", "", "", "unknown stream"},
		{"a cut head", frame(1, "out") + "\x01\x00", "out", "", "frame"},
		{"a cut frame", frame(1, "output")[:10], "ou", "", "unexpected EOF"},
		{"a cut frame of errors", frame(2, "output")[:10], "", "ou", "frame"},
		{"a frame that claims 4 GiB", "\x01\x00\x00\x00\xff\xff\xff\xffabc", "abc", "", "unexpected EOF"},
	} {
		for _, chunk := range []bool{false, true} {
			var src io.Reader = strings.NewReader(tt.in)
			if chunk {
				src = iotest.OneByteReader(src)
			}
			var errs bytes.Buffer
			out, err := io.ReadAll(&outputReader{r: bufio.NewReader(src), stderr: &errs})
			if string(out) != tt.stdout || errs.String() != tt.stderr {
				t.Errorf("%s: got %q and %q", tt.name, out, errs.String())
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got error %v, want %q", tt.name, err, tt.err)
			}
		}
	}
}

// However a stream is cut, the same comes out.
func TestOutputReaderProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var wire, want strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "frames") {
			stream := rapid.SampledFrom([]byte{1, 2}).Draw(t, "stream")
			text := rapid.StringN(0, 20, 60).Draw(t, "text")
			wire.WriteString(frame(stream, text))
			if stream == 1 {
				want.WriteString(text)
			}
		}
		src := io.Reader(strings.NewReader(wire.String()))
		if rapid.Bool().Draw(t, "one byte at a time") {
			src = iotest.OneByteReader(src)
		}
		got, err := io.ReadAll(&outputReader{r: bufio.NewReaderSize(src, 16), stderr: io.Discard})
		if err != nil || string(got) != want.String() {
			t.Fatalf("got %q, %v, want %q", got, err, want.String())
		}
	})
}

type broken struct{ calls int }

func (b *broken) Write([]byte) (int, error) { b.calls++; return 0, errors.New("broken") }

func TestSink(t *testing.T) {
	t.Parallel()
	w := new(broken)
	s := &sink{w: w}
	for range 3 {
		if n, err := s.Write([]byte("abc")); n != 3 || err != nil {
			t.Errorf("got %d, %v; a sink never fails", n, err)
		}
	}
	if w.calls != 1 {
		t.Errorf("a broken writer was called %d times", w.calls)
	}
	var buf bytes.Buffer
	s = &sink{w: &buf}
	_, _ = s.Write([]byte("a"))
	s.close()
	_, _ = s.Write([]byte("b"))
	if buf.String() != "a" {
		t.Errorf("got %q, want nothing after close", buf.String())
	}
}

func FuzzDemultiplex(f *testing.F) {
	f.Add([]byte(frame(1, "out") + frame(2, "err")))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xffabc"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var n int
		count := writerFunc(func(p []byte) { n += len(p) })
		_ = demultiplex(bytes.NewReader(in), count, count)
		if n > len(in) {
			t.Errorf("%d bytes out of %d", n, len(in))
		}
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func FuzzOutputReader(f *testing.F) {
	f.Add([]byte(frame(1, "out") + frame(2, "err")))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xffabc"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, _ := io.ReadAll(&outputReader{r: bufio.NewReader(bytes.NewReader(in)), stderr: io.Discard})
		if len(out) > len(in) {
			t.Errorf("%d bytes out of %d", len(out), len(in))
		}
	})
}
