package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proctor-run/proctor/sandbox/internal/engine"
)

func TestTail(t *testing.T) {
	t.Parallel()
	tl := engine.NewTail(10)
	for _, part := range []string{"first line\n", "second\n", "third\n"} {
		_, _ = tl.Write([]byte(part))
	}
	if got := tl.String(); got != "[…]\nthird\n" {
		t.Errorf("got %q", got)
	}
	short := engine.NewTail(10)
	_, _ = short.Write([]byte("all\xff"))
	if got := short.String(); got != "all\uFFFD" {
		t.Errorf("got %q", got)
	}
}

// TestMaking: a call that makes something outlives its context for as long as a busy
// engine needs, another one for a moment; both end when they have been answered.
func TestMaking(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for name, tt := range map[string]struct {
		of    func(context.Context) (context.Context, context.CancelFunc)
		grace time.Duration
	}{"making": {engine.Making, time.Minute}, "another": {engine.Detached, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				call, done := tt.of(ctx)
				defer done()
				stop(enough)
				time.Sleep(tt.grace - time.Millisecond)
				if call.Err() != nil {
					t.Error("it is cut off before its grace is over")
				}
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if !errors.Is(context.Cause(call), enough) {
					t.Errorf("after its grace the cause is %v", context.Cause(call))
				}
			})
		})
	}
}

func TestReporterIsBrief(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	var said []string
	r := engine.NewReporter(func(text string) { said = append(said, text) }, func() time.Time { return now })
	r.Say("a")
	r.Say("a")
	r.Sometimes("b")
	now = now.Add(time.Second)
	r.Sometimes("c")
	r.Sometimes("d")
	r.Say("e")
	if want := "a c e"; strings.Join(said, " ") != want {
		t.Errorf("got %q, want %q", said, want)
	}
	engine.NewReporter(nil, func() time.Time { return now }).Say("no listener")
}

func TestPlatform(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"linux/amd64": "linux/amd64/", "linux/arm/v7": "linux/arm/v7"} {
		p, err := engine.Platform(text)
		if err != nil || p.OS+"/"+p.Architecture+"/"+p.Variant != want {
			t.Errorf("%q: got %v, %v", text, p, err)
		}
	}
	if p, err := engine.Platform(""); p != nil || err != nil {
		t.Errorf("none: got %v, %v", p, err)
	}
	for _, bad := range []string{"linux", "/", "linux/", "a/b/c/d"} {
		if p, err := engine.Platform(bad); err == nil {
			t.Errorf("%q: got %v", bad, p)
		}
	}
}

func TestSays(t *testing.T) {
	t.Parallel()
	err := errors.New("Error: Manifest Unknown")
	if !engine.Says(err, "no such", "manifest unknown") || engine.Says(err, "overlap") || engine.Says(err) {
		t.Error("words are not found, or found that are not there")
	}
}
