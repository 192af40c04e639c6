package reward

import (
	"fmt"

	"github.com/proctor-run/proctor/value"
)

// MarshalJSON writes the rewards as an object in their order. Unlike a result
// file it loses nothing: nan and the infinities are strings, as Python spells
// them.
func (r *Rewards) MarshalJSON() ([]byte, error) {
	out := value.NewObject(r.Len())
	for name, x := range r.All() {
		out.Set(name, x)
		if f, ok := x.(value.Float); ok && f-f != 0 {
			out.Set(name, value.Str(value.FloatRepr(float64(f))))
		}
	}
	return value.AppendDumps(nil, out, value.DumpsOptions{}), nil
}

// UnmarshalJSON reads what [Rewards.MarshalJSON] writes.
func (r *Rewards) UnmarshalJSON(data []byte) error {
	v, err := value.Decode(data)
	if err != nil {
		return err
	}
	o, ok := v.(*value.Object)
	if !ok {
		return fmt.Errorf("rewards: want an object, have %s", value.Repr(v))
	}
	*r = Rewards{}
	for name, v := range o.All() {
		switch x := v.(type) {
		case value.Number:
			r.Set(name, x)
		case value.Str:
			f, ok := value.FloatLiteral(string(x))
			if !ok {
				return fmt.Errorf("reward %q: want a number, have %s", name, value.Repr(x))
			}
			r.Set(name, f)
		default:
			return fmt.Errorf("reward %q: want a number, have %s", name, value.Repr(v))
		}
	}
	return nil
}
