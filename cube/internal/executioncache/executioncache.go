// Package executioncache keeps the execution infos of a benchmark's tasks, what
// installing leaves for them: one JSON file for each native id in a directory
// (CUBE, section 4.7).
package executioncache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// DirName is the name of the directory in the directory of a benchmark.
const DirName = "tasks_execution_info"

// maxInfo bounds what is read of one task, in bytes.
const maxInfo = 1 << 30

// ErrNone is for what needs a cache when there is none: nothing is ever written
// to, or read from, the working directory instead.
var ErrNone = exception.New(exception.RuntimeError, "there is no cache directory: the registry's Options have no CacheRoot")

// Dir is the directory, which need not exist; "" is none. Ids come from
// documents: one that is no path below the directory is an error. So is reading
// a link that leads out of it.
type Dir string

func checkID(id string) error {
	if !filepath.IsLocal(filepath.FromSlash(id)) || slices.Contains(strings.Split(id, "/"), "..") || strings.ContainsAny(id, "\\\x00") {
		return exception.Errorf(exception.ValueError, "task id %s is not a path below the cache directory", quote(id))
	}
	return nil
}

// file returns the name of a task's file in the directory.
func file(id string) string { return filepath.FromSlash(id) + ".json" }

// Has reports whether there is a file for the id.
func (d Dir) Has(id string) bool {
	if d == "" || checkID(id) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(string(d), file(id)))
	return err == nil
}

// Write writes the file of the id.
func (d Dir) Write(id string, data []byte) error {
	if d == "" {
		return ErrNone
	}
	if err := checkID(id); err != nil {
		return err
	}
	name := filepath.Join(string(d), file(id))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(name, data, 0o644)
}

// Clear removes the directory.
func (d Dir) Clear() error {
	if d == "" {
		return ErrNone
	}
	return os.RemoveAll(string(d))
}

// Path returns the path of a task's file as the reference joins it: an id that
// starts with a slash leaves the directory. It is for messages; files are opened
// below the directory.
func (d Dir) Path(id string) string {
	if strings.HasPrefix(id, "/") {
		return id + ".json"
	}
	return path.Join(filepath.ToSlash(string(d)), id) + ".json"
}

// Read returns the file of the id or, since installing knows only native ids, of
// the native one. A task that is not installed is a RuntimeError that says what
// to do.
func (d Dir) Read(id, native string) ([]byte, error) {
	if d == "" {
		return nil, ErrNone
	}
	data, err := d.read(id)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = d.read(native)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exception.Errorf(exception.RuntimeError, "No execution data for task_id=%s at %s. Run `cube install <bench>` (or `<OwnerBenchmarkConfig>.install()`) to populate the per-task execution cache on this worker.", quote(id), d.Path(id))
	}
	return data, err
}

func (d Dir) read(id string) ([]byte, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	return bounded.ReadIn(string(d), file(id), maxInfo)
}

// Object returns the object that a file holds; id is for messages.
func Object(id string, data []byte) (*value.Object, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("reading the execution info of task %s: %w", quote(id), err)
	}
	obj, ok := v.(*value.Object)
	if !ok {
		return nil, exception.Errorf(exception.ValueError, "the execution info of task %s is not an object", quote(id))
	}
	return obj, nil
}

// quote is Python's repr of a string.
func quote(s string) string { return value.Repr(value.Str(s)) }
