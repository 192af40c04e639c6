package job

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
)

// ResumeOptions say which trials of a job directory run again, besides those
// that never ended.
type ResumeOptions struct {
	PrepareOptions
	// Config, when set, is what the job is to be resumed with. The directory must have
	// been made with the same, see AcceptHarmless.
	Config *jobdir.Config
	// Types are the exception types after which a trial runs again; nil is
	// [exception.CancelledError] alone.
	Types []string
	// Errored runs every trial with an exception, also of a step, again, Unscored every trial
	// without rewards.
	Errored, Unscored bool
}

// again tells why a finished trial is to run again; "" keeps it.
func (o ResumeOptions) again(r jobdir.Record) string {
	types := o.Types
	if types == nil {
		types = []string{exception.CancelledError}
	}
	switch {
	case r.ExceptionType != "" && slices.Contains(types, r.ExceptionType):
		return r.ExceptionType
	case o.Errored && r.Exception() != "":
		return r.Exception()
	case o.Unscored && r.Rewards == nil:
		return "no reward"
	}
	return ""
}

// Resumed is a job prepared to go on where its directory stands.
type Resumed struct {
	*Prepared
	// ConfiguredDir is the directory that the stored configuration names. It
	// differs from that of Config when the job has been moved, or named from
	// another working directory.
	ConfiguredDir string
	// Reruns are the trials of the directory that run again, under their names.
	Reruns []Rerun
	// Repaired says which damaged files are made again when the job runs, of
	// what, and why.
	Repaired []string
}

// Rerun is a trial that runs again.
type Rerun struct {
	TrialName string
	// Reason is the type of its exception, or what else is wrong with it.
	Reason string
}

// Moved reports whether the job goes on in another directory than its
// configuration names.
func (r *Resumed) Moved() bool { return r.ConfiguredDir != r.Config.Dir() }

// PrepareResume prepares the job in a directory to go on there (Harbor job
// format, section 6.2). Finished trials are kept, unless the options want them
// again; the others run under the names that they have. What such a trial left
// is not deleted: when it runs, its directory's content moves to attempts/<n>
// first, where no reader of results looks.
//
// A result that cannot be read counts as none. Nothing is written, and nothing
// is run. The errors are those of [Prepare], and that of a directory without a
// configuration.
func PrepareResume(dir string, o ResumeOptions) (*Resumed, error) {
	o.PrepareOptions = o.withDefaults()
	cfg, why, err := storedJobConfig(dir)
	if err != nil {
		return nil, err
	}
	r := &Resumed{ConfiguredDir: cfg.Dir()}
	stored := cfg
	var literals map[string]string
	if o.Config != nil {
		var wanted jobdir.Config
		wanted, literals = hide(*o.Config, &o.PrepareOptions)
		if err := checkSame(dir, stored, wanted, o.PrepareOptions); err != nil {
			return nil, err
		}
		cfg = wanted
	}
	if !sameDir(dir, cfg.Dir()) {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("finding the job directory: %w", err)
		}
		cfg.JobsDir, cfg.JobName = filepath.Dir(dir), filepath.Base(dir)
	}
	if err := checkPlaces(cfg, o.Cubes); err != nil {
		return nil, err
	}
	var found *resumeDir
	r.Prepared, err = prepare(cfg, o.PrepareOptions, func() (*jobDir, error) {
		found, err = readResumeDir(cfg, o)
		if err != nil {
			return nil, err
		}
		return &found.jobDir, nil
	})
	if err != nil {
		return nil, err
	}
	r.Redacted, r.literals = true, literals
	r.Warnings = slices.Concat(r.Warnings, found.warnings, found.editedConfig(stored, o.Lookup))
	if o.Config == nil { // else nothing is taken from the directory
		r.Warnings = append(r.Warnings, findSecrets(cfg, o.Lookup).warnings()...)
	}
	r.takeOver(found.loose, o.Lookup)
	r.Repairs, r.Repaired = found.repairs, found.repaired
	if why != "" {
		r.Repaired = append([]string{why}, r.Repaired...)
	}
	return r, nil
}

// ErrTasksElsewhere is the error of a job whose tasks are not where its configuration
// has them, seen from the working directory.
var ErrTasksElsewhere = errors.New("the tasks of the job are not here")

// checkPlaces reports the first local task or dataset that is not there.
func checkPlaces(cfg jobdir.Config, cubes *Cubes) error {
	var paths []*string
	for _, t := range cfg.Tasks {
		if t.Kind() == jobdir.LocalTask && !cubes.has(t) {
			paths = append(paths, t.Path)
		}
	}
	for _, d := range cfg.Datasets {
		if d.Kind() == jobdir.LocalDataset {
			paths = append(paths, d.Path)
		}
	}
	for _, path := range paths {
		if _, err := os.Stat(*path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: there is no %q", ErrTasksElsewhere, *path)
		}
	}
	return nil
}

