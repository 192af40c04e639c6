package flags

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/internal/suggest"
)

// ChoiceError is a word that is not among those that can be chosen.
type ChoiceError struct {
	Word, What string
	Choices    []string // those that are named
	Near       []string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("%q is not %s; choose from %s", e.Word, e.What, strings.Join(e.Choices, ", "))
}

// OneOf accepts one of some words; what says with its article what they are.
// Words that are accepted besides are not named in the error.
func OneOf(word, what string, choices, besides []string) (string, error) {
	if slices.Contains(choices, word) || slices.Contains(besides, word) {
		return word, nil
	}
	all := slices.Clone(choices)
	for _, w := range besides {
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return "", &ChoiceError{word, what, choices, suggest.Nearest(word, all)}
}
