// Package pep440 orders version numbers as Python packaging does (PEP 440).
package pep440

import (
	"cmp"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// Version is a version number that can be compared.
type Version struct {
	epoch   *big.Int
	release []*big.Int // without trailing zeros
	pre     phase
	post    *big.Int // nil is before all
	dev     *big.Int // nil is after all
	local   []segment
}

// phase is a pre-release: 'a', 'b' or 'r' with a number. Its rank places
// versions without one, which come before it when they are development
// releases and after it otherwise.
type phase struct {
	rank   int
	number *big.Int
}

// segment is a part of a local version label. Numbers come after words.
type segment struct {
	number *big.Int // nil for a word
	word   string
}

// Ranks of pre-release phases, and of having none.
const (
	rankDevOnly = iota
	rankAlpha
	rankBeta
	rankCandidate
	rankNone
)

var pattern = regexp.MustCompile(`^[\t\n\v\f\r ]*v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
	`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]*))?` +
	`(-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?` +
	`([-_.]?dev[-_.]?[0-9]*)?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?[\t\n\v\f\r ]*$`)

// Parse reads a version number; ok is false for any other text.
func Parse(text string) (v Version, ok bool) {
	if !isASCII(text) {
		return v, false
	}
	m := pattern.FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return v, false
	}
	v.epoch = number(m[1])
	for part := range strings.SplitSeq(m[2], ".") {
		v.release = append(v.release, number(part))
	}
	for len(v.release) > 1 && v.release[len(v.release)-1].Sign() == 0 {
		v.release = v.release[:len(v.release)-1]
	}
	if m[5] != "" {
		v.post = number(digits(m[5]))
	}
	if m[6] != "" {
		v.dev = number(digits(m[6]))
	}
	v.pre = phaseOf(m[3], m[4])
	if m[3] == "" && v.post == nil && v.dev != nil {
		v.pre.rank = rankDevOnly
	}
	if m[7] != "" {
		for _, part := range strings.FieldsFunc(m[7], func(r rune) bool { return strings.ContainsRune("-_.", r) }) {
			v.local = append(v.local, segmentOf(part))
		}
	}
	return v, true
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

func number(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}

func digits(text string) string {
	return text[strings.LastIndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })+1:]
}

func phaseOf(word, n string) phase {
	p := phase{rank: rankNone, number: number(n)}
	switch word {
	case "a", "alpha":
		p.rank = rankAlpha
	case "b", "beta":
		p.rank = rankBeta
	case "c", "rc", "pre", "preview":
		p.rank = rankCandidate
	}
	return p
}

func segmentOf(part string) segment {
	if strings.Trim(part, "0123456789") == "" {
		return segment{number: number(part)}
	}
	return segment{word: part}
}

// Compare returns a negative number when v comes before w, 0 when they are the
// same version, and a positive number otherwise.
func (v Version) Compare(w Version) int {
	return cmp.Or(
		v.epoch.Cmp(w.epoch),
		slices.CompareFunc(v.release, w.release, (*big.Int).Cmp),
		cmp.Compare(v.pre.rank, w.pre.rank),
		v.pre.number.Cmp(w.pre.number),
		compareOptional(v.post, w.post, -1),
		compareOptional(v.dev, w.dev, 1),
		slices.CompareFunc(v.local, w.local, segment.compare),
	)
}

// compareOptional compares numbers that may be missing; missing is what the
// sign says.
func compareOptional(a, b *big.Int, missing int) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return missing
	case b == nil:
		return -missing
	}
	return a.Cmp(b)
}

func (s segment) compare(t segment) int {
	switch {
	case s.number != nil && t.number != nil:
		return s.number.Cmp(t.number)
	case s.number != nil:
		return 1
	case t.number != nil:
		return -1
	}
	return strings.Compare(s.word, t.word)
}
