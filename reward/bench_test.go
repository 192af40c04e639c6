package reward_test

import (
	"testing"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// BenchmarkAggregate has a plain loop over the same number of doubles beside it.
func BenchmarkAggregate(b *testing.B) {
	const n = 100_000
	trials := make([]*reward.Rewards, n)
	floats := make([]float64, n)
	for i := range trials {
		floats[i] = float64(i%10) / 10
		trials[i] = &reward.Rewards{}
		trials[i].Set("reward", value.Float(floats[i]))
	}
	b.Run("mean", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reward.Aggregate(reward.Mean, trials); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("loop", func(b *testing.B) {
		mean := 0.0
		for b.Loop() {
			total := 0.0
			for _, f := range floats {
				total += f
			}
			mean += total / n
		}
		if mean < 0 {
			b.Fatal("negative")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text, object := []byte("0.75\n"), []byte(`{"reward": 0.75, "style": 1}`)
	b.Run("text", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reward.ParseText(text, "reward.txt"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reward.ParseJSON(object, "reward.json"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
