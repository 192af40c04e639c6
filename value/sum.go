package value

import "math"

// Sum is Python's sum(items), in three phases: exact while the items are ints
// and the total fits an int64; then compensated (Neumaier) over floats; then plain
// from the first int outside int64 on. The order matters. The sum of nothing is
// the int 0. (Reward semantics, section 7.1: CPython 3.12.)
func Sum(items []Number) (Number, error) {
	var s Summation
	for _, x := range items {
		if err := s.Add(x); err != nil {
			return nil, err
		}
	}
	return s.Total(), nil
}

// A Summation is a [Sum] in progress: items come one by one and the total can be
// asked for at any time. The zero value is the sum of nothing.
type Summation struct {
	phase sumPhase
	ints  int64   // exact: the total
	sum   float64 // compensated: the running total
	comp  float64 // compensated: what the additions lost
	acc   Number  // plain: the total
	err   error
}

type sumPhase uint8

const (
	exact sumPhase = iota
	compensated
	plainly
)

// add adds an item. The error is the OverflowError of an int beyond the range of
// doubles that meets a float; it stays.
func (s *Summation) Add(x Number) error {
	if f, ok := x.(Float); ok && s.phase == compensated {
		s.compensate(float64(f))
		return nil
	}
	return s.add(x)
}

func (s *Summation) add(x Number) error {
	if s.err != nil {
		return s.err
	}
	if n, ok := x.(Int); ok && n.large == nil {
		switch s.phase {
		case exact:
			if total := s.ints + n.small; (total > s.ints) == (n.small > 0) {
				s.ints = total
				return nil
			}
		case compensated:
			s.sum += float64(n.small)
			return nil
		}
	}
	return s.generic(x)
}

// compensate adds to the running total and gathers the rounding error.
func (s *Summation) compensate(x float64) {
	total := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.comp += (s.sum - total) + x
	} else {
		s.comp += (x - total) + s.sum
	}
	s.sum = total
}

// generic adds an item that the present phase has no short way for, and enters
// the phase that follows.
func (s *Summation) generic(x Number) error {
	next := plainly
	if s.phase == exact {
		if _, isFloat := x.(Float); isFloat {
			next = compensated
		}
	}
	before := s.Total()
	total, err := add(before, x)
	if err != nil {
		s.phase, s.acc, s.err = plainly, before, err
		return err
	}
	s.phase = next
	if next == compensated {
		s.sum = float64(total.(Float))
	} else {
		s.acc = total
	}
	return nil
}

// Err returns the first error of [Summation.Add].
func (s *Summation) Err() error { return s.err }

// Total returns the sum of the items so far, without those from the first error
// on.
func (s *Summation) Total() Number {
	switch s.phase {
	case exact:
		return NewInt(s.ints)
	case plainly:
		return s.acc
	}
	if s.comp != 0 && !math.IsNaN(s.comp) && !math.IsInf(s.comp, 0) {
		return Float(s.sum + s.comp)
	}
	return Float(s.sum)
}

// add is Python's a + b: exact for two ints, else one addition of doubles.
func add(a, b Number) (Number, error) {
	if n, ok := a.(Int); ok {
		if m, ok := b.(Int); ok {
			return n.Add(m), nil
		}
	}
	x, err := ToFloat(a)
	if err != nil {
		return nil, err
	}
	y, err := ToFloat(b)
	if err != nil {
		return nil, err
	}
	return Float(x + y), nil
}

// ToFloat is Python's float(x); an int beyond the range of doubles is an
// OverflowError.
func ToFloat(x Number) (float64, error) {
	if n, ok := x.(Int); ok {
		return n.Float64()
	}
	f, _ := x.(Float)
	return float64(f), nil
}
