package exception_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/proctor-run/proctor/exception"
)

func TestErrorf(t *testing.T) {
	t.Parallel()
	err := exception.Errorf(exception.OSError, "reading %q: %w", "a", fs.ErrNotExist)
	if got, want := err.Error(), `reading "a": file does not exist`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the operand of %w is not the cause")
	}
	if cause := errors.Unwrap(exception.Errorf(exception.OSError, "%v", fs.ErrExist)); cause != nil {
		t.Errorf("the operand of %%v is a cause: %v", cause)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	inner := &exception.Error{Type: exception.ValueError, Message: "bad"}
	for _, tt := range []struct {
		name     string
		err      error
		typ, msg string
	}{
		{"nil", nil, "", ""},
		{"no name", errors.New("x"), "", ""},
		{"itself", inner, "ValueError", "bad"},
		{"wrapped", fmt.Errorf("loading: %w", inner), "ValueError", "bad"},
		{"the outer name counts", &exception.Error{Type: "TimeoutError", Err: inner}, "TimeoutError", ""},
		{"joined", errors.Join(errors.New("x"), inner), "ValueError", "bad"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := exception.TypeOf(tt.err); got != tt.typ {
				t.Errorf("type %q, want %q", got, tt.typ)
			}
			typed, ok := exception.Of(tt.err)
			if ok != (tt.typ != "") {
				t.Fatalf("found %v", typed)
			}
			if ok && typed.Error() != tt.msg {
				t.Errorf("message %q, want %q", typed.Error(), tt.msg)
			}
		})
	}
}
