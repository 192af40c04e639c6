package harbor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/internal/fnmatch"
	"github.com/proctor-run/proctor/internal/shellword"
	"github.com/proctor-run/proctor/value"
)

// maxExamples is how many task names the error of a filter without a match
// lists.
const maxExamples = 5

// IsValidDir reports whether a directory is a task that can be run (section
// 1.3). With verification disabled only the instruction is needed.
func IsValidDir(dir string, disableVerification bool) bool {
	ok, err := checkValidDir(dir, disableVerification)
	return ok && err == nil
}

// checkValidDir is IsValidDir with the one error that Harbor does not take as
// an answer: a task.toml that is not UTF-8.
func checkValidDir(dir string, disableVerification bool) (bool, error) {
	if !exists(filepath.Join(dir, configFile)) || !exists(filepath.Join(dir, "environment")) {
		return false, nil
	}
	t, err := open(dir)
	if err != nil {
		if isInvalid(err) {
			return false, nil
		}
		return false, err
	}
	if !disableVerification {
		return t.check() == nil, nil
	}
	if !t.Config.HasSteps() {
		return exists(filepath.Join(t.Dir, "instruction.md")), nil
	}
	for i := range t.Config.Steps {
		if t.checkStep(&t.Config.Steps[i]) != nil {
			return false, nil
		}
	}
	return true, nil
}

// Found is what a path turned out to be.
type Found struct {
	// Dirs are the task directories, below the path as it was given.
	Dirs []string
	// Source is the name of the dataset; empty for a single task.
	Source string
	// Skipped are the names of directories in a dataset that are no tasks.
	Skipped []string
}

// Discover finds the task or tasks at a path (section 1.6): the path itself if
// it is a task directory, else its direct children that are, by name.
func Discover(path string, disableVerification bool) (Found, error) {
	single, err := checkValidDir(path, disableVerification)
	if err != nil {
		return Found{}, err
	}
	if single {
		return Found{Dirs: []string{path}}, nil
	}
	real, err := resolve(path)
	if err != nil {
		return Found{}, err
	}
	found := Found{Source: filepath.Base(real)}
	entries, err := os.ReadDir(path)
	if err != nil {
		return Found{}, fmt.Errorf("listing the tasks in %q: %w", path, osError(path, err))
	}
	for _, entry := range entries {
		dir := filepath.Join(path, entry.Name())
		if !isDir(dir) {
			continue
		}
		ok, err := checkValidDir(dir, disableVerification)
		switch {
		case err != nil:
			return Found{}, fmt.Errorf("looking at %q: %w", dir, err)
		case ok:
			found.Dirs = append(found.Dirs, dir)
		default:
			found.Skipped = append(found.Skipped, entry.Name())
		}
	}
	return found, nil
}

// maxLooked bounds how many entries of a directory are looked at to tell whether it
// holds tasks.
const maxLooked = 1000

// WhyNoTaskFile says what is wrong with a directory that has no task.toml: that, and
// where directories in it are tasks, how to name it: by words of a command line that
// its path ends, such as "proctor run -p". It looks no deeper than that.
func WhyNoTaskFile(dir, how string) string {
	const missing = "it has no task.toml"
	name, ok := taskIn(dir)
	if !ok {
		return missing
	}
	return fmt.Sprintf("%s, but directories in it have one, such as %q: %s %s", missing, name, how, shellword.Quote(dir))
}

// HasTaskIn reports whether a directory in dir has a task.toml.
func HasTaskIn(dir string) bool {
	_, ok := taskIn(dir)
	return ok
}

// taskIn returns the name of a directory in dir that has a task.toml.
func taskIn(dir string) (string, bool) {
	f, err := os.Open(dir)
	if err != nil {
		return "", false
	}
	entries, _ := f.ReadDir(maxLooked) // those that could be read will do
	_ = f.Close()
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if isRegular(filepath.Join(dir, entry.Name(), configFile)) {
			return entry.Name(), true
		}
	}
	return "", false
}

// Filter says which tasks of a dataset to run (Harbor job format, section
// 2.2). The patterns are globs; nil is no filter.
type Filter struct {
	Include, Exclude []string
	Limit            *int // after the patterns; nil is none
}

// Apply selects by name: the items that match any include pattern and no
// exclude pattern, then the first Limit of them (a negative limit leaves out
// so many at the end, as in Python). Include patterns without any match are a
// ValueError that names some tasks.
func (f Filter) Apply(names []string) (kept []int, err error) {
	for i, name := range names {
		if len(f.Include) == 0 || matchesAny(f.Include, name) {
			kept = append(kept, i)
		}
	}
	if len(f.Include) > 0 && len(kept) == 0 {
		examples := slices.Sorted(slices.Values(names))
		return nil, exception.Errorf(exception.ValueError, "No tasks matched the filter(s) %s. There are %d tasks available in this dataset. "+
			"Example task names: %s", reprList(f.Include), len(names), reprList(examples[:min(maxExamples, len(examples))]))
	}
	kept = slices.DeleteFunc(kept, func(i int) bool { return matchesAny(f.Exclude, names[i]) })
	if f.Limit == nil {
		return kept, nil
	}
	n := *f.Limit
	if n < 0 {
		n = max(0, len(kept)+n)
	}
	return kept[:min(n, len(kept))], nil
}

// Unmatched lists the patterns, of both kinds, that match none of the names: they
// are probably misspelt.
func (f Filter) Unmatched(names []string) []string {
	var list []string
	for _, p := range slices.Concat(f.Include, f.Exclude) {
		matches := func(name string) bool { return fnmatch.Match(p, name) }
		if !slices.Contains(list, p) && !slices.ContainsFunc(names, matches) {
			list = append(list, p)
		}
	}
	return list
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fnmatch.Match(p, name) })
}

func reprList(list []string) string { return value.Repr(dump.Strs(list)) }

// LocalName is the name by which filters know a local task: the base name of
// its directory, links resolved.
func LocalName(dir string) string {
	real, err := resolve(dir)
	if err != nil {
		return filepath.Base(dir)
	}
	return filepath.Base(real)
}
