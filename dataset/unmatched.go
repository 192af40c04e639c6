package dataset

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/suggest"
)

// UnmatchedError tells of patterns of a filter that match no task of a dataset, while
// others match some: who misspelt one would run other tasks than they meant. Harbor
// runs what is left; proctor refuses to start such a job (and only warns when one that
// was started so is resumed).
type UnmatchedError struct {
	Dataset string // its path or name
	// Patterns are the filter's own, each once, includes first; Near has for each of
	// them the names of tasks that may be meant, the nearest first.
	Patterns []string
	Near     [][]string
}

// Error has a line per pattern.
func (e *UnmatchedError) Error() string { return strings.Join(e.Lines(), "\n") }

// Lines says of each pattern that it matches nothing, with the nearest names.
func (e *UnmatchedError) Lines() []string {
	lines := make([]string, len(e.Patterns))
	for i, pattern := range e.Patterns {
		lines[i] = fmt.Sprintf("no task of %q matches %q%s", e.Dataset, pattern, suggest.DidYouMean("; ", e.Near[i]))
	}
	return lines
}

// Unmatched finds the patterns of a filter that match none of the names of a dataset's
// tasks; nil where each matches one.
func Unmatched(dataset string, filter harbor.Filter, names []string) *UnmatchedError {
	var found *UnmatchedError
	for _, pattern := range filter.Unmatched(names) {
		if found == nil {
			found = &UnmatchedError{Dataset: dataset}
		}
		found.Patterns = append(found.Patterns, pattern)
		found.Near = append(found.Near, nearTo(pattern, names))
	}
	return found
}

// Choose applies a filter to the names of a dataset's tasks: the positions of those that
// it keeps, in their order, and the patterns that match none. Where it includes nothing
// the error is Harbor's, with the nearest names.
func Choose(dataset string, filter harbor.Filter, names []string) (kept []int, unmatched *UnmatchedError, err error) {
	unmatched = Unmatched(dataset, filter, names)
	kept, err = filter.Apply(names)
	if err == nil || unmatched == nil {
		return kept, unmatched, err
	}
	for i, pattern := range unmatched.Patterns {
		if near := unmatched.Near[i]; len(near) > 0 {
			err = fmt.Errorf("%w\n%q%s", err, pattern, suggest.DidYouMean("; ", near))
		}
	}
	return nil, unmatched, err
}

// nearTo finds the names that a pattern may have meant. One that is open at its end is
// held against as much of each name as it spells out.
func nearTo(pattern string, names []string) []string {
	word, open := strings.CutSuffix(strings.TrimLeft(pattern, "*"), "*")
	if !open {
		return suggest.Nearest(word, names)
	}
	starts, whole := make([]string, len(names)), map[string]string{}
	for i, name := range names {
		starts[i] = name[:min(len(name), len(word))]
		if _, seen := whole[starts[i]]; !seen {
			whole[starts[i]] = name
		}
	}
	var near []string
	for _, start := range suggest.Nearest(word, starts) {
		if name := whole[start]; len(near) == 0 || near[len(near)-1] != name {
			near = append(near, name)
		}
	}
	return near
}
