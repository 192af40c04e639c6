package value

import "strings"

// LaxFloat reads text as pydantic reads a string for a float field. Its grammar is
// not that of [ParseFloat]: only ASCII digits, but underscores in odd places
// ("1_.5" is 1.5). (Reward semantics, section 5.1, rules 1 and 2.)
func LaxFloat(text string) (Float, bool) {
	if f, ok := FloatLiteral(trimWhiteSpace(text)); ok {
		return f, true
	}
	if s, ok := withoutUnderscores(text); ok {
		return FloatLiteral(s)
	}
	return 0, false
}

// LaxInt reads text as pydantic reads a string for an int field: a plain decimal
// int, or one that becomes plain by trimming white space, a plus, leading zeros, a
// fraction of zeros and single underscores ("+01", "1.0", "1_000"). More than
// MaxIntDigits digits are not accepted. (Reward semantics, section 5.1, rule 3.)
func LaxInt(text string) (Int, bool) {
	if n, ok := plainInt(text); ok {
		return n, true
	}
	s, ok := cleanInt(text)
	if !ok {
		return Int{}, false
	}
	return plainInt(s)
}

// plainInt reads an optional minus and digits without a leading zero.
func plainInt(s string) (Int, bool) {
	digits := strings.TrimPrefix(s, "-")
	switch {
	case digits == "" || skipDigits(digits, 0) != len(digits):
		return Int{}, false
	case digits[0] == '0' && len(digits) > 1, len(digits) > MaxIntDigits:
		return Int{}, false
	}
	return decimal(s).(Int), true
}

// cleanInt removes what pydantic overlooks around an int. It reports false when
// there is nothing to remove or the text cannot be an int.
func cleanInt(text string) (string, bool) {
	s := trimWhiteSpace(text)
	s, plus := strings.CutPrefix(s, "+")
	if plus && strings.HasPrefix(s, "-") {
		return "", false
	}
	s, minus := strings.CutPrefix(s, "-")
	if minus && (strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+")) {
		return "", false
	}
	s, ok := trimZeros(s)
	if !ok {
		return "", false
	}
	if dot := strings.IndexByte(s, '.'); dot >= 0 && dot+1 < len(s) && strings.Trim(s[dot+1:], "0") == "" {
		s = s[:dot]
	}
	if minus {
		s = "-" + s
	}
	if plain, ok := withoutUnderscores(s); ok {
		return plain, true
	}
	return s, len(s) < len(text)
}

// trimZeros removes leading zeros and the underscores among them, and keeps the
// last zero if nothing or a fraction follows.
func trimZeros(s string) (string, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return "", false
	}
	if s[0] != '0' {
		return s, true
	}
	i := 1
	for i < len(s) && (s[i] == '0' || s[i] == '_') {
		i++
	}
	switch {
	case i == len(s):
		return s[i-1:], true
	case s[i] == '.':
		return s[i-1:], true
	case isDigit(s[i]), s[i] == '-': // pydantic reads "0-1" as -1
		return s[i:], true
	}
	return "", false
}

// withoutUnderscores removes underscores that are there, neither first nor last
// nor next to each other.
func withoutUnderscores(s string) (string, bool) {
	if !strings.Contains(s, "_") || s[0] == '_' || s[len(s)-1] == '_' || strings.Contains(s, "__") {
		return "", false
	}
	return strings.ReplaceAll(s, "_", ""), true
}

// trimWhiteSpace strips Unicode White_Space from both ends.
func trimWhiteSpace(s string) string {
	return strings.TrimFunc(s, func(r rune) bool {
		return r == ' ' || r >= '\t' && r <= '\r' || isWideSpace(r)
	})
}
