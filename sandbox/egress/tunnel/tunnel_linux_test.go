package tunnel

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// joined is a relay and the outer end of its pipes.
type joined struct {
	mux  *Mux
	port uint16
	in   *io.PipeWriter // the relay's standard input
}

func (j *joined) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", j.port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

func join(t testing.TB) *joined {
	t.Helper()
	stdinR, stdinW := io.Pipe()
	stdoutR, stdoutW := io.Pipe()
	relayed, ran := make(chan error, 1), make(chan error, 1)
	go func() {
		err := Relay(stdinR, stdoutW, ProxyPort)
		_ = stdoutW.CloseWithError(io.EOF)
		_ = stdinR.CloseWithError(io.ErrClosedPipe)
		relayed <- err
	}()
	port, err := ReadHello(stdoutR)
	if err != nil {
		t.Fatal(err)
	}
	m := NewMux(stdoutR, stdinW)
	go func() { ran <- m.Run() }()
	t.Cleanup(func() {
		_ = stdinW.Close()
		if err := <-relayed; err != nil {
			t.Errorf("the relay: %v", err)
		}
		if err := <-ran; !errors.Is(err, io.EOF) {
			t.Errorf("Run: got %v, want io.EOF", err)
		}
	})
	return &joined{mux: m, port: port, in: stdinW}
}

func (j *joined) accept(t testing.TB) *Stream {
	t.Helper()
	s, err := j.mux.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBytesArriveBothWaysWithTheirEnds(t *testing.T) {
	t.Parallel()
	j := join(t)
	want := make([]byte, 3<<20)
	_, _ = rand.Read(want)
	for range 8 {
		c := j.dial(t)
		s := j.accept(t)
		var echo sync.WaitGroup
		echo.Go(func() {
			if _, err := io.Copy(s, s); err != nil {
				t.Errorf("echo: %v", err)
			}
			_ = s.CloseWrite()
		})
		echo.Go(func() {
			if _, err := c.Write(want); err != nil {
				t.Errorf("writing: %v", err)
			}
			_ = c.CloseWrite()
		})
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, %v; want the %d that were sent", len(got), err, len(want))
		}
		echo.Wait()
	}
	j.mux.mu.Lock()
	left := len(j.mux.streams)
	j.mux.mu.Unlock()
	if left != 0 {
		t.Errorf("%d streams are left", left)
	}
}

func TestAStreamThatIsNotReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	j := join(t)
	stuck := j.dial(t)
	ignored := j.accept(t)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = stuck.Write(make([]byte, 32<<20)) // until it is closed
	}()
	c := j.dial(t)
	s := j.accept(t)
	for range 100 {
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if held := ignored.in.Held(); held > Window {
		t.Errorf("%d bytes are held for a stream that nobody reads, at most %d are allowed", held, Window)
	}
	_ = ignored.Close()
	<-wrote
}

func TestClosingReachesTheProgram(t *testing.T) {
	t.Parallel()
	j := join(t)
	c := j.dial(t)
	s := j.accept(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the program's connection is still open")
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: got %v, want ErrClosed", err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("Write after Close: got %v, want ErrClosed", err)
	}
}

func TestAProgramThatDiesResetsItsStream(t *testing.T) {
	t.Parallel()
	j := join(t)
	c := j.dial(t)
	s := j.accept(t)
	_ = c.SetLinger(0)
	_ = c.Close()
	select {
	case <-s.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the stream's context does not end")
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, errReset) {
		t.Errorf("got %v, want ErrReset", err)
	}
}

func TestMoreConnectionsThanTheRelayCarriesWait(t *testing.T) {
	t.Parallel()
	j := join(t)
	const more = maxStreams + 50
	done := make(chan error, more)
	for range more {
		go func() {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", j.port))
			if err == nil {
				_, err = c.Write([]byte("x"))
			}
			if err == nil {
				_, err = io.ReadFull(c, make([]byte, 1))
			}
			if err == nil {
				err = c.Close()
			}
			done <- err
		}()
	}
	for range more {
		s := j.accept(t)
		if _, err := io.CopyN(s, s, 1); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, s)
		_ = s.CloseWrite()
	}
	for range more {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAnotherRelayTakesAnotherPort(t *testing.T) {
	t.Parallel()
	a, b := join(t), join(t)
	if a.port == b.port {
		t.Errorf("two relays listen on port %d", a.port)
	}
}
