package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// readJournal reads what the journal knows; damage to it is told.
func (d *resumeDir) readJournal() error {
	state, err := journal.LoadState(d.path)
	if damaged := (*journal.Error)(nil); errors.As(err, &damaged) {
		d.warnings = append(d.warnings, fmt.Sprintf("%v; the line is passed over", err))
	} else if err != nil {
		return err
	}
	d.journal, d.digests, d.last = state, state.Results(), lastConfig(state)
	return nil
}

// editedConfig says how the stored configuration differs from the one that the
// job last ran with.
func (d *resumeDir) editedConfig(stored jobdir.Config, lookup harbor.Lookup) []string {
	if d.last == nil {
		return nil
	}
	ran, _, err := jobdir.ParseConfig(d.last, jobdir.JSON, time.Time{})
	if err != nil || ran.Equal(stored, lookup) {
		return nil
	}
	var list []string
	for _, c := range ran.Changes(stored, lookup) {
		list = append(list, fmt.Sprintf("%s was changed since the job ran: %s", scan.ConfigFile, c))
	}
	return list
}

// StoredConfig reads the configuration of the job in a directory: of its
// config.json, or of its journal where that is damaged or gone.
func StoredConfig(dir string) (jobdir.Config, error) {
	cfg, _, err := storedJobConfig(dir)
	return cfg, err
}

// storedJobConfig reads a job's configuration, from the journal if the file is
// damaged or gone. A text says why then.
func storedJobConfig(dir string) (cfg jobdir.Config, why string, err error) {
	path := filepath.Join(dir, scan.ConfigFile)
	data, err := jobdir.ReadJobFile(dir, scan.ConfigFile)
	unread := err
	if err == nil {
		if cfg, _, err = jobdir.ParseConfig(data, jobdir.JSON, time.Time{}); err == nil {
			return cfg, "", nil
		}
		err = fmt.Errorf("%s: %w", path, err)
	} else {
		err = fmt.Errorf("reading the job to resume: %w", err)
	}
	state, journalErr := journal.LoadState(dir)
	if damaged := (*journal.Error)(nil); journalErr != nil && !errors.As(journalErr, &damaged) {
		return cfg, "", err
	}
	text := lastConfig(state)
	if text == nil {
		return cfg, "", err
	}
	cfg, _, journalErr = jobdir.ParseConfig(text, jobdir.JSON, time.Time{})
	if journalErr != nil {
		return cfg, "", err
	}
	return cfg, fmt.Sprintf("%s: rebuilt from the journal (%s)", path, whyUnread(data, unread)), nil
}

func lastConfig(s *journal.State) json.RawMessage {
	for _, run := range slices.Backward(s.Runs) {
		if run.Start.Config != nil {
			return run.Start.Config
		}
	}
	return nil
}

// whyUnread says what is wrong with a file that cannot be used.
func whyUnread(data []byte, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is gone"
	case err != nil:
		return exception.PlainText(err)
	case len(data) == 0:
		return "it is empty"
	case !json.Valid(data):
		return "it is torn"
	}
	return "it cannot be read"
}

// readTrialResult reads a trial's result; why says what is wrong with one that
// is not there or cannot be used.
func (d *resumeDir) readTrialResult(name string, t *trialDir) (result *jobdir.TrialResult, why string, err error) {
	path := filepath.Join(d.path, name, scan.ResultFile)
	data, err := jobdir.ReadTrialFile(d.path, filepath.Join(name, scan.ResultFile))
	noted, ended := d.digests[name]
	switch {
	case errors.Is(err, fs.ErrNotExist) && ended:
		return nil, "its " + scan.ResultFile + " is gone, though the journal says that it ended", nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, d.journal.NeverEnded(name), nil
	case bounded.Planted(err):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	r, err := jobdir.ParseTrialResult(data)
	same := ended && jobdir.DigestOf(data) == noted
	switch {
	case err != nil && ended && int64(len(data)) < noted.Size:
		return nil, fmt.Sprintf("its %s cannot be read: %d of %d bytes are there", scan.ResultFile, len(data), noted.Size), nil
	case err != nil:
		return nil, "its " + scan.ResultFile + " cannot be read", nil
	case ended && !same:
		t.warning = fmt.Sprintf("%s is not what the trial wrote when it ended: it was changed since, and is kept as it is", path)
	}
	return &r, "", nil
}

// checkTrialConfig has the configuration of a kept trial written again when it
// is damaged: its result holds it too, and Harbor does not go on without it.
func (d *resumeDir) checkTrialConfig(name string, result *jobdir.TrialResult, lookup harbor.Lookup, t *trialDir) {
	path := filepath.Join(d.path, name, scan.ConfigFile)
	data, err := jobdir.ReadTrialFile(d.path, filepath.Join(name, scan.ConfigFile))
	unread := err
	text := result.Config.AppendJSON(make([]byte, 0, len(data)+1), lookup)
	if err == nil && !bytes.Equal(data, text) { // another writer's, or damaged
		_, _, err = jobdir.ParseTrialConfig(data)
	}
	if err == nil {
		return
	}
	t.repair = &Repair{path, text}
	t.repaired = fmt.Sprintf("%s: rebuilt from the trial's result (%s)", path, whyUnread(data, unread))
}

// readJobResult takes identity, start and retries from the job's result. When
// it is damaged, the journal has them, or about.
func (d *resumeDir) readJobResult(o ResumeOptions) error {
	path := filepath.Join(d.path, scan.ResultFile)
	data, err := jobdir.ReadJobFile(d.path, scan.ResultFile)
	switch {
	case err == nil || bounded.Planted(err):
	case errors.Is(err, fs.ErrNotExist):
		if len(d.records) == 0 && len(d.loose) == 0 {
			return nil
		}
	default:
		return fmt.Errorf("reading the job to resume: %w", err)
	}
	if result, parseErr := jobdir.ParseResult(data); err == nil && parseErr == nil {
		d.result = &result
		return nil
	}
	result := jobdir.Result{ID: uuid.New(), StartedAt: jobdir.Local(o.Now)}
	if !d.earliest.IsZero() {
		result.StartedAt = jobdir.Local(d.earliest.In(o.Now.Location()))
	}
	lost := "; how often trials were retried is not known any more"
	if runs := d.journal.Runs; len(runs) > 0 {
		lost = ""
		result.StartedAt, result.Stats.NRetries = jobdir.Local(runs[0].Start.Time.In(o.Now.Location())), d.journal.Retries
		if noted, err := uuid.Parse(runs[0].Start.Job); err == nil {
			result.ID = noted
		}
	}
	if d.id != nil {
		result.ID = *d.id
	}
	d.repaired = append(d.repaired, fmt.Sprintf("%s: rebuilt from the trials (%s)%s", path, whyUnread(data, err), lost))
	d.result = &result
	return nil
}

// repairAll writes damaged files again.
func (p *Prepared) repairAll() error {
	for _, r := range p.Repairs {
		if err := atomicfile.Write(r.Path, r.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
