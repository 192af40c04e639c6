package trial_test

import (
	"testing"

	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/trial"
)

func BenchmarkResult(b *testing.B) {
	v, err := pyvalue.Decode(vectors.File(b, "harbor-jobs/trial/t03-multi-step.json"))
	if err != nil {
		b.Fatal(err)
	}
	text, _ := v.(*pyvalue.Object).Get("expected_text")
	data := []byte(text.(pyvalue.Str))
	r, err := trial.ParseResult(data)
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
			if _, err := trial.ParseResult(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
