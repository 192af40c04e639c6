package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
)

// PrepareOptions are what Prepare takes from the outside world. Nothing of it is
// needed.
type PrepareOptions struct {
	Now    time.Time     // local; zero means that of the system
	Lookup harbor.Lookup // nil means an empty environment
	// Home is the home directory, for "~"; empty for none.
	Home string
	// Random returns a number in [0, n), for trial names; nil means rand.IntN.
	Random func(n int) int
	// Invocation is the command line that lock.json records.
	Invocation []string
	// Environ is this machine's environment, KEY=VALUE, and SecretNames are variables and
	// settings that are secret whatever they look like: what is redacted in the
	// configuration and in Invocation, see trial.Runner.
	Environ     []string
	SecretNames []string
	// AcceptHarmless goes on in a directory that was made with settings that
	// differ only in what does not change results; see
	// [jobdir.ChangedError].
	AcceptHarmless bool
	// Fetch brings here what lies elsewhere than in local directories, see
	// [dataset.Fetch]; nil means that such tasks cannot be run.
	Fetch func(jobdir.Config) (*dataset.Fetched, error)
	// Policy is the scoring policy that is fixed before the job runs (outcome mapping,
	// section 10.1); nil for none, and for that of a job which was begun.
	Policy *outcome.Policy
	// Cubes are the benchmarks whose tasks the configuration may name; nil for
	// none.
	Cubes *Cubes
}

// Prepare resolves a configuration into a job that can be run: it finds the
// tasks, loads each of them once, expands the plan and pins it in a lock. When
// the job's directory exists already, finished trials of the same
// configuration are kept, and only the others remain (Harbor job format,
// sections 2.1 and 6.1).
//
// Nothing is written, and nothing is run.
func Prepare(cfg jobdir.Config, o PrepareOptions) (*Prepared, error) {
	o = o.withDefaults()
	cfg, literals := hide(cfg, &o)
	p, err := prepare(cfg, o, func() (*jobDir, error) { return openJobDir(cfg, o) })
	if err == nil {
		p.literals = literals
	}
	return p, err
}

// prepare is Prepare with the directory that open reads.
func prepare(cfg jobdir.Config, o PrepareOptions, open func() (*jobDir, error)) (*Prepared, error) {
	p := &Prepared{Config: cfg, ID: uuid.New(), StartedAt: jobdir.Local(o.Now)}
	found, err := resolveTasks(cfg, o)
	if err != nil {
		return nil, err
	}
	p.Warnings, p.configs = found.warnings, found.configs
	own, err := score.ConfiguredMetrics(cfg.Metrics)
	if err != nil {
		return nil, err
	}
	p.Metrics = score.NewMetrics(own, found.datasets)
	_, statErr := os.Lstat(filepath.Join(cfg.Dir(), scan.ResultFile))
	p.Begun = statErr == nil
	dir, err := open()
	if err != nil {
		return nil, err
	}
	if err := p.refuseUnmatched(found.unmatched, dir.begun); err != nil {
		return nil, err
	}
	if dir.result != nil {
		p.ID, p.StartedAt, p.Retries = dir.result.ID, dir.result.StartedAt, dir.result.Stats.NRetries
	}
	planned, err := Plan(cfg, p.ID, found.plain(), o.Random)
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, found.whyNone())
	}
	match, err := matchExisting(planned, dir.configs, o.Lookup)
	if err != nil {
		return nil, foreign(match, planned, dir.configs, o.Lookup)
	}
	p.Trials, p.Remaining, p.Existing = match.Trials, match.Remaining, dir.records
	dir.configs = nil // those that count are in the plan
	p.Variables, p.Dirs = found.variables, found.dirs()
	if p.Policy, err = dir.adoptPolicy(o.Policy, p.Begun); err != nil {
		return nil, err
	}
	p.Lock, err = newLock(p, found, o)
	if err != nil {
		return nil, err
	}
	return p, dir.adoptLock(p.Lock, o)
}

