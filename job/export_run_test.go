package job

import (
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/trial"
)

// FailedJournal gives an event to a running job whose journal cannot be written,
// and returns what the job ends with.
func FailedJournal(dir string, e trial.Event) error {
	j, err := journal.Open(dir, time.Now)
	if err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return err
	}
	var failed error
	m := &monitor{journal: j, fail: func(err error) { failed = err }}
	m.journalEvent(e, jobdir.Record{})
	return failed
}
