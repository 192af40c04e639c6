package mersenne_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/mersenne"
)

// The numbers are those of random.Random(seed).randrange(2**32): the first two
// and the 2000th, which comes after the state was refilled.
func TestWord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		seed                uint32
		first, second, last int64
	}{
		{0, 3626764237, 1806341205, 2578218911},
		{1, 3280387012, 1095513148, 3961041447},
		{42, 2746317213, 1181241943, 811839103},
		{4294967295, 872737089, 1201118819, 769352820},
	} {
		rng := mersenne.New(tt.seed)
		var words []int64
		for range 2000 {
			words = append(words, rng.Word())
		}
		if words[0] != tt.first || words[1] != tt.second || words[1999] != tt.last {
			t.Errorf("seed %d: got %d, %d, …, %d", tt.seed, words[0], words[1], words[1999])
		}
	}
}