func (f *foundTasks) addDataset(d jobdir.DatasetConfig, unverified bool) error {
	found, err := harbor.Discover(*d.Path, unverified)
	if err != nil {
		return err
	}
	f.datasets = append(f.datasets, score.DatasetMetrics{Name: found.Source})
	if len(found.Dirs) == 0 {
		f.warnings = append(f.warnings, whyEmpty(*d.Path, found.Skipped)...)
		return nil // told by the plan, with the warnings
	}
	for _, name := range found.Skipped {
		f.warnings = append(f.warnings, whySkipped(filepath.Join(*d.Path, name)))
	}
	names := make([]string, len(found.Dirs))
	for i, dir := range found.Dirs {
		names[i] = harbor.LocalName(dir)
	}
	filter := harbor.Filter{Include: d.TaskNames, Exclude: d.ExcludeTaskNames, Limit: d.NTasks}
	kept, unmatched, err := dataset.Choose(*d.Path, filter, names)
	if err != nil {
		return err
	}
	f.noteUnmatched(unmatched)
	for _, i := range kept {
		config := jobdir.TaskConfig{Path: &found.Dirs[i], Source: &found.Source, Overwrite: d.Overwrite, DownloadDir: d.DownloadDir}
		f.addLocal(config, names[i])
	}
	return nil
}

// whySkipped says what is wrong with a directory of a dataset that is no task.
func whySkipped(dir string) string {
	return fmt.Sprintf("skipping %q: %s", dir, whyNoTask(dir))
}

// whyEmpty says why there is no task at a path: it is meant to be one itself
// and is broken, or it is a dataset without any.
func whyEmpty(path string, skipped []string) []string {
	if hasTaskFile(path) {
		return []string{fmt.Sprintf("%q is not a task: %s", path, whyNoTask(path))}
	}
	lines := []string{fmt.Sprintf("%q holds no task", path)}
	for _, name := range skipped {
		lines = append(lines, whySkipped(filepath.Join(path, name)))
	}
	return lines
}

func hasTaskFile(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "task.toml"))
	return !errors.Is(err, fs.ErrNotExist)
}

func whyNoTask(dir string) string {
	if !hasTaskFile(dir) {
		return harbor.WhyNoTaskFile(dir, "-p")
	}
	if _, err := harbor.Load(dir, harbor.LoadOptions{}); err != nil {
		return exception.PlainText(err)
	}
	return "it has no environment directory"
}

// whyNone repeats what was skipped when nothing is left.
func (f *foundTasks) whyNone() string {
	text := ""
	for _, w := range f.warnings {
		text += "\n  " + w
	}
	return text
}

// look loads a task for its name, its digest, its variables and its warnings.
// One that cannot be loaded fails as a trial, and does not stop the others.
func (f *foundTasks) look(t dataset.FetchedTask, cfg jobdir.Config, o PrepareOptions) {
	key := TaskKey(t.Config)
	if _, seen := f.homes[key]; seen {
		return
	}
	if task := o.Cubes.Task(t.Config); task != nil {
		f.homes[key] = taskHome{name: task.Name, digest: "sha256:" + task.Checksum}
		return
	}
	home := taskHome{dir: t.Dir, digest: t.Digest, name: dataset.TaskName(t.Task)}
	if t.Commit != "" {
		home.commit = &t.Commit
	}
	if home.digest == "" { // that of a package has been checked
		if sum, _, err := harbor.PackageHash(t.Dir); err == nil {
			home.digest = sum
		}
	}
	defer func() { f.homes[key] = home }()
	task, err := harbor.Load(t.Dir, harbor.LoadOptions{ExtraInstructions: cfg.ExtraInstructionPaths, Home: o.Home})
	if err != nil {
		f.warnings = append(f.warnings, fmt.Sprintf("task %q: %s", t.Dir, exception.PlainText(err)))
		return
	}
	f.configs[key] = &task.Config
	for _, loc := range task.Report.Unknown {
		f.warnings = append(f.warnings, fmt.Sprintf("%s: unknown key %s is ignored", filepath.Join(t.Dir, "task.toml"), loc))
	}
	for _, w := range task.Report.Warnings {
		f.warnings = append(f.warnings, fmt.Sprintf("%s: %s", filepath.Join(t.Dir, "task.toml"), w.Text))
	}
	f.variables = append(f.variables, variablesOf(task, cfg)...)
}

