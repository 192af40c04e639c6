package sandboxes

import (
	"math"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/exitcode"
)

// sizeUnits are what the number of a size may end in.
var sizeUnits = map[string]float64{
	"": 1, "B": 1,
	"K": 1e3, "KB": 1e3, "M": 1e6, "MB": 1e6, "G": 1e9, "GB": 1e9, "T": 1e12, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
}

// ParseSize reads a size as users write it: "20GB", "1.5 GiB", or bytes.
func ParseSize(text string) (int64, error) {
	s := strings.ToUpper(strings.TrimSpace(text))
	end := strings.LastIndexAny(s, "0123456789.") + 1
	unit, known := sizeUnits[strings.TrimSpace(s[end:])]
	n, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || !known || n < 0 || n*unit >= math.MaxInt64 {
		return 0, exitcode.Usagef("size %q: want a number with a unit, such as 20GB or 1.5GiB", text)
	}
	return int64(n * unit), nil
}

// CacheLimit is how much the images of environment sandbox may take, which
// PROCTOR_CACHE_LIMIT says; 0 means that there is no limit.
func CacheLimit(getenv func(string) string) (int64, error) {
	text := getenv("PROCTOR_CACHE_LIMIT")
	if text == "" {
		return 0, nil
	}
	n, err := ParseSize(text)
	if err != nil {
		return 0, exitcode.Usagef("PROCTOR_CACHE_LIMIT: %w", err)
	}
	return n, nil
}
