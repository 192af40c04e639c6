package guarded_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/guarded"
)

var errOwn = errors.New("own")

func TestCall(t *testing.T) {
	t.Parallel()
	if err := guarded.Call("it", func() error { return errOwn }); err != errOwn { //nolint:errorlint // as it is
		t.Errorf("an error became %v", err)
	}
	err := guarded.Call("it", func() error { panic(errOwn) })
	caught, ok := errors.AsType[*exception.PanicError](err)
	if !ok || caught.Where != "it" || !errors.Is(err, errOwn) || !strings.Contains(caught.Stack, "guarded_test") {
		t.Errorf("a panic became %#v", err)
	}
}

func TestIsolated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func() error
		want string
	}{
		"nothing": {func() error { return nil }, ""},
		"error":   {func() error { return errOwn }, "own"},
		"panic":   {func() error { panic("oh") }, "panic in it: oh"},
		"goexit":  {func() error { runtime.Goexit(); return nil }, "it ended its goroutine"},
	} {
		got := ""
		if err := <-guarded.Isolated("it", c.do); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		returns   time.Duration // of the call
		ends      time.Duration // of its context
		abandoned time.Duration
		want      time.Duration
		ok        bool
	}{
		{"returns", 1, 9, 9, 1, true},
		{"returns in the grace period", 4, 2, 9, 4, true},
		{"does not return", 20, 2, 15, 5, false},
		{"is abandoned at once", 20, 15, 2, 2, false},
		{"is abandoned in the grace period", 20, 2, 3, 3, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.ends*time.Second)
				defer cancel()
				abandon := make(chan struct{})
				time.AfterFunc(c.abandoned*time.Second, func() { close(abandon) })
				late := make(chan string, 1)
				start := time.Now()
				got, ok, err := guarded.Within(ctx, "it", 3*time.Second, abandon, func(context.Context) (string, error) {
					time.Sleep(c.returns * time.Second)
					return "done", nil
				}, func(v string) { late <- v })
				if ok && (got != "done" || err != nil) || !ok && (got != "" || err == nil) {
					t.Errorf("got %q, %v", got, err)
				}
				if took := time.Since(start); ok != c.ok || took != c.want*time.Second {
					t.Errorf("%v after %v, want %v after %v", ok, took, c.ok, c.want*time.Second)
				}
				time.Sleep(20 * time.Second)
				if handed := len(late) == 1; handed == ok {
					t.Errorf("handed over late: %v", handed)
				}
			})
		})
	}
}
