package score

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// A HeadlineError says why a group has no headline, with the Python exception
// by which the reference aborts the job at this point.
type headlineError struct {
	Exception string
	Message   string
}

func (e *headlineError) Error() string { return e.Exception + ": " + e.Message }

// ErrorType returns the name of the exception.
func (e *headlineError) ErrorType() string { return e.Exception }

// Headline is the first value of the group's first metric as progress displays
// show it: "Mean: 0.500". Groups without metrics have none.
func Headline(e *jobdir.Eval) (string, error) {
	if len(e.Metrics) == 0 {
		return "", &headlineError{"IndexError", "list index out of range"}
	}
	for name, v := range e.Metrics[0].All() {
		text, err := threeDecimals(v)
		if err != nil {
			return "", err
		}
		return titleCase(name) + ": " + text, nil
	}
	return "", &headlineError{"StopIteration", ""}
}

func threeDecimals(v value.Value) (string, error) {
	x, ok := v.(value.Number)
	if !ok {
		return "", &headlineError{"ValueError", fmt.Sprintf("not a number: %s", value.Repr(v))}
	}
	f, err := value.ToFloat(x)
	if err != nil {
		return "", &headlineError{"OverflowError", err.Error()}
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%.3f", f), "+")), nil
}

// titleCase raises every letter that follows none, and lowers the rest.
func titleCase(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		defer func() { inWord = unicode.IsLetter(r) }()
		if inWord {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}
