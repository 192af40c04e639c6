package tunnel

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// past is a deadline that has passed.
var past = time.Unix(1, 0)

func TestAPassedDeadlineFailsBothDirectionsUntilItIsReset(t *testing.T) {
	t.Parallel()
	j := join(t)
	c := j.dial(t)
	s := j.accept(t)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	_ = s.SetDeadline(past)
	one := make([]byte, 1)
	if n, err := s.Read(one); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read: got %d, %v; want the deadline", n, err)
	}
	if n, err := s.Write(one); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write: got %d, %v; want the deadline", n, err)
	}
	_ = s.SetReadDeadline(time.Time{})
	if _, err := s.Read(one); err != nil || one[0] != 'x' {
		t.Errorf("Read without a deadline: got %q, %v; want what came before", one, err)
	}
	if _, err := s.Write(one); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Write with a deadline: got %v", err)
	}
	_ = s.SetWriteDeadline(time.Time{})
	if _, err := s.Write(one); err != nil {
		t.Errorf("Write without a deadline: %v", err)
	}
	if _, err := io.ReadFull(c, one); err != nil || one[0] != 'x' {
		t.Errorf("the program got %q, %v", one, err)
	}
}

// idle is a stream whose other side neither sends nor grants anything.
func idle() *Stream {
	return newStream(NewMux(bytes.NewReader(nil), io.Discard), 1)
}

func TestADeadlineInterruptsAReadAndAWriteUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := idle()
		begun := time.Now()
		_ = s.SetReadDeadline(begun.Add(time.Minute))
		_ = s.SetWriteDeadline(begun.Add(time.Hour))
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("Read: got %v after %v", err, time.Since(begun))
		}
		n, err := s.Write(make([]byte, 2*Window))
		if !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Hour {
			t.Errorf("Write: got %v after %v", err, time.Since(begun))
		}
		if n == 0 || n > Window {
			t.Errorf("Write sent %d bytes, want about the window of %d", n, Window)
		}
	})
}

func TestADeadlineThatIsMovedWhileAReadWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := idle()
		read := make(chan error, 1)
		wait := func() { go func() { _, err := s.Read(make([]byte, 1)); read <- err }(); synctest.Wait() }
		wait()
		_ = s.SetReadDeadline(past)
		if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("set into the past: got %v", err)
		}
		_ = s.SetReadDeadline(time.Now().Add(time.Minute))
		wait()
		_ = s.SetReadDeadline(time.Now().Add(time.Hour))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		select {
		case err := <-read:
			t.Errorf("the deadline that was put off: got %v", err)
		default:
		}
		_ = s.SetReadDeadline(time.Time{})
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		_ = s.Close()
		if err := <-read; !errors.Is(err, ErrClosed) {
			t.Errorf("the deadline that was taken back: got %v, want what Close gives", err)
		}
	})
}

func TestInterruptedReadsLoseNothing(t *testing.T) {
	t.Parallel()
	j := join(t)
	c := j.dial(t)
	s := j.accept(t)
	want := make([]byte, 4<<20)
	_, _ = rand.Read(want)
	var work sync.WaitGroup
	read := make(chan struct{})
	work.Go(func() {
		if _, err := c.Write(want); err != nil {
			t.Errorf("writing: %v", err)
		}
		_ = c.CloseWrite()
	})
	work.Go(func() {
		for {
			select {
			case <-read:
				return
			default:
			}
			_ = s.SetReadDeadline(past)
			_ = s.SetReadDeadline(time.Time{})
		}
	})
	var got bytes.Buffer
	for {
		_, err := io.Copy(&got, struct{ io.Reader }{s})
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			if err != nil {
				t.Errorf("reading: %v", err)
			}
			break
		}
	}
	close(read)
	work.Wait()
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got %d bytes, want the %d that were sent", got.Len(), len(want))
	}
}

func TestWhatWasWrittenBeforeFinishArrives(t *testing.T) {
	t.Parallel()
	j := join(t)
	want := make([]byte, Window-1<<10)
	_, _ = rand.Read(want)
	for _, half := range []bool{false, true} {
		c := j.dial(t)
		s := j.accept(t)
		if _, err := s.Write(want); err != nil {
			t.Fatal(err)
		}
		if half {
			_ = s.CloseWrite()
		}
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, ErrClosed) {
			t.Errorf("Read after Finish: got %v", err)
		}
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("half closed before %t: got %d bytes, %v; want %d", half, len(got), err, len(want))
		}
		// A connection that is closed refuses what the program sends, sooner or later.
		for err = nil; err == nil; {
			_, err = c.Write(make([]byte, 32<<10))
		}
	}
}

func TestAProgramThatKeepsSendingGetsWhatWasWrittenBeforeFinish(t *testing.T) {
	t.Parallel()
	j := join(t)
	c := j.dial(t)
	s := j.accept(t)
	var sending sync.WaitGroup
	sending.Go(func() {
		for err := error(nil); err == nil; {
			_, err = c.Write(make([]byte, 64<<10))
		}
	})
	want := []byte("the answer")
	if _, err := s.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	sending.Wait()
}
