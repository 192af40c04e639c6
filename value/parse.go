package value

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseFloat is Python's float(text). It accepts what reward.txt accepts: white
// space around, an underscore between two digits, Unicode decimal digits, inf,
// infinity and nan in any case; no hex. Overflow is infinite, not an error; all
// else is a ValueError. (Reward semantics, section 3.)
func ParseFloat(text string) (Float, error) {
	if s, ok := numeral(text); ok {
		if f, ok := FloatLiteral(s); ok {
			return f, nil
		}
	}
	return 0, raise(ValueError, "could not convert string to float: %s", Repr(Str(text)))
}

// ParseInt is Python's int(text): white space around, a sign, digits of any
// script with single underscores between them, at most MaxIntDigits of them; all
// else is a ValueError. (Reward semantics, section 12.1.)
func ParseInt(text string) (Int, error) {
	s, ok := numeral(text)
	digits := s
	if s != "" && (s[0] == '+' || s[0] == '-') {
		digits = s[1:]
	}
	switch n := skipDigits(digits, 0); {
	case ok && n > MaxIntDigits: // Python counts before it looks at what follows
		return Int{}, tooManyDigits(n)
	case !ok || n == 0 || n < len(digits):
		return Int{}, raise(ValueError, "invalid literal for int() with base 10: %s", shorten(Repr(Str(text))))
	}
	n := decimal(digits).(Int)
	if s[0] == '-' {
		n = n.neg()
	}
	return n, nil
}

func (n Int) neg() Int {
	if n.large == nil && n.small != math.MinInt64 {
		return Int{small: -n.small}
	}
	return normal(new(big.Int).Neg(n.big()))
}

// shorten cuts a repr as Python's error text does.
func shorten(repr string) string {
	const limit = 200
	count := 0
	for i := range repr {
		if count == limit {
			return repr[:i]
		}
		count++
	}
	return repr
}

// numeral prepares text for the grammar of numbers: to ASCII, stripped, without
// underscores. It reports false when a character or an underscore is out of
// place.
func numeral(text string) (string, bool) {
	s, ok := toASCII(text)
	if !ok {
		return "", false
	}
	s = strings.Trim(s, "\t\n\v\f\r ")
	if strings.IndexByte(s, '_') < 0 {
		return s, true
	}
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}

// toASCII replaces white space by spaces and decimal digits by ASCII digits. It
// leaves text alone that is ASCII, and refuses other characters, which includes
// U+007F, in text that is not.
func toASCII(text string) (string, bool) {
	ascii := true
	for i := 0; i < len(text) && ascii; i++ {
		ascii = text[i] < utf8.RuneSelf
	}
	if ascii {
		return text, true
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r < 0x7F:
			out = append(out, byte(r))
		case isWideSpace(r):
			out = append(out, ' ')
		default:
			d, ok := decimalDigit(r)
			if !ok {
				return "", false
			}
			out = append(out, '0'+d)
		}
	}
	return string(out), true
}

// isWideSpace reports white space beyond ASCII.
func isWideSpace(r rune) bool {
	switch r {
	case 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000:
		return true
	}
	return r >= 0x2000 && r <= 0x200A
}

// digitZeros are the zeros of the runs of decimal digits of Unicode 15.0,
// ascending; each run has ten digits.
var digitZeros = [...]rune{
	0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6,
	0x0D66, 0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80,
	0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0,
	0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
	0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16AC0, 0x16B50,
	0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E950, 0x1FBF0,
}

func decimalDigit(r rune) (byte, bool) {
	for _, zero := range digitZeros {
		if r < zero {
			break
		}
		if r < zero+10 {
			return byte(r - zero), true
		}
	}
	return 0, false
}

// FloatLiteral reads text that is, as a whole, a sign, then inf, infinity or nan
// in any case or an ASCII decimal number: the grammar of the reward semantics,
// section 3, step 4, without the steps before it. Any number of digits gives the
// nearest double.
func FloatLiteral(text string) (Float, bool) {
	body := text
	if body != "" && (body[0] == '+' || body[0] == '-') {
		body = body[1:]
	}
	negative := len(body) < len(text) && text[0] == '-'
	switch {
	case equalFoldASCII(body, "nan"):
		return Float(math.NaN()), true
	case equalFoldASCII(body, "inf"), equalFoldASCII(body, "infinity"):
		if negative {
			return Float(math.Inf(-1)), true
		}
		return Float(math.Inf(1)), true
	}
	end := skipDigits(body, 0)
	digits := end
	if end < len(body) && body[end] == '.' {
		end = skipDigits(body, end+1)
		digits = end - 1
	}
	if digits == 0 || skipExponent(body, end) != len(body) {
		return 0, false
	}
	return Float(toFloat(text)), true
}

func equalFoldASCII(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := range len(s) {
		if s[i]|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// longNumeral is the length from which strconv may misjudge an exponent, because
// it stops reading exponents at five digits.
const longNumeral = 5000

// toFloat returns the nearest double of a decimal number that the grammar has
// accepted.
func toFloat(s string) float64 {
	if len(s) >= longNumeral {
		s = condense(s)
	}
	f, _ := strconv.ParseFloat(s, 64) // out of range gives the infinity that is wanted
	return f
}

// condense rewrites a long decimal number as ±0.digits e exponent with an
// exponent of few digits.
func condense(s string) string {
	sign := ""
	if s[0] == '+' || s[0] == '-' {
		sign, s = s[:1], s[1:]
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return sign + "0"
	}
	point := int64(len(digits) - len(fraction))
	if exponent != "" {
		// Out of range gives the largest of its sign, for which no text in
		// memory can make up.
		e, _ := strconv.ParseInt(exponent, 10, 62)
		point += e
	}
	const beyond = 9999 // far outside the range of doubles, and read in full
	point = max(-beyond, min(beyond, point))
	return sign + "0." + digits + "e" + strconv.FormatInt(point, 10)
}
