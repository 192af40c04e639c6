package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// puppet is a supervisor that does what a test says: it gets the client's
// frames and writes whatever it likes.
func puppet(t testing.TB, play func(r io.Reader, w io.Writer)) *Client {
	t.Helper()
	c, err := dialPuppet(t, func(r io.Reader, w io.Writer) {
		own := greetingOf("b")
		_, _ = w.Write(own.Encode())
		if _, err := frames.ReadGreeting(r, magic); err == nil {
			play(r, w)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dialPuppet(t testing.TB, play func(r io.Reader, w io.Writer)) (*Client, error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	played := make(chan struct{})
	go func() {
		defer close(played)
		play(inR, outW)
		_ = inR.Close()
		_ = outW.Close()
	}()
	c, err := Dial(t.Context(), outR, inW, Options{Build: "b"})
	t.Cleanup(func() {
		if c != nil {
			_ = c.Close()
		}
		_, _ = inW.Close(), outR.Close()
		<-played
	})
	return c, err
}

func rawFrame(typ frames.Type, id uint32, payload []byte) []byte {
	var b bytes.Buffer
	w := frames.NewWriter(&b)
	_ = w.Send(typ, id, payload)
	return b.Bytes()
}

func TestGreetingThatDoesNotMatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said string
		want []string
	}{
		"other protocol": {string(frames.Greeting{Magic: magic, Version: 99, Text: "b"}.Encode()), []string{"protocol 99", "protocol 3", "must be the same"}},
		"other build":    {string(greetingOf("old").Encode()), []string{`build "old"`, `build "b"`}},
		"something else": {"bash: proctor: No such file or directory\n", []string{"no proctor guest", "bash: proctor"}},
		"short":          {"oops", []string{`said "oops" and ended`}},
		"nothing":        {"", []string{"ended before its greeting"}},
		"long build":     {magic + "\x00\x00\x00\x01\xff\xff", []string{"text of 65535 bytes"}},
		"half":           {magic + "\x00\x00", []string{"reading the greeting"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := dialPuppet(t, func(r io.Reader, w io.Writer) { _, _ = io.WriteString(w, c.said) })
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got error %q, want it to say %q", err, want)
				}
			}
		})
	}
}

func TestDialObeysItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	r, _ := io.Pipe()
	_, w := io.Pipe()
	if _, err := Dial(ctx, r, w, Options{}); !errors.Is(err, cause) {
		t.Errorf("got error %v, want the context's cause", err)
	}
}

// TestHostileSupervisor breaks the protocol in every way that has a name.
func TestHostileSupervisor(t *testing.T) {
	t.Parallel()
	credit := func(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }
	full := rawFrame(repStdout, 1, make([]byte, frames.MaxData))
	for name, said := range map[string][]byte{
		"garbage":             []byte(strings.Repeat("\xfe\xfd", 1000)),
		"huge frame":          {byte(repStdout), 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff},
		"frame that ends":     full[:100],
		"unknown type":        rawFrame(200, 1, nil),
		"request":             rawFrame(reqExec, 1, nil),
		"more than a window":  bytes.Repeat(full, window/frames.MaxData+1),
		"many empty frames":   bytes.Repeat(rawFrame(repStdout, 1, nil), window/frames.Cost+1),
		"credit not taken":    rawFrame(repCredit, 1, credit(window)),
		"credit of no number": rawFrame(repCredit, 1, []byte{1}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hold := make(chan struct{})
			c := puppet(t, func(r io.Reader, w io.Writer) {
				_, _ = frames.Read(r, new(frames.Pool), requestLimit)
				_, _ = w.Write(said)
			})
			first := true
			sink := writerFunc(func(p []byte) (int, error) {
				if first { // nothing is consumed until all was said
					first = false
					<-hold
				}
				return len(p), nil
			})
			go func() {
				<-c.Done()
				close(hold)
			}()
			_, err := c.Exec(t.Context(), sandbox.Command{Shell: "x", Stdout: sink})
			if !errors.Is(err, ErrGone) {
				t.Errorf("got error %v, want one that says that the supervisor is gone", err)
			}
			if _, err := c.Mark(t.Context()); !errors.Is(err, ErrGone) {
				t.Errorf("a later call: got error %v", err)
			}
		})
	}
}

