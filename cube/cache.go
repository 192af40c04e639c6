package cube

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/internal/atomicfile"
)

// executionInfoDir is the directory of installed tasks in a benchmark's
// directory.
const executionInfoDir = "tasks_execution_info"

// CachePlacer is the optional ability of a benchmark config to keep its
// installed data elsewhere than in the directory of its name below the cache
// root (CUBE, section 6.2: cache_dir). root is [Options.CacheRoot] and may be
// empty.
type CachePlacer interface {
	CacheDir(root string) string
}

// ExecutionCachePlacer is the optional ability of a task config to have its
// execution infos elsewhere than in the directory of its benchmark (CUBE,
// section 4.7: task_execution_cache_dir). The directory is used as it is.
type ExecutionCachePlacer interface {
	ExecutionCacheDir(root string) string
}

// errNoCache is for what needs [Options.CacheRoot] when there is none: nothing
// is ever written to, or read from, the working directory instead.
func errNoCache() error {
	return RuntimeErrorf("there is no cache directory: the registry's Options have no CacheRoot")
}

// benchmarkDir returns the directory of a benchmark's installed data, "" when
// there is no cache.
func (r *Registry) benchmarkDir(cfg BenchmarkConfig, name string) string {
	if p, ok := cfg.(CachePlacer); ok {
		return p.CacheDir(r.opts.CacheRoot)
	}
	if r.opts.CacheRoot == "" {
		return ""
	}
	return filepath.Join(r.opts.CacheRoot, name)
}

// ExecutionCacheDir returns where the execution infos of a config's task lie:
// where the config itself says ([ExecutionCachePlacer]), else in the directory
// of the benchmark that owns exactly this type, else in one named after the
// first element of its TypeName. It is "" when there is no cache.
func (r *Registry) ExecutionCacheDir(c TaskConfig) string {
	if p, ok := c.(ExecutionCachePlacer); ok {
		return p.ExecutionCacheDir(r.opts.CacheRoot)
	}
	dir := r.owners[reflect.TypeOf(c).Elem()].dir
	if dir == "" {
		if r.opts.CacheRoot == "" {
			return ""
		}
		pkg, _, _ := strings.Cut(c.TypeName(), ".")
		dir = filepath.Join(r.opts.CacheRoot, pkg)
	}
	return filepath.Join(dir, executionInfoDir)
}

// checkTaskID refuses ids that are no path below a directory: ids come from
// documents.
func checkTaskID(id string) error {
	if !filepath.IsLocal(filepath.FromSlash(id)) || slices.Contains(strings.Split(id, "/"), "..") || strings.ContainsAny(id, "\\\x00") {
		return ValueErrorf("task id %s is not a path below the cache directory", quote(id))
	}
	return nil
}

// Cache is the directory of one benchmark's installed data; install hooks get
// it.
type Cache struct {
	dir string // of the execution infos
}

// Dir returns the directory of the execution infos. It need not exist.
func (c *Cache) Dir() string { return c.dir }

// Has reports whether the task with the native id is installed.
func (c *Cache) Has(id string) bool {
	if c.dir == "" || checkTaskID(id) != nil {
		return false
	}
	_, err := os.Stat(filepath.Join(c.dir, filepath.FromSlash(id)+".json"))
	return err == nil
}

// Store writes the execution info of the task with the native id.
func (c *Cache) Store(id string, info ExecutionInfo) error {
	data, err := Marshal(info)
	if err != nil {
		return err
	}
	return c.write(id, data)
}

// StoreObject is [Cache.Store] for untyped data, which other implementations
// write: read it with [LoadExecutionInfoAs] or [ExecutionInfoObject].
func (c *Cache) StoreObject(id string, info *Object) error {
	data, err := typed.AppendModel(nil, orEmpty(info), 0)
	if err != nil {
		return err
	}
	return c.write(id, data)
}

func (c *Cache) write(id string, data []byte) error {
	if c.dir == "" {
		return errNoCache()
	}
	if err := checkTaskID(id); err != nil {
		return err
	}
	file := filepath.Join(c.dir, filepath.FromSlash(id)+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(file, data, 0o644)
}

// Clear removes everything that is installed.
func (c *Cache) Clear() error {
	if c.dir == "" {
		return errNoCache()
	}
	return os.RemoveAll(c.dir)
}
