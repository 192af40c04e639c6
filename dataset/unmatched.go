package dataset

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/suggest"
)

// Unmatched warns of each pattern of a filter that matches no task of a dataset,
// with the nearest names.
func Unmatched(dataset string, filter harbor.Filter, names []string) []string {
	var warnings []string
	for _, pattern := range filter.Unmatched(names) {
		text := fmt.Sprintf("no task of %q matches %q", dataset, pattern)
		if near := suggest.Nearest(strings.Trim(pattern, "*"), names); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
		warnings = append(warnings, text)
	}
	return warnings
}
