// Package fnmatch matches names with shell patterns as Python does.
package fnmatch

import "slices"

// Match reports whether a name matches a shell pattern as Python's
// fnmatch.fnmatchcase has it: "*" and "?" match any character, slashes
// included, [abc] and [a-z] one of a set, [!abc] one outside it. A "[" that is
// not closed stands for itself.
func Match(pattern, name string) bool {
	tokens := parsePattern([]rune(pattern))
	text := []rune(name)
	// star and mark are where to go on when what follows the last star did
	// not match.
	i, j, star, mark := 0, 0, -1, 0
	for j < len(text) {
		switch {
		case i < len(tokens) && tokens[i].star:
			star, mark = i, j
			i++
		case i < len(tokens) && tokens[i].matches(text[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(tokens) && tokens[i].star {
		i++
	}
	return i == len(tokens)
}

// token is one element of a pattern: a star, or a set of characters.
type token struct {
	star   bool
	negate bool
	ranges [][2]rune
}

func (t token) matches(r rune) bool {
	in := slices.ContainsFunc(t.ranges, func(x [2]rune) bool { return x[0] <= r && r <= x[1] })
	return in != t.negate
}

func parsePattern(p []rune) []token {
	var out []token
	for i := 0; i < len(p); {
		c := p[i]
		i++
		switch c {
		case '*':
			if n := len(out); n == 0 || !out[n-1].star {
				out = append(out, token{star: true})
			}
		case '?':
			out = append(out, token{negate: true})
		case '[':
			end := closingBracket(p, i)
			if end < 0 {
				out = append(out, one(c))
				continue
			}
			out = append(out, parseSet(p[i:end]))
			i = end + 1
		default:
			out = append(out, one(c))
		}
	}
	return out
}

func one(r rune) token { return token{ranges: [][2]rune{{r, r}}} }

// closingBracket returns the index of the bracket that closes a set whose
// content starts at i, or -1. One that comes first is part of the set.
func closingBracket(p []rune, i int) int {
	if i < len(p) && p[i] == '!' {
		i++
	}
	if i < len(p) && p[i] == ']' {
		i++
	}
	for ; i < len(p); i++ {
		if p[i] == ']' {
			return i
		}
	}
	return -1
}

// parseSet reads the content of a set. Ranges that run backwards are empty;
// a set of nothing matches nothing, and its negation everything.
func parseSet(set []rune) token {
	chunks := splitRanges(set)
	for k := len(chunks) - 1; k > 0; k-- {
		before, after := chunks[k-1], chunks[k]
		if before[len(before)-1] > after[0] {
			chunks[k-1] = slices.Concat(before[:len(before)-1], after[1:])
			chunks = slices.Delete(chunks, k, k+1)
		}
	}
	var t token
	if len(chunks[0]) > 0 && chunks[0][0] == '!' {
		t.negate = true
		chunks[0] = chunks[0][1:]
	}
	for k, chunk := range chunks {
		for _, r := range chunk {
			t.ranges = append(t.ranges, [2]rune{r, r})
		}
		if k == 0 {
			continue
		}
		// Behind a "!" that dropping ranges has brought to the front, a hyphen
		// is one.
		between := [2]rune{'-', '-'}
		if before := chunks[k-1]; len(before) > 0 {
			between = [2]rune{before[len(before)-1], chunk[0]}
		}
		t.ranges = append(t.ranges, between)
	}
	return t
}

// splitRanges cuts a set at the hyphens that make ranges: not at one in first
// place, nor at one right behind a range.
func splitRanges(set []rune) [][]rune {
	if !slices.Contains(set, '-') {
		return [][]rune{set}
	}
	var chunks [][]rune
	start, from := 0, 1
	if set[0] == '!' {
		from = 2
	}
	for from <= len(set) {
		k := slices.Index(set[from:], '-')
		if k < 0 {
			break
		}
		k += from
		chunks = append(chunks, set[start:k])
		start = k + 1
		from = k + 3
	}
	if start < len(set) {
		return append(chunks, set[start:])
	}
	last := len(chunks) - 1
	chunks[last] = slices.Concat(chunks[last], []rune{'-'})
	return chunks
}
