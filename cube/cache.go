package cube

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/atomicfile"
)

// executionInfoDir is the directory of installed tasks in a benchmark's
// directory.
const executionInfoDir = "tasks_execution_info"

// maxExecutionInfo bounds what is read of one task's installed data, in bytes.
const maxExecutionInfo = 1 << 30

// ExecutionCacheDir returns where the execution infos of tasks of this config's
// type lie: in the directory of the benchmark that owns exactly this type, else
// in one named after the first element of its TypeName.
func (r *Registry) ExecutionCacheDir(c TaskConfig) string {
	return r.executionCacheDir(reflect.TypeOf(c).Elem(), c.TypeName())
}

func (r *Registry) executionCacheDir(t reflect.Type, typePath string) string {
	dir := ""
	if info := r.byGo[t]; info != nil {
		dir = info.owner
	}
	if dir == "" {
		pkg, _, _ := strings.Cut(typePath, ".")
		dir = filepath.Join(r.opts.CacheRoot, pkg)
	}
	return filepath.Join(dir, executionInfoDir)
}

// executionFile returns the path of a task's file as the reference joins it: an
// id that starts with a slash leaves the directory. Only messages use it; files
// are opened below the directory.
func executionFile(dir, id string) string {
	if strings.HasPrefix(id, "/") {
		return id + ".json"
	}
	return path.Join(filepath.ToSlash(dir), id) + ".json"
}

// ExecutionInfoPath returns where the execution info of a config is looked for
// first.
func (r *Registry) ExecutionInfoPath(c TaskConfig) string {
	return executionFile(r.ExecutionCacheDir(c), c.TaskID())
}

// LoadExecutionInfo reads what install left for this task: the file of the
// derived id or, since install knows only native ids, the file of the native
// one. A task that is not installed is a RuntimeError that says what to do.
func (c *TaskConfigBase[M]) LoadExecutionInfo() (ExecutionInfo, error) {
	m := baseOf(c.Metadata)
	switch {
	case c.reg == nil:
		return nil, RuntimeErrorf("no registry: read the task config through one, or make the task with its MakeTask")
	case m == nil:
		return nil, RuntimeErrorf("the task config has no metadata")
	}
	return c.reg.loadExecutionInfo(c.reg.executionCacheDir(c.typ, c.path), c.TaskID(), m.ID)
}

func (r *Registry) loadExecutionInfo(dir, taskID, nativeID string) (ExecutionInfo, error) {
	data, err := readExecutionInfo(dir, taskID)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = readExecutionInfo(dir, nativeID)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, RuntimeErrorf("No execution data for task_id=%s at %s. Run `cube install <bench>` (or `<OwnerBenchmarkConfig>.install()`) to populate the per-task execution cache on this worker.", quote(taskID), executionFile(dir, taskID))
	}
	if err != nil {
		return nil, err
	}
	info, err := Load[ExecutionInfo](r, data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", executionFile(dir, taskID), err)
	}
	return info, nil
}

// checkTaskID refuses ids that are no path below a directory: ids come from
// documents.
func checkTaskID(id string) error {
	if !filepath.IsLocal(filepath.FromSlash(id)) || slices.Contains(strings.Split(id, "/"), "..") || strings.ContainsAny(id, "\\\x00") {
		return ValueErrorf("task id %s is not a path below the cache directory", quote(id))
	}
	return nil
}

func readExecutionInfo(dir, id string) ([]byte, error) {
	if err := checkTaskID(id); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(id) + ".json")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxExecutionInfo+1))
	if err == nil && len(data) > maxExecutionInfo {
		err = ValueErrorf("%s is larger than %d bytes", executionFile(dir, id), maxExecutionInfo)
	}
	return data, err
}

// Cache is the directory of one benchmark's installed data; install hooks get
// it.
type Cache struct {
	dir string // of the execution infos
}

// Dir returns the directory. It need not exist.
func (c *Cache) Dir() string { return c.dir }

// Has reports whether the task with the native id is installed.
func (c *Cache) Has(id string) bool {
	if checkTaskID(id) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(id)+".json"))
	return err == nil
}

// Store writes the execution info of the task with the native id.
func (c *Cache) Store(id string, info ExecutionInfo) error {
	if err := checkTaskID(id); err != nil {
		return err
	}
	data, err := Marshal(info)
	if err != nil {
		return err
	}
	file := filepath.Join(c.dir, filepath.FromSlash(id)+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o644)
}

// Clear removes everything that is installed.
func (c *Cache) Clear() error { return os.RemoveAll(c.dir) }
