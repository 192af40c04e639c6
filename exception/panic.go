package exception

import "fmt"

// PanicError is a panic in code that was called and is not ours, as an error.
type PanicError struct {
	Where string // what was called: "Evaluate", "tool Close", …
	Value any    // what was given to panic
	Stack string // the stack of the panicking goroutine
}

// Error tells where the panic was and its value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.Where, e.Value) }

// ErrorType returns "RuntimeError".
func (e *PanicError) ErrorType() string { return RuntimeError }

// Unwrap returns the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ExitError is an end of the goroutine, runtime.Goexit, in code that was called and is
// not ours: what FailNow of package testing does in a helper that tests share.
type ExitError struct {
	Where string // what was called
}

// Error tells where the goroutine was ended.
func (e *ExitError) Error() string {
	return e.Where + " ended its goroutine (runtime.Goexit) instead of returning"
}

// ErrorType returns "RuntimeError".
func (*ExitError) ErrorType() string { return RuntimeError }
