package outcome

import (
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

func noAttribute(v value.Value, attribute string) error {
	return exception.Errorf(exception.AttributeError, "'%s' object has no attribute '%s'", value.TypeName(v), attribute)
}

// badElement says why a metric that is no object cannot be used: the exception
// depends on how far Python gets with it.
func badElement(v value.Value) error {
	hasMean := false
	switch v := v.(type) {
	case value.Str:
		hasMean = strings.Contains(string(v), "mean")
	case value.List:
		for _, item := range v {
			hasMean = hasMean || item == value.Value(value.Str("mean"))
		}
	default:
		return exception.Errorf(exception.TypeError, "argument of type '%s' is not iterable", value.TypeName(v))
	}
	if hasMean {
		return exception.Errorf(exception.TypeError, "%s indices must be integers or slices, not str", value.TypeName(v))
	}
	return noAttribute(v, "values")
}

// member is v.get(key, {}).
func member(v value.Value, key string) (value.Value, error) {
	return memberOr(v, key, &value.Object{})
}

func memberOr(v value.Value, key string, missing value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return nil, noAttribute(v, "get")
	}
	if found, ok := obj.Get(key); ok {
		return found, nil
	}
	return missing, nil
}

// intMember is int(v.get(key) or 0).
func intMember(v value.Value, key string) (value.Int, error) {
	x, err := memberOr(v, key, nil)
	if err != nil {
		return value.Int{}, err
	}
	return toInt(x)
}

// truthy is bool(v).
func truthy(v value.Value) bool {
	switch v := v.(type) {
	case value.Bool:
		return bool(v)
	case value.Int:
		return v.Sign() != 0
	case value.Float:
		return v != 0
	case value.Str:
		return v != ""
	case value.List:
		return len(v) > 0
	case *value.Object:
		return v.Len() > 0
	}
	return false
}

// toInt is int(v or 0) (outcome mapping, section 2.3).
func toInt(v value.Value) (value.Int, error) {
	if !truthy(v) {
		return value.Int{}, nil
	}
	switch v := v.(type) {
	case value.Bool:
		return value.NewInt(1), nil
	case value.Int:
		return v, nil
	case value.Float:
		return value.Truncate(float64(v))
	case value.Str:
		return value.ParseInt(string(v))
	}
	return value.Int{}, exception.Errorf(exception.TypeError, "int() argument must be a string, a bytes-like object or a real number, not '%s'", value.TypeName(v))
}

// toFloat is float(v) (outcome mapping, section 2.3).
func toFloat(v value.Value) (float64, error) {
	switch v := v.(type) {
	case value.Bool:
		if v {
			return 1, nil
		}
		return 0, nil
	case value.Int:
		return v.Float64()
	case value.Float:
		return float64(v), nil
	case value.Str:
		f, err := value.ParseFloat(string(v))
		return float64(f), err
	}
	return 0, exception.Errorf(exception.TypeError, "float() argument must be a string or a real number, not '%s'", value.TypeName(v))
}

// number returns what Python's isinstance(v, (int, float)) accepts apart from
// booleans.
func number(v value.Value) (value.Number, bool) {
	x, ok := v.(value.Number)
	return x, ok
}