// jobDir is what stands already where a job is to be run.
type jobDir struct {
	path    string
	begun   bool // it has a configuration
	result  *jobdir.Result
	configs []jobdir.TrialConfig
	records []jobdir.Record
	lock    *jobdir.Lock
}

// openJobDir reads a job directory that may be there (section 6.1, steps 1 to
// 3). A configuration that differs is refused; directories of trials without a
// result stay, their trials run again under new names.
func openJobDir(cfg jobdir.Config, o PrepareOptions) (*jobDir, error) {
	d := &jobDir{path: cfg.Dir()}
	data, err := jobdir.ReadJobFile(d.path, scan.ConfigFile)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the existing job: %w", err)
	}
	d.begun = true
	stored, _, err := jobdir.ParseConfig(data, jobdir.JSON, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(d.path, "config.json"), err)
	}
	if err := checkSame(d.path, stored, cfg, o); err != nil {
		return nil, err
	}
	return d, d.read()
}

// checkSame refuses another configuration than the one that a directory was made with.
func checkSame(dir string, stored, cfg jobdir.Config, o PrepareOptions) error {
	if stored.Equal(cfg, o.Lookup) {
		return nil
	}
	changes := stored.Changes(cfg, o.Lookup)
	if o.AcceptHarmless && jobdir.Harmless(changes) {
		return nil
	}
	text := fmt.Sprintf("Job directory %s already exists and cannot be resumed with a different config.", dir)
	return &jobdir.ChangedError{Err: jobdir.RuleError(text), Changes: changes}
}

func (d *jobDir) read() error {
	data, err := jobdir.ReadJobFile(d.path, scan.ResultFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the existing job: %w", err)
	}
	if err == nil {
		result, err := jobdir.ParseResult(data)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(d.path, scan.ResultFile), err)
		}
		d.result = &result
	}
	if err := d.readLock(); err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("reading the existing job: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(d.path, e.Name(), scan.ResultFile)
		data, err := jobdir.ReadTrialFile(d.path, filepath.Join(e.Name(), scan.ResultFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the existing job: %w", err)
		}
		result, err := jobdir.ParseTrialResult(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		d.configs = append(d.configs, result.Config)
		d.records = append(d.records, jobdir.RecordOf(&result))
	}
	return nil
}

func (d *jobDir) readLock() error {
	path := filepath.Join(d.path, scan.LockFile)
	data, err := jobdir.ReadJobFile(d.path, scan.LockFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a job without a lock is not held to one
	}
	if err != nil {
		return fmt.Errorf("reading the lock of the existing job: %w", err)
	}
	lock, err := jobdir.ParseLock(data)
	if err != nil {
		return fmt.Errorf("%w\n%w", jobdir.RuleError(fmt.Sprintf("Existing lock file at %s could not be parsed; refusing to overwrite it.", path)), err)
	}
	d.lock = &lock
	return nil
}

// adoptLock refuses to go on with other contents (section 6.1, step 6). The
// lock keeps when and by what the job was begun.
func (d *jobDir) adoptLock(lock *jobdir.Lock, o PrepareOptions) error {
	if d.lock == nil {
		return nil
	}
	if !d.lock.Equal(*lock, o.Lookup) {
		changes := d.lock.Changes(*lock, o.Lookup)
		if !o.AcceptHarmless || !jobdir.Harmless(changes) {
			text := fmt.Sprintf("Job directory %s already has a lock.json that does not match the resolved job lock.", d.path)
			return &jobdir.ChangedError{Err: jobdir.RuleError(text), Changes: changes}
		}
	}
	lock.CreatedAt, lock.Harbor, lock.Invocation = d.lock.CreatedAt, d.lock.Harbor, d.lock.Invocation
	return nil
}
