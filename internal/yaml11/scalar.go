package yaml11

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// What plain scalars look like, from the YAML 1.1 type repository in the
// reading of Python's loader: an exponent needs a sign, octals begin with 0.
var (
	boolForm  = regexp.MustCompile(`^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	nullForm  = regexp.MustCompile(`^(?:~|null|Null|NULL|)$`)
	intForm   = regexp.MustCompile(`^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$`)
	floatForm = regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?` +
		`|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`)
	dateForm = regexp.MustCompile(`^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})` +
		`(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?(?:[ \t]*(?:(Z)|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?)?$`)
	shortDateForm = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
)

func scalar(n *yaml.Node) (value.Value, error) {
	tag := ""
	switch {
	case n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != "!":
		tag = n.ShortTag()
	case n.Style&quoted != 0:
		tag = "!!str"
	default:
		tag = implicitTag(n.Value)
	}
	v, ok := construct(tag, n.Value)
	if !ok {
		return nil, fail(n, "%q cannot be read as %s", n.Value, strings.TrimPrefix(tag, "!!"))
	}
	if v == nil {
		return nil, unknownTag(n)
	}
	return v, nil
}

func implicitTag(text string) string {
	switch {
	case boolForm.MatchString(text):
		return "!!bool"
	case floatForm.MatchString(text):
		return "!!float"
	case intForm.MatchString(text):
		return "!!int"
	case nullForm.MatchString(text):
		return "!!null"
	case isTimestamp(text):
		return "!!timestamp"
	case text == "=":
		return "!!value"
	}
	return "!!str"
}

// isTimestamp tells dates, which need two-digit months and days, and dates
// with a time, which do not.
func isTimestamp(text string) bool {
	return shortDateForm.MatchString(text) || (strings.Contains(text, ":") && dateForm.MatchString(text))
}

// construct returns the value of a tagged scalar; ok is false when the text
// does not fit the tag, and the value nil when the tag is not known.
func construct(tag, text string) (v value.Value, ok bool) {
	switch tag {
	case "!!str":
		return value.Str(text), true
	case "!!null":
		return value.Null{}, true
	case "!!bool":
		switch strings.ToLower(text) {
		case "yes", "true", "on":
			return value.Bool(true), true
		case "no", "false", "off":
			return value.Bool(false), true
		}
		return nil, false
	case "!!int":
		return intOf(text)
	case "!!float":
		return floatOf(text)
	case "!!timestamp":
		return timestampOf(text)
	}
	return nil, true
}

func intOf(text string) (value.Value, bool) {
	digits := strings.ReplaceAll(text, "_", "")
	negative := strings.HasPrefix(digits, "-")
	digits = strings.TrimLeft(digits, "+-")
	n, ok := new(big.Int), false
	switch {
	case len(digits) > value.MaxIntDigits:
	case strings.HasPrefix(digits, "0b"):
		_, ok = n.SetString(digits[2:], 2)
	case strings.HasPrefix(digits, "0x"):
		_, ok = n.SetString(digits[2:], 16)
	case len(digits) > 1 && digits[0] == '0':
		_, ok = n.SetString(digits, 8)
	default:
		ok = sexagesimal(n, digits)
	}
	if negative {
		n.Neg(n)
	}
	return value.NewBigInt(n), ok
}

// sexagesimal reads digits in groups of base 60, as in 1:30.
func sexagesimal(n *big.Int, text string) bool {
	for group := range strings.SplitSeq(text, ":") {
		part, ok := new(big.Int).SetString(group, 10)
		if !ok {
			return false
		}
		n.Add(n.Mul(n, big.NewInt(60)), part)
	}
	return true
}

func floatOf(text string) (value.Value, bool) {
	digits := strings.ToLower(strings.ReplaceAll(text, "_", ""))
	sign := 1.0
	if strings.HasPrefix(digits, "-") {
		sign = -1
	}
	digits = strings.TrimLeft(digits, "+-")
	switch {
	case digits == ".inf":
		return value.Float(math.Inf(int(sign))), true
	case digits == ".nan":
		return value.Float(math.NaN()), true
	case !strings.Contains(digits, ":"):
		f, err := value.ParseFloat(digits)
		return value.Float(sign * float64(f)), err == nil
	}
	groups := strings.Split(digits, ":")
	total, base := 0.0, 1.0
	for i := len(groups) - 1; i >= 0; i-- {
		f, err := value.ParseFloat(groups[i])
		if err != nil {
			return nil, false
		}
		part := float64(f) * base
		total += part
		base *= 60
	}
	return value.Float(sign * total), true
}

func timestampOf(text string) (value.Value, bool) {
	m := dateForm.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	year, month, day := atoi(m[1]), atoi(m[2]), atoi(m[3])
	if m[4] == "" {
		t, err := schema.Date(year, month, day)
		return t, err == nil
	}
	clock := schema.Clock{Hour: atoi(m[4]), Minute: atoi(m[5]), Second: atoi(m[6])}
	if m[7] != "" {
		clock.Microsecond = atoi((m[7] + "000000")[:6])
	}
	t, err := schema.DateTime(year, month, day, clock, schema.Offset(m[8], m[9], m[10], m[11]))
	return t, err == nil
}

// atoi reads digits that a pattern has already matched; nothing is 0.
func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
