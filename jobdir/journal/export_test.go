package journal

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// WriteEntries opens a journal, appends entries and closes it again. sizes are
// those before and after each.
func WriteEntries(dir string, now func() time.Time, entries ...Entry) (sizes []int64, err error) {
	j, err := Open(dir, now)
	if err != nil {
		return nil, err
	}
	sizes = []int64{j.size}
	for i, e := range entries {
		write := j.Append
		if i%2 == 0 {
			write = j.AppendSync
		}
		err = errors.Join(err, write(e))
		sizes = append(sizes, j.size)
	}
	return sizes, errors.Join(err, j.Close())
}

// Appender returns a function that appends n entries at once and tells
// how often the disk was waited for.
func Appender(tb testing.TB, dir string, n int, wait bool) func() (syncs int) {
	j, err := Open(dir, time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close() })
	entry := Entry{Kind: TrialStarted, Trial: "hello-world__abcdefg", Task: "hello-world", Attempt: 1, Plan: strings.Repeat("0", 64)}
	write := j.Append
	if wait {
		write = j.AppendSync
	}
	return func() int {
		before := j.syncs
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if err := write(entry); err != nil {
					tb.Error(err)
				}
			})
		}
		wg.Wait()
		return j.syncs - before
	}
}
