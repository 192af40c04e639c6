package value

// A Value is one of [Null], [Bool], [Int], [Float], [Str], [List], *[Object].
type Value interface{ value() }

// A Number is an [Int] or a [Float].
type Number interface {
	Value
	number()
}

// Float64 is the double that is nearest to a number. For an integer beyond the range of
// doubles it returns an OverflowError, see [Int.Float64].
func Float64(n Number) (float64, error) {
	if i, ok := n.(Int); ok {
		return i.Float64()
	}
	return float64(n.(Float)), nil
}

// Null is Python's None.
type Null struct{}

// Bool is True or False. It is not a [Number].
type Bool bool

// Float is an IEEE double.
type Float float64

// Str is text in WTF-8.
type Str string

// List is a list; elements may be replaced in place.
type List []Value

func (Null) value()    {}
func (Bool) value()    {}
func (Int) value()     {}
func (Float) value()   {}
func (Str) value()     {}
func (List) value()    {}
func (*Object) value() {}

func (Int) number()   {}
func (Float) number() {}

// IsNull reports whether v is Null or nil.
func IsNull(v Value) bool {
	switch v.(type) {
	case nil, Null:
		return true
	}
	return false
}
