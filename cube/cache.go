package cube

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube/internal/executioncache"
	"github.com/proctor-run/proctor/cube/typed"
)

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
	return filepath.Join(dir, executioncache.DirName)
}

// Installed is what installing has left for the tasks of a selection.
type Installed struct {
	// Tasks is for how many of them there is an execution info.
	Tasks int
	// Dirs are the directories that are looked in, each once.
	Dirs []string
}

// Installed looks for the execution infos of the selected tasks where
// [ExecutionInfoData] does, whoever wrote them. Installers may do more than
// write them, and tasks may need none.
func (s *Selection) Installed() (Installed, error) {
	var found Installed
	last := ""
	for cfg, err := range s.TaskConfigs() {
		if err != nil {
			return Installed{}, err
		}
		dir := executioncache.Dir(s.reg.ExecutionCacheDir(cfg))
		if dir != "" && !slices.Contains(found.Dirs, string(dir)) {
			found.Dirs = append(found.Dirs, string(dir))
		}
		id, native := cfg.TaskID(), cfg.TaskMetadata().Base().ID
		if id != last && (dir.Has(id) || dir.Has(native)) { // the seeds of a task follow one another
			found.Tasks++
		}
		last = id
	}
	return found, nil
}

// Cache is the directory of one benchmark's installed data; install hooks get
// it.
type Cache struct{ dir executioncache.Dir }

// Dir returns the directory of the execution infos. It need not exist.
func (c *Cache) Dir() string { return string(c.dir) }

// Has reports whether the task with the native id is installed.
func (c *Cache) Has(id string) bool { return c.dir.Has(id) }

// Store writes the execution info of the task with the native id.
func (c *Cache) Store(id string, info ExecutionInfo) error {
	data, err := Marshal(info)
	if err != nil {
		return err
	}
	return c.dir.Write(id, data)
}

// StoreObject is [Cache.Store] for untyped data, which other implementations
// write: read it with [LoadExecutionInfoAs] or [ExecutionInfoObject].
func (c *Cache) StoreObject(id string, info *Object) error {
	data, err := typed.AppendModel(nil, orEmpty(info), 0)
	if err != nil {
		return err
	}
	return c.dir.Write(id, data)
}

// Clear removes everything that is installed.
func (c *Cache) Clear() error { return c.dir.Clear() }
