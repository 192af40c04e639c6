package sandbox_test

import (
	"context"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// bare has none of the abilities of what it wraps, and no way to them.
type bare struct{ sandbox.Sandbox }

// through has no abilities either, and a way to those below.
type through struct{ sandbox.Sandbox }

func (w through) Unwrap() sandbox.Sandbox { return w.Sandbox }

// counting takes part in one ability.
type counting struct {
	through
	stops *int
}

func (w counting) Stop(ctx context.Context) (string, error) {
	*w.stops++
	below, _ := sandbox.As[sandbox.Stopper](w.Sandbox)
	return below.Stop(ctx)
}

func TestAs(t *testing.T) {
	t.Parallel()
	create := func(t *testing.T) sandbox.Sandbox {
		sb, err := fake.New(fake.Config{Dir: t.TempDir()}).Create(t.Context(), sandbox.Spec{Name: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return sb
	}
	t.Run("an ability is found below wrappers that unwrap", func(t *testing.T) {
		t.Parallel()
		sb := create(t)
		got, ok := sandbox.As[sandbox.Resetter](through{through{sb}})
		if !ok || got != sb.(sandbox.Resetter) {
			t.Errorf("got %v, %t; want the sandbox itself", got, ok)
		}
	})
	t.Run("the outermost that has it is taken", func(t *testing.T) {
		t.Parallel()
		stops := 0
		stopper, ok := sandbox.As[sandbox.Stopper](through{counting{through{create(t)}, &stops}})
		if !ok {
			t.Fatal("no Stopper found")
		}
		if hint, err := stopper.Stop(t.Context()); err != nil || hint == "" || stops != 1 {
			t.Errorf("got hint %q, error %v, %d calls of the wrapper", hint, err, stops)
		}
	})
	t.Run("a wrapper without Unwrap hides abilities", func(t *testing.T) {
		t.Parallel()
		if got, ok := sandbox.As[sandbox.NetworkSwitcher](through{bare{create(t)}}); ok || got != nil {
			t.Errorf("got %v, %t", got, ok)
		}
	})
	t.Run("no sandbox has no ability", func(t *testing.T) {
		t.Parallel()
		if _, ok := sandbox.As[sandbox.Stopper](nil); ok {
			t.Error("found one")
		}
	})
}
