package harbor

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/proctor-run/proctor/value"
)

// Names of Python exceptions under which errors of this package are recorded
// in results. Other programs match on them.
const (
	FileNotFoundError     = "FileNotFoundError"
	FileExistsError       = "FileExistsError"
	NotADirectoryError    = "NotADirectoryError"
	IsADirectoryError     = "IsADirectoryError"
	PermissionError       = "PermissionError"
	OSError               = "OSError"
	ValueError            = "ValueError"
	UnicodeEncodeError    = "UnicodeEncodeError"
	SymlinkRecursionError = "SymlinkRecursionError"
)

// Error is an error with the name of the exception that Harbor raises in its
// place.
type Error struct {
	Type string // for example FileNotFoundError
	Msg  string
	Err  error // the cause, may be nil
}

// Error returns the exception's text.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorType returns the name of the exception.
func (e *Error) ErrorType() string { return e.Type }

func raise(typ, format string, args ...any) error {
	return &Error{Type: typ, Msg: fmt.Sprintf(format, args...)}
}

// osExceptions maps errors of the file system to what Python calls them.
var osExceptions = []struct {
	err  error
	typ  string
	text string
	code int
}{
	{fs.ErrNotExist, FileNotFoundError, "No such file or directory", 2},
	{fs.ErrPermission, PermissionError, "Permission denied", 13},
	{fs.ErrExist, FileExistsError, "File exists", 17},
	{syscall.ENOTDIR, NotADirectoryError, "Not a directory", 20},
	{syscall.EISDIR, IsADirectoryError, "Is a directory", 21},
	{syscall.ELOOP, OSError, "Too many levels of symbolic links", 40},
	{syscall.ENAMETOOLONG, OSError, "File name too long", 36},
}

// osError words an error of the file system as Python does, for example
// "[Errno 2] No such file or directory: '/t/task.toml'".
func osError(path string, err error) error {
	for _, known := range osExceptions {
		if errors.Is(err, known.err) {
			text := fmt.Sprintf("[Errno %d] %s: %s", known.code, known.text, value.Repr(value.Str(path)))
			return &Error{Type: known.typ, Msg: text, Err: err}
		}
	}
	return &Error{Type: OSError, Msg: err.Error(), Err: err}
}
