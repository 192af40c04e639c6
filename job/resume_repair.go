package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/trial"
)

// repair is a file of a job directory that is made again when the job goes on.
type repair struct {
	path string
	data []byte
}

// readJournal reads what the journal knows; damage to it is told.
func (d *resumeDir) readJournal() error {
	j, err := LoadJournal(d.path)
	if damaged := (*JournalError)(nil); errors.As(err, &damaged) {
		d.warnings = append(d.warnings, fmt.Sprintf("%v; the line is passed over", err))
	} else if err != nil {
		return err
	}
	d.journal = NewJournalState(j)
	d.digests, d.last = d.journal.Results(), lastConfig(j)
	return nil
}

// editedConfig says how the stored configuration differs from the one that the
// job last ran with.
func (d *resumeDir) editedConfig(stored Config, host trial.HostEnv) []string {
	if d.last == nil {
		return nil
	}
	ran, _, err := ParseConfig(d.last, JSON, time.Time{})
	if err != nil || ran.Equal(stored, host) {
		return nil
	}
	var list []string
	for _, c := range ran.Changes(stored, host) {
		list = append(list, fmt.Sprintf("%s was changed since the job ran: %s", ConfigFile, c))
	}
	return list
}

// storedJobConfig reads a job's configuration, from the journal if the file is
// damaged or gone. A text says why then.
func storedJobConfig(dir string) (cfg Config, why string, err error) {
	path := filepath.Join(dir, ConfigFile)
	data, err := os.ReadFile(path)
	if err == nil {
		if cfg, _, err = ParseConfig(data, JSON, time.Time{}); err == nil {
			return cfg, "", nil
		}
		err = fmt.Errorf("%s: %w", path, err)
	} else {
		err = fmt.Errorf("reading the job to resume: %w", err)
	}
	j, journalErr := LoadJournal(dir)
	if damaged := (*JournalError)(nil); journalErr != nil && !errors.As(journalErr, &damaged) {
		return cfg, "", err
	}
	text := lastConfig(j)
	if text == nil {
		return cfg, "", err
	}
	cfg, _, journalErr = ParseConfig(text, JSON, time.Time{})
	if journalErr != nil {
		return cfg, "", err
	}
	return cfg, fmt.Sprintf("%s: rebuilt from the journal (%s)", path, whyUnread(data)), nil
}

func lastConfig(j Journal) json.RawMessage {
	for i := len(j.Entries) - 1; i >= 0; i-- {
		if e := j.Entries[i]; e.Config != nil && (e.Kind == JournalJobStarted || e.Kind == JournalJobResumed) {
			return e.Config
		}
	}
	return nil
}

// whyUnread says what is wrong with a file that cannot be used.
func whyUnread(data []byte) string {
	switch {
	case data == nil:
		return "it is gone"
	case len(data) == 0:
		return "it is empty"
	case !json.Valid(data):
		return "it is torn"
	}
	return "it cannot be read"
}

// readTrialResult reads a trial's result; why says what is wrong with one that
// is not there or cannot be used.
func (d *resumeDir) readTrialResult(name string) (result *trial.Result, why string, err error) {
	path := filepath.Join(d.path, name, ResultFile)
	data, err := os.ReadFile(path)
	noted, ended := d.digests[name]
	switch {
	case errors.Is(err, fs.ErrNotExist) && ended:
		return nil, "its " + ResultFile + " is gone, though the journal says that it ended", nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, d.journal.neverEnded(name), nil
	case err != nil:
		return nil, "", err
	}
	r, err := trial.ParseResult(data)
	same := ended && trial.DigestOf(data) == noted
	switch {
	case err != nil && ended && int64(len(data)) < noted.Size:
		return nil, fmt.Sprintf("its %s cannot be read: %d of %d bytes are there", ResultFile, len(data), noted.Size), nil
	case err != nil:
		return nil, "its " + ResultFile + " cannot be read", nil
	case ended && !same:
		d.warnings = append(d.warnings, fmt.Sprintf("%s is not what the trial wrote when it ended: it was changed since, and is kept as it is", path))
	}
	return &r, "", nil
}

// checkTrialConfig has the configuration of a kept trial written again when it
// is damaged: its result holds it too, and Harbor does not go on without it.
func (d *resumeDir) checkTrialConfig(name string, result *trial.Result, host trial.HostEnv) {
	path := filepath.Join(d.path, name, ConfigFile)
	data, err := os.ReadFile(path)
	if err == nil {
		_, _, err = trial.ParseConfig(data)
	}
	if err == nil {
		return
	}
	d.repairs = append(d.repairs, repair{path, result.Config.AppendJSON(nil, host)})
	d.repaired = append(d.repaired, fmt.Sprintf("%s: rebuilt from the trial's result (%s)", path, whyUnread(data)))
}

// readJobResult takes identity, start and retries from the job's result. When
// it is damaged, the journal has them, or about.
func (d *resumeDir) readJobResult(o ResumeOptions, id *uuid.UUID, earliest time.Time) error {
	path := filepath.Join(d.path, ResultFile)
	data, err := os.ReadFile(path)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		if len(d.records) == 0 && len(d.loose) == 0 {
			return nil
		}
	default:
		return fmt.Errorf("reading the job to resume: %w", err)
	}
	if result, parseErr := ParseResult(data); err == nil && parseErr == nil {
		d.result = &result
		return nil
	}
	result := Result{ID: uuid.New(), StartedAt: trial.Local(o.Now)}
	if !earliest.IsZero() {
		result.StartedAt = trial.Local(earliest.In(o.Now.Location()))
	}
	lost := "; how often trials were retried is not known any more"
	if runs := d.journal.Runs; len(runs) > 0 {
		lost = ""
		result.StartedAt, result.Stats.NRetries = trial.Local(runs[0].Start.Time.In(o.Now.Location())), d.journal.Retries
		if noted, err := uuid.Parse(runs[0].Start.Job); err == nil {
			result.ID = noted
		}
	}
	if id != nil {
		result.ID = *id
	}
	d.repaired = append(d.repaired, fmt.Sprintf("%s: rebuilt from the trials (%s)%s", path, whyUnread(data), lost))
	d.result = &result
	return nil
}

// repairAll writes damaged files again.
func (p *Prepared) repairAll() error {
	for _, r := range p.resumed.repairs {
		if err := atomicfile.Write(r.path, r.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
