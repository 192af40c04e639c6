package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/version"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
)

// startEntry begins a run in the journal.
func (r *Runner) startEntry(s *started, resumed bool) journal.Entry {
	p := s.p
	text := s.secrets.Bytes(p.Config.AppendJSON(nil, r.Trials.Lookup))
	e := journal.Entry{
		Kind: journal.JobStarted, Schema: journal.Schema, Job: p.ID.String(), Owner: &r.Trials.Owner, Host: r.Host,
		Version: version.Current().ID(), ConfigDigest: new(jobdir.DigestOf(text)),
		Planned: len(p.Trials), Remaining: len(p.Remaining), Backend: r.Trials.Backend.Name(),
		Runtime:        sandbox.RuntimeOf(r.Trials.Backend),
		SealedVerifier: r.Trials.SealedVerifier, Hardened: r.Trials.Hardened, SecretNames: r.Trials.SecretNames,
	}
	e.Shared, e.Builds, e.Verifiers = r.Room != nil, r.Builds, r.Verifiers
	if r.Recordings != nil {
		dir, err := filepath.Abs(r.Recordings.Dir)
		if err != nil {
			dir = r.Recordings.Dir
		}
		e.ReplayModels, e.ReplayStrict = s.secrets.String(dir), r.Recordings.Strict
	}
	if resumed {
		e.Kind = journal.JobResumed
	}
	if json.Valid(text) { // nan and the infinities are not
		e.Config = text
	}
	return e
}

// holder says who runs.
func (r *Runner) holder() jobdir.Holder {
	return jobdir.Holder{Owner: r.Trials.Owner, Host: r.Host, Since: r.Trials.Now().UTC()}
}

// planDigest is the same for configurations that ask for the same trial,
// wherever the job's directory is.
func planDigest(c jobdir.TrialConfig, lookup harbor.Lookup) string {
	c.TrialsDir = ""
	return jobdir.DigestOf([]byte(c.Identity(lookup))).SHA256
}

// beginTrial notes the intent to run a trial.
func (m *monitor) beginTrial(c jobdir.TrialConfig, attempt int, lookup harbor.Lookup) error {
	return m.journal.AppendSync(journal.Entry{
		Kind: journal.TrialStarted, Trial: c.TrialName, Task: c.Task.BaseName(), Attempt: attempt, Plan: planDigest(c, lookup),
	})
}

// journalEvent notes an event of a trial; rec is its record when it ended. When
// the journal cannot be written, nothing more is begun.
func (m *monitor) journalEvent(e trial.Event, rec jobdir.Record) {
	entry := journal.Entry{Trial: e.TrialName, Task: e.TaskName, Attempt: e.Attempt}
	switch {
	case e.Kind == trial.EventAgentStart:
		entry.Kind = journal.AgentStarted
	case e.Kind == trial.EventEnd && e.ResultFile != nil:
		entry.Kind, entry.ResultDigest = journal.TrialFinished, e.ResultFile
		entry.NotesDigest, entry.Suspicions = e.NotesFile, e.Suspicions
		entry.Exception, entry.Rewarded = rec.ExceptionType, rec.Rewards != nil
		entry.Spent(rec.Usage)
	default:
		return
	}
	if err := m.journal.AppendSync(entry); err != nil {
		m.fail(err)
	}
}

// sandboxEntry notes what became of a sandbox.
func (m *monitor) sandboxEntry(kind journal.Kind, backend, id string, labels sandbox.Labels) {
	err := m.journal.Append(journal.Entry{Kind: kind, Trial: labels.Trial, Backend: backend, Sandbox: id})
	if err != nil {
		m.fail(err)
	}
}

// noteKept notes the results that the run keeps though no entry tells that they were
// written: those of a run that was killed before it could say so, or of Harbor.
func (s *started) noteKept() error {
	dir := s.p.Config.Dir()
	state, err := journal.LoadState(dir)
	if _, damaged := errors.AsType[*journal.Error](err); err != nil && !damaged {
		return err
	}
	noted := state.Results()
	for i := range s.p.Existing {
		rec := &s.p.Existing[i]
		if _, ok := noted[rec.TrialName]; ok {
			continue
		}
		e, err := keptEntry(dir, rec)
		if err == nil {
			err = s.journal.Append(e)
		}
		if err != nil {
			return fmt.Errorf("noting the trials that are kept: %w", err)
		}
	}
	return nil
}

func keptEntry(dir string, rec *jobdir.Record) (journal.Entry, error) {
	e := journal.Entry{Kind: journal.TrialKept, Trial: rec.TrialName, Task: rec.TaskName, Exception: rec.ExceptionType, Rewarded: rec.Rewards != nil}
	e.Spent(rec.Usage)
	data, err := jobdir.ReadTrialFile(dir, filepath.Join(rec.TrialName, scan.ResultFile))
	if err != nil {
		return e, err
	}
	e.ResultDigest = new(jobdir.DigestOf(data))
	data, err = jobdir.ReadTrialFile(dir, filepath.Join(rec.TrialName, jobdir.NotesFile))
	if err != nil {
		return e, nil //nolint:nilerr // Harbor writes none, and no number rests on it
	}
	e.NotesDigest = new(jobdir.DigestOf(data))
	if notes, err := jobdir.ParseNotes(data); err == nil {
		e.Attempt, e.Suspicions = notes.Attempt, len(notes.Suspicions())
	}
	return e, nil
}

// endEntry ends a run in the journal; the job's result is on the disk.
func (m *monitor) endEntry(e journal.Entry, result []byte) error {
	e.ResultDigest = new(jobdir.DigestOf(result))
	return m.journal.AppendSync(e)
}
