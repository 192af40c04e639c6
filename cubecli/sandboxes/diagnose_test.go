package sandboxes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// littered is a backend in which a dead process left something.
type littered struct {
	*fake.Backend
	removed *bool
}

func (b littered) Collect(ctx context.Context, keep func(procid.ID) bool) ([]string, error) {
	*b.removed = true
	return b.Survey(ctx, keep)
}

func (b littered) Survey(context.Context, func(procid.ID) bool) ([]string, error) {
	return []string{"sandbox s of " + b.Name()}, nil
}

// entry is one of a registry; makes may fail.
func entry(name string, removed *bool, err error) sandboxes.Entry {
	return sandboxes.Entry{Name: name, New: func(context.Context, sandboxes.Options) (sandbox.Backend, func() error, error) {
		if err != nil {
			return nil, nil, err
		}
		return littered{fake.New(fake.Config{Name: name}), removed}, func() error { return nil }, nil
	}}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	broken := errors.New("no engine")
	known := &sandbox.UnavailableError{Err: errors.New("no socket"), Fix: "make one"}
	registry := sandboxes.Registry{entry("good", new(bool), nil), entry("bad", nil, broken), entry("known", nil, known)}
	found := sandboxes.Diagnose(t.Context(), sandboxes.Options{Backends: registry})
	if len(found) != 4 || found[3].Kind != sandboxes.KindNetwork {
		t.Fatalf("%+v, want three environments and the network", found)
	}
	if d := found[0]; d.Kind != sandboxes.KindEnvironment || d.Name != "good" || !d.Available {
		t.Errorf("what works: %+v", d)
	}
	if d := found[1]; d.Name != "bad" || d.Available || d.Detail != broken.Error() {
		t.Errorf("what does not: %+v", d)
	}
	if d := found[2]; d.Detail != "no socket" || d.Fix != "make one" {
		t.Errorf("what does not, and can be helped: %+v", d)
	}
	_, _, err := sandboxes.Open(t.Context(), "known", sandboxes.Options{Backends: registry})
	var said strings.Builder
	exitcode.Report(&said, "p", err)
	if want := "p: environment known does not work here: no socket\np: make one\n"; said.String() != want || exitcode.Of(err) != exitcode.Usage {
		t.Errorf("opening it says %q with code %d, want %q", said.String(), exitcode.Of(err), want)
	}
}

func TestCollectAll(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, dry := range []bool{true, false} {
		var first, second bool
		registry := sandboxes.Registry{
			entry("first", &first, nil),
			entry("away", nil, fmt.Errorf("no engine: %w", sandbox.ErrUnavailable)),
			entry("broken", nil, broken),
			entry("second", &second, nil),
		}
		registry[3].With = "first" // which has removed what is left here too
		removed, err := sandboxes.CollectAll(t.Context(), sandboxes.Options{Backends: registry}, dry)
		if !errors.Is(err, broken) || errors.Is(err, sandbox.ErrUnavailable) {
			t.Errorf("dry %t: %v, want the error of the broken one alone", dry, err)
		}
		if want := []string{"sandbox s of first"}; !slices.Equal(removed, want) || first == dry || second {
			t.Errorf("dry %t: %q, removed %t and %t", dry, removed, first, second)
		}
	}
}
