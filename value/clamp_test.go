package value_test

import (
	"math/big"
	"testing"

	"github.com/proctor-run/proctor/value"
)

func TestClamp(t *testing.T) {
	t.Parallel()
	large := value.NewBigInt(new(big.Int).Lsh(big.NewInt(1), 100))
	negative := value.NewBigInt(new(big.Int).Neg(large.Big()))
	small := func(n int64) *value.Int { return new(value.NewInt(n)) }
	for _, c := range []struct {
		n    *value.Int
		want int64
	}{{nil, 0}, {small(0), 0}, {small(7), 7}, {small(-7), -7}, {small(10), 10}, {small(11), 10}, {small(-11), -10}, {&large, 10}, {&negative, -10}} {
		if got := value.Clamp(c.n, 10); got != c.want {
			t.Errorf("%v: %d, want %d", c.n, got, c.want)
		}
	}
}
