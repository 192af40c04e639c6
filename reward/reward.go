// Package reward turns what a verifier left behind into rewards, and rewards
// into the numbers of a job, exactly as Harbor 0.13.1 does on CPython 3.12 with
// pydantic 2.13.
//
// Begin with [Read], which reads a verifier's directory, or with [ParseText] and
// [ParseJSON] on bytes in memory. [Aggregate] gives a metric over the trials of a
// group, [PassAtK] values come from [PassAtKOf], [Combine] joins the steps of a
// multi-step trial, and [Stats] lists which trials got which reward.
//
// A trial without a verifier result, and one whose rewards are null, is a nil
// *[Rewards] here; where the two differ, see [Result].
//
// What Harbor reports as an exception is an *[Error] with the exception's name,
// or, from arithmetic, an error of the Python exception that arithmetic raises;
// both have a method ErrorType.
//
// Apart from Read everything is pure. The rules are those of the reward
// semantics, sections 2 to 11.
package reward

import (
	"iter"

	"github.com/proctor-run/proctor/value"
)

// Name is the key of the only reward that a reward.txt gives.
const Name = "reward"

// Rewards is an ordered map from names to ints or floats, which stay apart even
// where they are equal. A nil *Rewards stands for none: no verifier result, or
// null. The zero value is the empty map, which is not the same as none.
type Rewards struct{ values value.Object }

// Len returns the number of rewards; none has 0.
func (r *Rewards) Len() int { return r.Object().Len() }

// Set gives a name a value, at its old position if it has one and else at the
// end.
func (r *Rewards) Set(name string, x value.Number) { r.values.Set(name, x) }

// Get returns the value of a name.
func (r *Rewards) Get(name string) (value.Number, bool) {
	v, ok := r.Object().Get(name)
	if !ok {
		return nil, false
	}
	return v.(value.Number), true
}

// All yields names and values in order.
func (r *Rewards) All() iter.Seq2[string, value.Number] {
	return func(yield func(string, value.Number) bool) {
		for name, v := range r.Object().All() {
			if !yield(name, v.(value.Number)) {
				return
			}
		}
	}
}

// Object returns the rewards as a value to write, which must not be changed. None
// is nil, which is written as null.
func (r *Rewards) Object() *value.Object {
	if r == nil {
		return nil
	}
	return &r.values
}
