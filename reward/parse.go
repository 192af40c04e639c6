package reward

import (
	"errors"

	"github.com/proctor-run/proctor/value"
)

// ParseText reads the bytes of a reward.txt: one number as Python's float(str)
// reads it, under the name "reward". The path appears in messages only. (Reward
// semantics, section 3.)
func ParseText(data []byte, path string) (*Rewards, error) {
	text, err := value.ReadText(data)
	var x value.Float
	if err == nil {
		x, err = value.ParseFloat(text)
	}
	if err != nil {
		return nil, &Error{Kind: Unparsable, Message: "Failed to parse rewards from text file " + path, Cause: err}
	}
	r := &Rewards{}
	r.Set(Name, x)
	return r, nil
}

// ParseJSON reads the bytes of a reward.json: null, which gives nil, or an object of
// numbers, which validate coerces. The path appears in messages only. (Reward
// semantics, sections 4 and 5.)
func ParseJSON(data []byte, path string) (*Rewards, error) {
	v, err := value.Decode(data)
	switch {
	case errors.Is(err, value.RecursionError):
		return nil, &Error{Kind: TooDeep, Message: err.Error(), Cause: err}
	case err != nil:
		return nil, &Error{Kind: Unparsable, Message: "Failed to parse rewards from JSON file " + path, Cause: err}
	}
	return validate(v)
}
