package dump

import (
	"slices"

	"github.com/proctor-run/proctor/value"
)

// AppendCanonical appends a text that two documents share exactly when Python
// finds them equal: the order of keys does not count, and 1, 1.0 and True are
// the same. A nan equals a nan, which Python decides by identity.
func AppendCanonical(dst []byte, v value.Value) []byte {
	switch v := v.(type) {
	case *value.Object:
		keys := slices.Sorted(v.Keys())
		dst = append(dst, '{')
		for _, key := range keys {
			item, _ := v.Get(key)
			dst = value.AppendRepr(dst, value.Str(key))
			dst = append(dst, ':')
			dst = AppendCanonical(dst, item)
			dst = append(dst, ',')
		}
		return append(dst, '}')
	case value.List:
		dst = append(dst, '[')
		for _, item := range v {
			dst = AppendCanonical(dst, item)
			dst = append(dst, ',')
		}
		return append(dst, ']')
	case value.Bool:
		if v {
			return append(dst, '1')
		}
		return append(dst, '0')
	case value.Float:
		if n, err := value.Truncate(float64(v)); err == nil && equal(v, n) {
			return n.Append(dst)
		}
		return value.AppendFloatRepr(dst, float64(v))
	case value.Int:
		return v.Append(dst)
	default:
		return value.AppendRepr(dst, v)
	}
}

func equal(a, b value.Number) bool {
	c, ordered := value.Compare(a, b)
	return ordered && c == 0
}
