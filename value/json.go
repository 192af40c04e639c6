package value

import "fmt"

// MarshalJSON writes the number in decimal.
func (n Int) MarshalJSON() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalJSON reads an integer of any size, up to [MaxIntDigits].
func (n *Int) UnmarshalJSON(data []byte) error {
	v, err := Decode(data)
	if err != nil {
		return err
	}
	read, ok := v.(Int)
	if !ok {
		return fmt.Errorf("want an integer, have %s", Repr(v))
	}
	*n = read
	return nil
}
