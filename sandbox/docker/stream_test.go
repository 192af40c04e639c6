package docker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

const statLine = "42 (a b) S) S 0 42 42 0 -1 4194560 1094 0 0 0 1 0 0 0 20 0 1 0 270337 4034560 857 18446744073709551615"

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

// take sends text through a framed stream in the given pieces.
func take(pieces []string, word string, opens bool) (out string, born birth, codes []int) {
	var buf bytes.Buffer
	var onBirth func(birth)
	if opens {
		onBirth = func(b birth) { born = b }
	}
	f := newFramed(word, &sink{w: &buf}, onBirth, func(c int) { codes = append(codes, c) })
	for _, p := range pieces {
		_, _ = f.Write([]byte(p))
	}
	f.finish()
	return buf.String(), born, codes
}

func TestFramed(t *testing.T) {
	t.Parallel()
	const word = "\x1eword"
	opening := word + statLine + "\n"
	for _, tt := range []struct {
		name, in string
		out      string
		born     bool
		codes    int // -1: none
	}{
		{"a command", opening + "text" + word + "3\n", "text", true, 3},
		{"no output", opening + word + "0\n", "", true, 0},
		{"code 255", opening + word + "255\n", "", true, 255},
		{"what follows the end is dropped", opening + "a" + word + "0\nb" + word + "1\n", "a", true, 0},
		{"the engine's message", "OCI runtime exec failed\n", "OCI runtime exec failed\n", false, -1},
		{"an end that never was", opening + "text", "text", true, -1},
		{"the word without a code", opening + "a" + word + "x\nb" + word + "1\n", "a" + word + "x\nb", true, 1},
		{"a code too high", opening + word + "256\n", word + "256\n", true, -1},
		{"half a word", opening + "a\x1ewor", "a\x1ewor", true, -1},
		{"a broken opening", word + "1 2 3\nx", word + "1 2 3\nx", false, -1},
		{"an opening without end", word + strings.Repeat("1", 2*maxLine), word + strings.Repeat("1", 2*maxLine), false, -1},
		{"nothing", "", "", false, -1},
	} {
		for _, pieces := range [][]string{{tt.in}, strings.Split(tt.in, "")} {
			out, born, codes := take(pieces, word, true)
			got := -1
			if len(codes) == 1 {
				got = codes[0]
			}
			if out != tt.out || (born != birth{}) != tt.born || got != tt.codes || len(codes) > 1 {
				t.Errorf("%s in %d pieces: got %q, born %v, codes %v", tt.name, len(pieces), out, born, codes)
			}
		}
	}
}

// However a stream is cut, the same comes out, and no byte is lost.
func TestFramedProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const word = "abab"
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab1\n")), 0, 60, -1).Draw(t, "text")
		pieces := rapid.SliceOf(rapid.StringOfN(rapid.SampledFrom([]rune("ab1\n")), 0, 5, -1)).Draw(t, "pieces")
		pieces = append(pieces, text)
		whole := strings.Join(pieces, "")
		out1, _, codes1 := take(pieces, word, false)
		out2, _, codes2 := take([]string{whole}, word, false)
		if out1 != out2 || len(codes1) != len(codes2) || !strings.HasPrefix(whole, out1) {
			t.Fatalf("%q: in pieces %q %v, at once %q %v", whole, out1, codes1, out2, codes2)
		}
		if len(codes1) == 0 && out1 != whole {
			t.Fatalf("%q: lost bytes: %q", whole, out1)
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

func FuzzFramed(f *testing.F) {
	f.Add([]byte("\x1ew"+statLine+"\nout\x1ew0\n"), 3)
	f.Fuzz(func(t *testing.T, in []byte, at int) {
		at = max(0, min(at, len(in)))
		out, _, codes := take([]string{string(in[:at]), string(in[at:])}, "\x1ew", true)
		if len(codes) > 1 || len(out) > len(in) {
			t.Errorf("%q: %q, codes %v", in, out, codes)
		}
	})
}
