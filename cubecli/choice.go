package cubecli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/fnmatch"
	"github.com/proctor-run/proctor/internal/suggest"
)

// Choice narrows the tasks of a cube: to a subset that the benchmark names, and by
// globs on their ids.
type Choice struct {
	// Subset is the name of one of the benchmark's own subsets; empty means all
	// tasks.
	Subset string
	// Include keeps the tasks that match one of them; none keeps all.
	Include []string
	// Exclude leaves out the tasks that match one of them.
	Exclude []string
	// Limit keeps so many of the rest, the first ones; nil keeps all.
	Limit *int
}

// define defines the flags of a choice.
func (c *Choice) define(fs *pflag.FlagSet) {
	c.DefineSubset(fs)
	flags.List(fs, &c.Include, "task", "t", "only the tasks that match the `glob`; repeatable")
	flags.List(fs, &c.Exclude, "exclude-task-name", "x", "leave out the tasks that match this `glob`; repeatable")
	flags.Optional(fs, &c.Limit, flags.AtLeast(1), "n-tasks", "l", "run at most this `number` of tasks")
}

// DefineSubset defines the flag that names a subset.
func (c *Choice) DefineSubset(fs *pflag.FlagSet) {
	fs.StringVar(&c.Subset, "subset", "", "only the tasks of the subset of this `name`, as show lists them")
}

// of narrows a selection of the cube's tasks.
func (c Choice) of(sel *cube.Selection) (*cube.Selection, error) {
	if c.Subset != "" {
		narrowed, err := c.named(sel)
		if err != nil {
			return nil, err
		}
		sel = narrowed
	}
	if len(c.Include)+len(c.Exclude) == 0 && c.Limit == nil {
		return sel, nil
	}
	tasks, err := sel.Tasks()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range tasks {
		if c.keeps(e.ID) && (c.Limit == nil || len(ids) < *c.Limit) {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil, exitcode.Usagef("no task of %s matches %s", sel.Name(), c)
	}
	return sel.Subset(ids...)
}

func (c Choice) named(sel *cube.Selection) (*cube.Selection, error) {
	names := sel.NamedSubsets()
	if slices.Contains(names, c.Subset) {
		narrowed, err := sel.NamedSubset(c.Subset)
		if err != nil {
			return nil, exitcode.Usagef("subset %q of %s: %w", c.Subset, sel.Name(), err)
		}
		return narrowed, nil
	}
	err := exitcode.Usagef("%s has no subset %q", sel.Name(), c.Subset)
	switch near := suggest.Nearest(c.Subset, names); {
	case len(names) == 0:
		return nil, exitcode.WithHint(err, "its benchmark names no subsets; -t chooses tasks by their ids")
	case len(near) > 0:
		return nil, exitcode.WithHint(err, "%s; subsets are: %s", suggest.DidYouMean("", near), strings.Join(names, ", "))
	default:
		return nil, exitcode.WithHint(err, "subsets are: %s", strings.Join(names, ", "))
	}
}

// CheckUnmatched refuses globs, of both kinds, that match no task of a cube: who misspelt
// one would run other tasks than they meant.
func (p *Program) CheckUnmatched(c *Cube, choice Choice) error {
	if len(choice.Include)+len(choice.Exclude) == 0 {
		return nil
	}
	sel, err := c.Select(cube.NewRegistry(cube.Options{}), nil, Choice{Subset: choice.Subset})
	if err != nil {
		return err
	}
	tasks, err := sel.Tasks()
	if err != nil {
		return err
	}
	ids := make([]string, len(tasks))
	for i, e := range tasks {
		ids[i] = e.ID
	}
	filter := harbor.Filter{Include: choice.Include, Exclude: choice.Exclude}
	if unmatched := dataset.Unmatched(c.Name, filter, ids); unmatched != nil {
		return exitcode.Usagef("%w", unmatched)
	}
	return nil
}

func (c Choice) keeps(id string) bool {
	matches := func(pattern string) bool { return fnmatch.Match(pattern, id) }
	return (len(c.Include) == 0 || slices.ContainsFunc(c.Include, matches)) && !slices.ContainsFunc(c.Exclude, matches)
}

// String is the choice for error messages.
func (c Choice) String() string {
	text := strings.Join(c.Include, ", ")
	if text == "" {
		text = "the choice"
	}
	if len(c.Exclude) > 0 {
		text += " without " + strings.Join(c.Exclude, ", ")
	}
	return text
}

// subset is one of a benchmark's own, with how many tasks it has.
type subset struct {
	name  string
	tasks int
}

// subsetsOf lists the subsets of a selection. One that no task is in has none.
func subsetsOf(sel *cube.Selection) ([]subset, error) {
	var list []subset
	for _, name := range sel.NamedSubsets() {
		s := subset{name: name}
		if narrowed, err := sel.NamedSubset(name); err == nil {
			if s.tasks, err = narrowed.NumTasks(); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	return list, nil
}

func describeSubsets(list []subset) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = fmt.Sprintf("%s (%s)", s.name, console.Count(s.tasks, "task"))
	}
	return strings.Join(words, ", ")
}
