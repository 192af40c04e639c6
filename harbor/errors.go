package harbor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// osExceptions maps errors of the file system to what Python calls them.
var osExceptions = []struct {
	err  error
	typ  string
	text string
	code int
}{
	{fs.ErrNotExist, exception.FileNotFoundError, "No such file or directory", 2},
	{fs.ErrPermission, exception.PermissionError, "Permission denied", 13},
	{fs.ErrExist, exception.FileExistsError, "File exists", 17},
	{syscall.ENOTDIR, exception.NotADirectoryError, "Not a directory", 20},
	{syscall.EISDIR, exception.IsADirectoryError, "Is a directory", 21},
	{syscall.ELOOP, exception.OSError, "Too many levels of symbolic links", 40},
	{syscall.ENAMETOOLONG, exception.OSError, "File name too long", 36},
}

// osError words an error of the file system as Python does, for example
// "[Errno 2] No such file or directory: '/t/task.toml'".
func osError(path string, err error) error {
	for _, known := range osExceptions {
		if errors.Is(err, known.err) {
			text := fmt.Sprintf("[Errno %d] %s: %s", known.code, known.text, value.Repr(value.Str(path)))
			plain := fmt.Sprintf("%s: %s", path, strings.ToLower(known.text))
			return &exception.Error{Type: known.typ, Message: text, Plain: plain, Err: err}
		}
	}
	return &exception.Error{Type: exception.OSError, Message: err.Error(), Err: err}
}
