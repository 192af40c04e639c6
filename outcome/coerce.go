package outcome

import (
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

// raise returns an error under the name of a Python exception.
func raise(exception pyvalue.Exception, format string, args ...any) error {
	return &pyvalue.Error{Exception: exception, Message: fmt.Sprintf(format, args...)}
}

func noAttribute(v pyvalue.Value, attribute string) error {
	return raise("AttributeError", "'%s' object has no attribute '%s'", pyvalue.TypeName(v), attribute)
}

// badElement says why a metric that is no object cannot be used: the exception
// depends on how far Python gets with it.
func badElement(v pyvalue.Value) error {
	hasMean := false
	switch v := v.(type) {
	case pyvalue.Str:
		hasMean = strings.Contains(string(v), "mean")
	case pyvalue.List:
		for _, item := range v {
			hasMean = hasMean || item == pyvalue.Value(pyvalue.Str("mean"))
		}
	default:
		return raise("TypeError", "argument of type '%s' is not iterable", pyvalue.TypeName(v))
	}
	if hasMean {
		return raise("TypeError", "%s indices must be integers or slices, not str", pyvalue.TypeName(v))
	}
	return noAttribute(v, "values")
}

// member is v.get(key, {}).
func member(v pyvalue.Value, key string) (pyvalue.Value, error) {
	return memberOr(v, key, &pyvalue.Object{})
}

func memberOr(v pyvalue.Value, key string, missing pyvalue.Value) (pyvalue.Value, error) {
	obj, ok := v.(*pyvalue.Object)
	if !ok {
		return nil, noAttribute(v, "get")
	}
	if found, ok := obj.Get(key); ok {
		return found, nil
	}
	return missing, nil
}

// intMember is int(v.get(key) or 0).
func intMember(v pyvalue.Value, key string) (pyvalue.Int, error) {
	x, err := memberOr(v, key, nil)
	if err != nil {
		return pyvalue.Int{}, err
	}
	return toInt(x)
}

// truthy is bool(v).
func truthy(v pyvalue.Value) bool {
	switch v := v.(type) {
	case pyvalue.Bool:
		return bool(v)
	case pyvalue.Int:
		return v.Sign() != 0
	case pyvalue.Float:
		return v != 0
	case pyvalue.Str:
		return v != ""
	case pyvalue.List:
		return len(v) > 0
	case *pyvalue.Object:
		return v.Len() > 0
	}
	return false
}

// toInt is int(v or 0) (outcome mapping, section 2.3).
func toInt(v pyvalue.Value) (pyvalue.Int, error) {
	if !truthy(v) {
		return pyvalue.Int{}, nil
	}
	switch v := v.(type) {
	case pyvalue.Bool:
		return pyvalue.NewInt(1), nil
	case pyvalue.Int:
		return v, nil
	case pyvalue.Float:
		return pyvalue.Truncate(float64(v))
	case pyvalue.Str:
		return pyvalue.ParseInt(string(v))
	}
	return pyvalue.Int{}, raise("TypeError", "int() argument must be a string, a bytes-like object or a real number, not '%s'", pyvalue.TypeName(v))
}

// toFloat is float(v) (outcome mapping, section 2.3).
func toFloat(v pyvalue.Value) (float64, error) {
	switch v := v.(type) {
	case pyvalue.Bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case pyvalue.Int:
		return v.Float64()
	case pyvalue.Float:
		return float64(v), nil
	case pyvalue.Str:
		f, err := pyvalue.ParseFloat(string(v))
		return float64(f), err
	}
	return 0, raise("TypeError", "float() argument must be a string or a real number, not '%s'", pyvalue.TypeName(v))
}

// number returns what Python's isinstance(v, (int, float)) accepts apart from
// booleans.
func number(v pyvalue.Value) (pyvalue.Number, bool) {
	x, ok := v.(pyvalue.Number)
	return x, ok
}
