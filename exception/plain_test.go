package exception_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/proctor-run/proctor/exception"
)

// TestPlainText: what people read is the error's text with each recorded wording in it
// replaced, however it is wrapped; Error stays what is recorded.
func TestPlainText(t *testing.T) {
	t.Parallel()
	recorded := func(name string) *exception.Error {
		return &exception.Error{
			Type: exception.FileNotFoundError, Message: "[Errno 2] No such file or directory: '" + name + "'",
			Plain: name + ": no such file or directory", Err: errors.New("ENOENT"),
		}
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"own":      {recorded("a"), "a: no such file or directory"},
		"wrapped":  {fmt.Errorf("reading %q: %w", "a", recorded("a")), `reading "a": a: no such file or directory`},
		"joined":   {errors.Join(recorded("a"), errors.New("other"), recorded("b")), "a: no such file or directory\nother\nb: no such file or directory"},
		"worded":   {exception.Errorf(exception.ValueError, "task: %w", recorded("a")), "task: a: no such file or directory"},
		"no plain": {exception.New(exception.ValueError, "it is 3"), "it is 3"},
		"foreign":  {errors.New("x"), "x"},
		"empty":    {fmt.Errorf("a%w", exception.New(exception.ValueError, "")), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tt.err.Error()
			if got := exception.PlainText(tt.err); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if tt.err.Error() != before {
				t.Errorf("the recorded text became %q", tt.err.Error())
			}
		})
	}
}
