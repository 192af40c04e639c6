// Package suggest finds the words that somebody may have meant who misspelt one.
package suggest

import (
	"slices"
	"strings"
)

// Nearest returns the words that a misspelt one may have meant, the nearest
// first.
func Nearest(word string, words []string) []string {
	type candidate struct {
		word     string
		distance int
	}
	var found []candidate
	lower := strings.ToLower(word)
	for _, w := range words {
		d := editDistance(lower, strings.ToLower(w))
		if d <= allowedEdits(word) || len(word) > 1 && strings.HasPrefix(strings.ToLower(w), lower) {
			found = append(found, candidate{w, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	var out []string
	for _, c := range found[:min(len(found), maxSuggestions)] {
		out = append(out, c.word)
	}
	return out
}

// DidYouMean asks for the nearest words, after a text that leads to it; it is empty where
// there are none.
func DidYouMean(before string, near []string) string {
	if len(near) == 0 {
		return ""
	}
	return before + "did you mean " + strings.Join(near, " or ") + "?"
}

const maxSuggestions = 3

// allowedEdits is how many letters of a word may be wrong: in a short word one
// error changes much of it.
func allowedEdits(word string) int {
	if len(word) < 4 {
		return 1
	}
	return 2
}

// editDistance counts the letters to insert, delete, replace or swap with their
// neighbour that make b of a (optimal string alignment).
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	before, previous := make([]int, len(t)+1), make([]int, len(t)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range s {
		row := make([]int, len(t)+1)
		row[0] = i + 1
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			row[j+1] = min(previous[j+1]+1, row[j]+1, previous[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(t)]
}
