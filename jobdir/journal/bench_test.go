package journal_test

import (
	"testing"

	"github.com/proctor-run/proctor/jobdir/journal"
)

// BenchmarkJournal appends entries, and waits for the disk after each or not;
// "together" is sixteen trials at once, which wait together.
func BenchmarkJournal(b *testing.B) {
	for _, bm := range []struct {
		name  string
		n     int
		waits bool
	}{{"note", 1, false}, {"decision", 1, true}, {"together", 16, true}} {
		b.Run(bm.name, func(b *testing.B) {
			append := journal.Appender(b, b.TempDir(), bm.n, bm.waits)
			syncs := 0
			for b.Loop() {
				syncs += append()
			}
			entries := float64(b.N * bm.n)
			b.ReportMetric(b.Elapsed().Seconds()/entries*1e6, "µs/entry")
			b.ReportMetric(float64(syncs)/entries, "fsyncs/entry")
		})
	}
}
