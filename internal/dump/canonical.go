package dump

import (
	"slices"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

// AppendCanonical appends a text that two documents share exactly when Python
// finds them equal: the order of keys does not count, and 1, 1.0 and True are
// the same. A nan equals a nan, which Python decides by identity.
func AppendCanonical(dst []byte, v pyvalue.Value) []byte {
	switch v := v.(type) {
	case *pyvalue.Object:
		keys := slices.Sorted(v.Keys())
		dst = append(dst, '{')
		for _, key := range keys {
			item, _ := v.Get(key)
			dst = pyvalue.AppendRepr(dst, pyvalue.Str(key))
			dst = append(dst, ':')
			dst = AppendCanonical(dst, item)
			dst = append(dst, ',')
		}
		return append(dst, '}')
	case pyvalue.List:
		dst = append(dst, '[')
		for _, item := range v {
			dst = AppendCanonical(dst, item)
			dst = append(dst, ',')
		}
		return append(dst, ']')
	case pyvalue.Bool:
		if v {
			return append(dst, '1')
		}
		return append(dst, '0')
	case pyvalue.Float:
		if n, err := pyvalue.Truncate(float64(v)); err == nil && equal(v, n) {
			return n.Append(dst)
		}
		return pyvalue.AppendFloatRepr(dst, float64(v))
	case pyvalue.Int:
		return v.Append(dst)
	default:
		return pyvalue.AppendRepr(dst, v)
	}
}

func equal(a, b pyvalue.Number) bool {
	c, ordered := pyvalue.Compare(a, b)
	return ordered && c == 0
}
