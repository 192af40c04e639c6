package value_test

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/proctor-run/proctor/value"
)

func TestParseFloat(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 200_000)
	for text, want := range map[string]string{
		" 1_0.5\n": "10.5", "1_0.0_1e1_0": "100100000000.0", "\u0661": "1.0", "\u30001\u00a0": "1.0",
		"-0": "-0.0", "+.5": "0.5", "5.": "5.0", "1e400": "inf", "-1e-400": "-0.0",
		"+nan": "nan", "-NaN": "nan", "-iNfInItY": "-inf", "\uff11\uff10": "10.0",
		"1" + zeros + "e-200000":                     "1.0",
		"0." + zeros + "1e+200001":                   "1.0",
		"1e" + zeros + "5":                           "100000.0",
		"1e99999999999999999999":                     "inf",
		"1e-99999999999999999999":                    "0.0",
		zeros + "e99999999999":                       "0.0",
		"9007199254740993" + zeros[:5000] + "e-5000": "9007199254740992.0",
		"9007199254740993." + zeros + "1":            "9007199254740994.0",
	} {
		f, err := value.ParseFloat(text)
		if got := value.FloatRepr(float64(f)); err != nil || got != want {
			t.Errorf("%.40q: got %s, error %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", " ", "1__0", "_1", "1_", "1_.0", "1._0", "1_e5", "1e_5", "0x1", "0x1p3", "nan(1)", "1 2", "+-1", "1f", "1\x00",
		"\x1c1", "\ufeff1", "\u22121", ".", "e5", "-", "infin", "\u0661\x7f", "1,5", "\u00b2", "\u180e1", "\xed\xa0\x80",
	} {
		if f, err := value.ParseFloat(text); !errors.Is(err, value.ValueError) {
			t.Errorf("%q: got %v, error %v; want a ValueError", text, f, err)
		}
	}
	if _, err := value.ParseFloat("it's"); err.Error() != `could not convert string to float: "it's"` {
		t.Errorf("got error %q", err)
	}
}

// TestDecimalDigits compares the runs of digits with Go's table, as far as both
// know them.
func TestDecimalDigits(t *testing.T) {
	t.Parallel()
	if unicode.Version != "15.0.0" {
		t.Skipf("Go has Unicode %s, the rule is for 15.0", unicode.Version)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xD800 && r <= 0xDFFF {
			continue
		}
		if _, err := value.ParseInt(string(r)); (err == nil) != unicode.Is(unicode.Nd, r) {
			t.Errorf("%U: got error %v", r, err)
		}
	}
}

func TestParseInt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" 3 ": "3", "+3": "3", "-007": "-7", "1_000": "1000", "\u0663": "3", "-0": "0",
		"-9223372036854775808": "-9223372036854775808", "-9223372036854775809": "-9223372036854775809",
		"99999999999999999999": "99999999999999999999",
	} {
		if n, err := value.ParseInt(text); err != nil || n.String() != want {
			t.Errorf("%q: got %s, error %v; want %s", text, n, err, want)
		}
	}
	for text, want := range map[string]string{
		"3.0":                    `invalid literal for int() with base 10: '3.0'`,
		" ":                      `invalid literal for int() with base 10: ' '`,
		"":                       `invalid literal for int() with base 10: ''`,
		"+-3":                    `invalid literal for int() with base 10: '+-3'`,
		"0x3":                    `invalid literal for int() with base 10: '0x3'`,
		"\x1c3":                  `invalid literal for int() with base 10: '\x1c3'`,
		strings.Repeat("x", 300): `invalid literal for int() with base 10: '` + strings.Repeat("x", 199),
		strings.Repeat("1", 4301): "Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits; " +
			"use sys.set_int_max_str_digits() to increase the limit",
	} {
		if n, err := value.ParseInt(text); !errors.Is(err, value.ValueError) || err.Error() != want {
			t.Errorf("%.20q: got %s, error %v; want %s", text, n, err, want)
		}
	}
}

func TestLax(t *testing.T) {
	t.Parallel()
	const no = "no"
	for text, want := range map[string]struct{ float, integer string }{
		"1":         {"1.0", "1"},
		" 1 ":       {"1.0", "1"},
		"+01":       {"1.0", "1"},
		"1.0":       {"1.0", "1"},
		"1.":        {"1.0", no},
		"1.5":       {"1.5", no},
		"1e3":       {"1000.0", no},
		"1_000":     {"1000.0", "1000"},
		"1_.5":      {"1.5", no},
		"1_e5":      {"100000.0", no},
		"-_1":       {"-1.0", no},
		"in_f":      {"inf", no},
		" 1_000 ":   {no, "1000"},
		" 1_0.00 ":  {no, "10"},
		" 1_0.50 ":  {no, no},
		"0-1":       {no, "-1"},
		"-0-1":      {no, no},
		"00":        {"0.0", "0"},
		"-0":        {"-0.0", "0"},
		"0_":        {no, no},
		"+-1":       {no, no},
		"":          {no, no},
		"\u0661":    {no, no},
		"0x1":       {no, no},
		"\u20031\n": {"1.0", "1"},
	} {
		float, integer := no, no
		if f, ok := value.LaxFloat(text); ok {
			float = value.Repr(f)
		}
		if n, ok := value.LaxInt(text); ok {
			integer = n.String()
		}
		if float != want.float || integer != want.integer {
			t.Errorf("%q: got float %s and int %s, want %s and %s", text, float, integer, want.float, want.integer)
		}
	}
}
