package sandbox_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	missing := errors.New("no kernel")
	known := &sandbox.UnavailableError{Err: missing, Fix: "get one"}
	if text := known.Error(); text != "sandbox backend is not available: no kernel (get one)" {
		t.Errorf("the error is %q", text)
	}
	if !errors.Is(known, sandbox.ErrUnavailable) || !errors.Is(known, missing) {
		t.Errorf("%v is not what it is made of", known)
	}
	for _, tt := range []struct {
		err         error
		reason, fix string
	}{
		{known, "no kernel", "get one"},
		{fmt.Errorf("opening: %w", known), "no kernel", "get one"},
		{fmt.Errorf("%w: %w", sandbox.ErrUnavailable, missing), "no kernel", ""},
		{missing, "no kernel", ""},
	} {
		if reason, fix := sandbox.Why(tt.err); reason != tt.reason || fix != tt.fix {
			t.Errorf("%v: because %q, fixed by %q; want %q and %q", tt.err, reason, fix, tt.reason, tt.fix)
		}
	}
}