func TestMalformedReply(t *testing.T) {
	t.Parallel()
	for _, payload := range [][]byte{nil, {0}, {0, 0}, {0, 0, 0, 200}, append(reply{}.encode(), 0), bytes.Repeat([]byte{0xff}, 40)} {
		c := puppet(t, func(r io.Reader, w io.Writer) {
			_, _ = frames.Read(r, new(frames.Pool), requestLimit)
			_, _ = w.Write(rawFrame(repDone, 1, payload))
			_, _ = io.Copy(io.Discard, r)
		})
		if _, err := c.Exec(t.Context(), sandbox.Command{Shell: "x"}); !errors.Is(err, frames.ErrProtocol) {
			t.Errorf("reply %x: got error %v, want a protocol error", payload, err)
		}
	}
}

func TestFramesOfUnknownCallsAreIgnored(t *testing.T) {
	t.Parallel()
	c := puppet(t, func(r io.Reader, w io.Writer) {
		_, _ = frames.Read(r, new(frames.Pool), requestLimit)
		_, _ = w.Write(rawFrame(repDone, 77, nil))
		_, _ = w.Write(rawFrame(repStdout, 78, []byte("x")))
		_, _ = w.Write(rawFrame(repDone, 1, reply{message: "m1"}.encode()))
		_, _ = io.Copy(io.Discard, r)
	})
	if m, err := c.Mark(t.Context()); err != nil || m != "m1" {
		t.Errorf("got %q, %v", m, err)
	}
}

// TestSilentSupervisor never answers: an ended call returns all the same, and
// says that the sandbox is lost.
func TestSilentSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := puppet(t, func(r io.Reader, _ io.Writer) { _, _ = io.Copy(io.Discard, r) })
		began := time.Now()
		_, err := c.Exec(t.Context(), sandbox.Command{Shell: "x", Timeout: time.Minute, Grace: time.Second})
		if !errors.Is(err, stopped) || time.Since(began) != time.Minute+(pingsMissed+1)*pingEvery {
			t.Errorf("Exec: got error %v after %v", err, time.Since(began))
		}
		if err := c.Upload(t.Context(), "/x", strings.NewReader(strings.Repeat("x", 2*window))); !errors.Is(err, stopped) {
			t.Errorf("a later call: got error %v", err)
		}
		_ = c.Close()
	})
}

// TestStuckSupervisor does not even read.
func TestStuckSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		c := puppet(t, func(r io.Reader, _ io.Writer) {
			_, _ = frames.Read(r, new(frames.Pool), requestLimit)
			<-stop
		})
		_, err := c.Exec(t.Context(), sandbox.Command{Shell: "x", Timeout: time.Minute, Grace: time.Second})
		if !errors.Is(err, stopped) {
			t.Errorf("Exec: got error %v", err)
		}
		_ = c.Close()
		close(stop)
	})
}

// TestSlowSupervisor takes a minute for what it does, and says all the while that there is
// somebody: nothing is lost.
func TestSlowSupervisor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pings := 0
		c := puppet(t, func(r io.Reader, w io.Writer) {
			out := frames.NewWriter(w)
			for {
				f, err := frames.Read(r, new(frames.Pool), requestLimit)
				if err != nil {
					return
				}
				switch f.Type {
				case reqPing:
					pings++
					_ = out.Send(repPong, f.ID, nil)
				case reqKillTree:
					time.AfterFunc(time.Minute, func() { _ = out.Send(repDone, f.ID, reply{}.encode()) })
				}
			}
		})
		for range 2 { // late answers of the first one disturb nothing
			if err := c.KillTree(t.Context(), "mark", time.Second); err != nil {
				t.Errorf("KillTree: %v", err)
			}
		}
		_ = c.Close()
		synctest.Wait()
		if pings < 20 {
			t.Errorf("it was asked %d times whether there is somebody", pings)
		}
	})
}

func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	c := puppet(t, func(r io.Reader, _ io.Writer) {
		_, _ = frames.Read(r, new(frames.Pool), requestLimit)
		close(begun)
		_, _ = io.Copy(io.Discard, r)
	})
	result := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.Background(), sandbox.Command{Shell: "x"})
		result <- err
	}()
	<-begun
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := <-result; !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("the call under way: got error %v, want ErrDestroyed", err)
	}
	if _, err := c.Mark(t.Context()); !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("a later call: got error %v, want ErrDestroyed", err)
	}
}

func TestTooLongArgumentsAre126(t *testing.T) {
	t.Parallel()
	c := puppet(t, func(r io.Reader, _ io.Writer) { _, _ = io.Copy(io.Discard, r) })
	var out strings.Builder
	st, err := c.Exec(t.Context(), sandbox.Command{Argv: []string{"x", strings.Repeat("y", maxRequest)}, Stdout: &out})
	if err != nil || st.Code != 126 || !strings.Contains(out.String(), "too long") {
		t.Errorf("got %+v, %v, output %q", st, err, out.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
