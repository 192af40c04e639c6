package view

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
)

const (
	// changePoll is how often a running job is looked at, and changeBeat how often a
	// page hears that the server is there.
	changePoll = time.Second
	changeBeat = 15 * time.Second
	// changesLimit bounds a stream; a browser then asks again.
	changesLimit = 10 * time.Minute
)

// serveChanges is a stream of server-sent events: "change" whenever the job has changed.
func (s *Server) serveChanges(w http.ResponseWriter, r *http.Request) error {
	at, err := s.jobOf(r)
	if err != nil {
		return err
	}
	before := stampOf(at.path)
	if before == (stamp{}) {
		return errNoPage
	}
	out := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) bool {
		if _, err := fmt.Fprint(w, text); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !say("retry: 2000\n\n") {
		return nil
	}
	silent := time.Duration(0)
	for waited := time.Duration(0); waited < changesLimit; waited += changePoll {
		if clock.Sleep(r.Context(), changePoll) != nil {
			return nil
		}
		silent += changePoll
		if now := stampOf(at.path); now != before {
			before, silent = now, 0
			if !say("event: change\ndata: 1\n\n") {
				return nil
			}
		} else if silent >= changeBeat {
			if silent = 0; !say(": there\n\n") {
				return nil
			}
		}
	}
	return nil
}

// stamp changes whenever something happens in a job.
type stamp struct {
	journal, result           int64
	journalWritten, resultSet time.Time
	trials                    time.Time // when one was added or taken away
}

func stampOf(dir string) stamp {
	var s stamp
	if info, err := os.Lstat(filepath.Join(dir, journal.File)); err == nil {
		s.journal, s.journalWritten = info.Size(), info.ModTime()
	}
	if info, err := os.Lstat(filepath.Join(dir, scan.ResultFile)); err == nil {
		s.result, s.resultSet = info.Size(), info.ModTime()
	}
	if info, err := os.Lstat(dir); err == nil {
		s.trials = info.ModTime()
	}
	return s
}
