package frames_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

const window = 4 << 10

func written(t testing.TB, write func(w *frames.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(frames.NewWriter(&b)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func upTo(most int) frames.Limit { return func(frames.Type) (int, int) { return 0, most } }

func TestFramesSurviveTheWire(t *testing.T) {
	t.Parallel()
	payloads := [][]byte{nil, []byte("x"), bytes.Repeat([]byte("ab"), frames.MaxData/8), bytes.Repeat([]byte("c"), frames.MaxData), bytes.Repeat([]byte("d"), 3*frames.MaxData), bytes.Repeat([]byte("e"), frames.MaxFiles), bytes.Repeat([]byte("f"), 2*frames.MaxFiles)}
	wire := written(t, func(w *frames.Writer) error {
		for i, p := range payloads {
			if err := w.Send(frames.Type(i), uint32(i)<<24, p); err != nil {
				return err
			}
		}
		p := frames.NewPacket(10)
		copy(p.Space(10), "0123456789")
		return errors.Join(w.SendPacket(7, 8, p, 4), w.SendCredit(9, 10, 1<<20))
	})
	r, pool := bytes.NewReader(wire), new(frames.Pool)
	next := func() frames.Frame {
		f, err := frames.Read(r, pool, upTo(2*frames.MaxFiles))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	for i, p := range payloads {
		f := next()
		if f.Type != frames.Type(i) || f.ID != uint32(i)<<24 || !bytes.Equal(f.Payload, p) {
			t.Errorf("frame %d: got type %d, id %d, %d bytes", i, f.Type, f.ID, len(f.Payload))
		}
		pool.Put(f.Payload)
	}
	if f := next(); f.Type != 7 || f.ID != 8 || string(f.Payload) != "0123" {
		t.Errorf("packet: got %d, %d, %q", f.Type, f.ID, f.Payload)
	}
	if n, err := frames.CreditOf(next().Payload); n != 1<<20 || err != nil {
		t.Errorf("credit: got %d, %v", n, err)
	}
	if _, err := frames.Read(r, pool, upTo(1)); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: got %v, want io.EOF", err)
	}
}

func TestReadRefusesWhatTheLimitsDoNotAllow(t *testing.T) {
	t.Parallel()
	limit := func(t frames.Type) (int, int) { return int(t), int(t) + 1 }
	for n, ok := range map[int]bool{1: false, 2: true, 3: true, 4: false} {
		wire := written(t, func(w *frames.Writer) error { return w.Send(2, 1, make([]byte, n)) })
		_, err := frames.Read(bytes.NewReader(wire), new(frames.Pool), limit)
		if (err == nil) != ok || !ok && !errors.Is(err, frames.ErrProtocol) {
			t.Errorf("%d bytes: got error %v", n, err)
		}
	}
	huge := []byte{1, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}
	if _, err := frames.Read(bytes.NewReader(huge), new(frames.Pool), upTo(1<<30)); !errors.Is(err, frames.ErrProtocol) {
		t.Errorf("4 GiB: got error %v", err)
	}
	for n := 1; n < 12; n++ { // cut anywhere, an end is no orderly one
		wire := written(t, func(w *frames.Writer) error { return w.Send(1, 1, []byte("abc")) })[:n]
		if _, err := frames.Read(bytes.NewReader(wire), new(frames.Pool), upTo(9)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: got error %v", n, err)
		}
	}
	for _, payload := range [][]byte{nil, make([]byte, 3), make([]byte, 5)} {
		if _, err := frames.CreditOf(payload); !errors.Is(err, frames.ErrProtocol) {
			t.Errorf("credit in %d bytes: got error %v", len(payload), err)
		}
	}
}

func TestServeSaysWhyItEnded(t *testing.T) {
	t.Parallel()
	wire := written(t, func(w *frames.Writer) error { return errors.Join(w.Send(1, 1, nil), w.Send(1, 2, nil)) })
	seen, refused := 0, errors.New("refused")
	count := func(frames.Frame) error { seen++; return nil }
	if err := frames.Serve(bytes.NewReader(wire), new(frames.Pool), upTo(0), count); !errors.Is(err, io.EOF) || seen != 2 {
		t.Errorf("got %v after %d frames, want io.EOF after 2", err, seen)
	}
	refuse := func(frames.Frame) error { return refused }
	if err := frames.Serve(bytes.NewReader(wire), new(frames.Pool), upTo(0), refuse); !errors.Is(err, refused) {
		t.Errorf("got %v, want the refusal", err)
	}
}

func TestCreditIsTheWindow(t *testing.T) {
	t.Parallel()
	c, stop := frames.NewCredit(window), make(chan struct{})
	close(stop)
	taken := 0
	for {
		n := c.Take(1000, stop, nil)
		if n == 0 {
			break
		}
		taken += n + frames.Cost
	}
	if taken > window || taken < window-frames.Cost {
		t.Errorf("took %d of %d", taken, window)
	}
	if err := c.Add(taken + 1); !errors.Is(err, frames.ErrProtocol) {
		t.Errorf("more credit than was taken: got error %v", err)
	}
	if err := c.Add(taken); err != nil {
		t.Error(err)
	}
	c.Close()
	if n := c.Take(1, nil, nil); n != 0 {
		t.Errorf("after Close: took %d", n)
	}
}

func TestTakeWaitsForCredit(t *testing.T) {
	t.Parallel()
	c := frames.NewCredit(window)
	first := c.Take(window, nil, nil)
	if first != window-frames.Cost {
		t.Fatalf("took %d", first)
	}
	got := make(chan int)
	go func() { got <- c.Take(window, nil, nil) }()
	if err := c.Add(frames.Cost + 1); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != 1 {
		t.Errorf("took %d, want the 1 that was granted", n)
	}
}

func TestInboxHoldsAWindowAtMost(t *testing.T) {
	t.Parallel()
	for name, payload := range map[string]int{"large frames": 1000, "empty frames": 0} {
		b := frames.NewInbox(window)
		var err error
		for n := 0; err == nil; n++ {
			if err = b.Push(frames.Frame{Payload: make([]byte, payload)}); err == nil && n*frames.Cost > window {
				t.Fatalf("%s: %d are held", name, n)
			}
		}
		if !errors.Is(err, frames.ErrProtocol) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	b := frames.NewInbox(window)
	b.End(frames.Frame{Type: 9})
	b.End(frames.Frame{Type: 10})
	if err := b.Push(frames.Frame{}); !errors.Is(err, frames.ErrProtocol) {
		t.Errorf("data after the end: got error %v", err)
	}
	if f, ok := b.Pop(nil, nil); !ok || f.Type != 9 {
		t.Errorf("got %v, %t; want the first end", f, ok)
	}
	b.Drop()
	stop := make(chan struct{})
	close(stop)
	if f, ok := b.Pop(nil, stop); ok {
		t.Errorf("got %v of an empty inbox", f)
	}
}

// TestFlow sends much more than a window through both ends.
func TestFlow(t *testing.T) {
	t.Parallel()
	c, b := frames.NewCredit(window), frames.NewInbox(window)
	const total = 200 * window
	var sending sync.WaitGroup
	sending.Go(func() {
		for left := total; left > 0; {
			n := c.Take(min(left, 700), nil, nil)
			if err := b.Push(frames.Frame{Payload: make([]byte, n)}); err != nil {
				t.Error(err)
				break
			}
			left -= n
		}
		b.End(frames.Frame{Type: 1})
	})
	got := 0
	for {
		f, _ := b.Pop(nil, nil)
		if f.Type == 1 {
			break
		}
		got += len(f.Payload)
		if held := b.Held(); held > window {
			t.Errorf("%d bytes are held", held)
		}
		if grant := b.Consumed(len(f.Payload)); grant > 0 {
			if err := c.Add(grant); err != nil {
				t.Error(err)
			}
		}
	}
	sending.Wait()
	if got != total {
		t.Errorf("got %d bytes of %d", got, total)
	}
}

func TestGreeting(t *testing.T) {
	t.Parallel()
	const magic = "some-magic\n"
	want := frames.Greeting{Magic: magic, Version: 7, Text: "build"}
	r := bytes.NewReader(append(want.Encode(), "rest"...))
	if got, err := frames.ReadGreeting(r, magic); err != nil || got != want || r.Len() != 4 {
		t.Errorf("got %+v, %v, %d bytes left; want %+v", got, err, r.Len(), want)
	}
	long := frames.Greeting{Magic: magic, Text: strings.Repeat("x", 1000)}
	if got, err := frames.ReadGreeting(bytes.NewReader(long.Encode()), magic); err != nil || len(got.Text) != 256 {
		t.Errorf("a long text: got %d bytes, %v", len(got.Text), err)
	}
	for said, want := range map[string]string{
		"":                                   "ended before its greeting",
		"oops":                               `said "oops" and ended`,
		"bash: no such file\n":               `is no some magic, it said "bash: no su"`,
		magic + "\x00\x00":                   "reading the greeting",
		magic + "\x00\x00\x00\x01\xff\xff":   "65535 bytes",
		magic + "\x00\x00\x00\x01\x00\x03ab": "reading the greeting",
	} {
		if _, err := frames.ReadGreeting(strings.NewReader(said), magic); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want it to say %q", said, err, want)
		}
	}
}

// FuzzRead reads what a hostile side may send: nothing beyond the limits comes
// through, and what does is what was sent.
func FuzzRead(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0, 2, 'h', 'i', 2, 0, 0, 0, 1, 0, 0, 0, 0})
	f.Add([]byte{3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add(append([]byte{100, 0, 0, 0, 1, 0, 0, 0x40, 0}, make([]byte, 0x4000)...))
	limit := func(t frames.Type) (int, int) { return int(t % 4), frames.MaxData >> (t % 8) }
	f.Fuzz(func(t *testing.T, in []byte) {
		pool, out := new(frames.Pool), new(bytes.Buffer)
		w := frames.NewWriter(out)
		err := frames.Serve(bytes.NewReader(in), pool, limit, func(f frames.Frame) error {
			if least, most := limit(f.Type); len(f.Payload) < least || len(f.Payload) > most {
				t.Errorf("a frame of type %d with %d bytes was let in", f.Type, len(f.Payload))
			}
			err := w.Send(f.Type, f.ID, f.Payload)
			pool.Put(f.Payload)
			return err
		})
		if err == nil {
			t.Error("Serve ended without a reason")
		}
		if !bytes.HasPrefix(in, out.Bytes()) || errors.Is(err, io.EOF) && out.Len() != len(in) {
			t.Errorf("%x was read as %x, %v", in, out.Bytes(), err)
		}
	})
}

func FuzzGreeting(f *testing.F) {
	const magic = "some-magic\n"
	f.Add(frames.Greeting{Magic: magic, Version: 1, Text: "b"}.Encode())
	f.Fuzz(func(t *testing.T, in []byte) {
		g, err := frames.ReadGreeting(bytes.NewReader(in), magic)
		if err == nil && !bytes.HasPrefix(in, g.Encode()) {
			t.Fatalf("%q was read as %+v", in, g)
		}
	})
}

// FuzzFlow pushes frames of the lengths that in says, and grants as much.
func FuzzFlow(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, in []byte) {
		b := frames.NewInbox(window)
		for len(in) >= 2 {
			n := int(binary.BigEndian.Uint16(in))
			in = in[2:]
			if b.Push(frames.Frame{Payload: make([]byte, n)}) != nil {
				return
			}
			if f, ok := b.Pop(nil, nil); !ok || len(f.Payload) != n {
				t.Fatalf("got %d bytes, %t; want %d", len(f.Payload), ok, n)
			}
			if grant := b.Consumed(n); grant < 0 || grant > window || b.Held() > window {
				t.Fatalf("granted %d, held %d", grant, b.Held())
			}
		}
	})
}
