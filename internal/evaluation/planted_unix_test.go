//go:build unix

package evaluation_test

import (
	"path/filepath"
	"testing"

	"github.com/proctor-run/proctor/internal/planted"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// TestPlantedRecords: what stands where a record is expected is none, and nothing waits
// for it; the record is made again.
func TestPlantedRecords(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		if kind == planted.Directory {
			continue // what is in it is not deleted: the record cannot be written, which is an error
		}
		b := newBench(t, "a")
		b.rules = []fake.Rule{rewarded("0.5")}
		want := b.line(t)
		kind.Put(t, filepath.Join(b.dir, "trials", "a__attempt-0", "result.json"))
		if got := b.line(t); got != want || b.ran() != 0 {
			t.Errorf("%s: %d trials ran again for %s", kind, b.ran(), got)
		}
	}
}

// TestPlantedLock: what stands in the place of the lock is no lock.
func TestPlantedLock(t *testing.T) {
	t.Parallel()
	for _, kind := range planted.Kinds() {
		b := newBench(t, "a")
		b.rules = []fake.Rule{rewarded("0.5")}
		b.line(t)
		kind.Put(t, filepath.Join(b.dir, "lock.json"))
		if _, err := b.open(); err == nil {
			t.Errorf("%s: it goes on", kind)
		}
	}
}
