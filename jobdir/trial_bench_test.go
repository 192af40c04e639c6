package jobdir_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

func BenchmarkResult(b *testing.B) {
	v, err := value.Decode(vectors.File(b, "harbor-jobs/trial/t03-multi-step.json"))
	if err != nil {
		b.Fatal(err)
	}
	text, _ := v.(*value.Object).Get("expected_text")
	data := []byte(text.(value.Str))
	r, err := jobdir.ParseTrialResult(data)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			data = r.AppendJSON(data[:0], nil)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := jobdir.ParseTrialResult(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