func sameDir(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// takeOver gives each trial that is still to run the name of the first loose
// directory that asked for the same, so that it runs again there.
func (r *Resumed) takeOver(loose []looseDir, lookup harbor.Lookup) {
	free := map[string][]int{}
	for _, i := range r.Remaining {
		key := planDigest(r.Trials[i], lookup)
		free[key] = append(free[key], i)
	}
	r.OrphansDir = filepath.Join(filepath.Dir(r.Config.Dir()), orphansDir, filepath.Base(r.Config.Dir()))
	r.Earlier = map[int]string{}
	for _, d := range loose {
		fits := free[d.plan]
		if len(fits) == 0 {
			r.Orphans = append(r.Orphans, d.name)
			continue
		}
		i := fits[0]
		free[d.plan] = fits[1:]
		r.Trials[i].TrialName = d.name
		r.Earlier[i] = d.reason
		r.Reruns = append(r.Reruns, Rerun{TrialName: d.name, Reason: d.reason})
	}
}

// resumeDir is a job directory with the trials that do not stay as they are.
type resumeDir struct {
	jobDir
	loose    []looseDir
	warnings []string

	repairs  []Repair
	repaired []string

	// Of the trials: when the first of them began, and which job they say is theirs.
	earliest time.Time
	id       *uuid.UUID

	// Of the journal.
	journal *journal.State
	digests map[string]jobdir.FileDigest // of results, by trial
	last    json.RawMessage              // configuration
}

// looseDir is the directory of a trial that never ended or is to run again.
type looseDir struct {
	name, reason string
	plan         string // digest of what it asks for; "" if it is not known
}

func readResumeDir(cfg jobdir.Config, o ResumeOptions) (*resumeDir, error) {
	d := &resumeDir{jobDir: jobDir{path: cfg.Dir(), begun: true}}
	if err := errors.Join(d.readLock(), d.readJournal()); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, fmt.Errorf("reading the job to resume: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
	d.configs, d.records = make([]jobdir.TrialConfig, 0, len(entries)), make([]jobdir.Record, 0, len(entries))
	found := make([]trialDir, min(len(entries), readAhead))
	for part := range slices.Chunk(entries, readAhead) {
		d.readTrials(found, part, o)
		for i := range part {
			if err := d.add(&found[i]); err != nil {
				return nil, fmt.Errorf("reading the job to resume: %w", err)
			}
		}
	}
	err = d.readJobResult(o)
	d.journal, d.digests = nil, nil // as large as all that is kept of the trials
	return d, err
}

// Trials are read by so many at a time, and so many ahead of those that were taken
// over: the others' results are not kept.
const (
	readers   = 4
	readAhead = 64 * readers
)

// trialDir is what was read of a trial's directory.
type trialDir struct {
	err error
	// started is zero and jobID nil where there is no result.
	started time.Time
	jobID   *uuid.UUID
	warning string

	loose *looseDir // nil for a trial that is kept, which has
	// config and record, and may have
	config jobdir.TrialConfig
	record jobdir.Record
	// a configuration to be made again, and why.
	repair   *Repair
	repaired string
}

// readTrials reads the directories of trials, each into its place.
func (d *resumeDir) readTrials(to []trialDir, entries []os.DirEntry, o ResumeOptions) {
	var all sync.WaitGroup
	for first := range min(readers, len(entries)) {
		all.Go(func() {
			for i := first; i < len(entries); i += readers {
				to[i] = d.readTrial(entries[i].Name(), o)
			}
		})
	}
	all.Wait()
}

// readTrial reads the directory of a trial, to be kept or run again. Wherever the
// job was when the trial ran, it is here now. Several may be read at a time.
func (d *resumeDir) readTrial(name string, o ResumeOptions) (t trialDir) {
	result, why, err := d.readTrialResult(name, &t)
	if err != nil {
		t.err = err
		return t
	}
	if result == nil {
		t.loose = &looseDir{name: name, reason: why, plan: d.storedPlan(name, o.Lookup)}
		return t
	}
	if at := result.StartedAt; at != nil {
		t.started = at.In(time.UTC)
	}
	t.jobID = result.Config.JobID
	t.config, t.record = result.Config, jobdir.RecordOf(result)
	t.config.TrialsDir = d.path
	if why := o.again(t.record); why != "" {
		t.loose = &looseDir{name: name, reason: why, plan: planDigest(t.config, o.Lookup)}
		return t
	}
	d.checkTrialConfig(name, result, o.Lookup, &t)
	return t
}

// add takes over what was read of a trial, in order of the directory.
func (d *resumeDir) add(t *trialDir) error {
	if t.err != nil {
		return t.err
	}
	if t.warning != "" {
		d.warnings = append(d.warnings, t.warning)
	}
	if !t.started.IsZero() && (d.earliest.IsZero() || t.started.Before(d.earliest)) {
		d.earliest = t.started
	}
	if t.jobID != nil {
		d.id = t.jobID
	}
	if t.loose != nil {
		d.loose = append(d.loose, *t.loose)
		return nil
	}
	if t.repair != nil {
		d.repairs, d.repaired = append(d.repairs, *t.repair), append(d.repaired, t.repaired)
	}
	d.configs, d.records = append(d.configs, t.config), append(d.records, t.record)
	return nil
}

// storedPlan is the digest of what a trial asks for: of the configuration that
// it wrote when it started, or that an earlier attempt wrote where the next one
// had not begun, else as the journal has it; "" if it is not known.
func (d *resumeDir) storedPlan(name string, lookup harbor.Lookup) string {
	dir := filepath.Join(d.path, name)
	data, err := jobdir.ReadTrialFile(dir, scan.ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		var n int
		if n, err = nextAttempt(dir); err == nil {
			data, err = jobdir.ReadTrialFile(dir, filepath.Join(attemptsDir, strconv.Itoa(n-1), scan.ConfigFile))
		}
	}
	if err == nil {
		var config jobdir.TrialConfig
		if config, _, err = jobdir.ParseTrialConfig(data); err == nil {
			return planDigest(config, lookup)
		}
	}
	if t, ok := d.journal.ByName[name]; ok {
		return t.Plan
	}
	return ""
}
