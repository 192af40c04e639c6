package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// Session is the one way in which programs run jobs: it claims a directory, sets
// up cubes, opens the backend once somebody needs it, prepares, runs until it is
// done or interrupted, and closes what it opened. Between the steps a program asks
// and prints what it likes:
//
//	s := &job.Session{Runner: runner, Options: options, Backend: open}
//	defer s.Close(ctx)
//	err := s.Claim(&cfg, named)
//	p, err := s.Prepare(cfg)
//	out, err := s.Run(ctx, p)
//
// A session is for one job, and for one goroutine. The zero value of every field
// but Backend and Runner.Trials.Agents may be left.
type Session struct {
	// Runner runs the job. Backend and Cube of its Trials, its Guard and its Kill
	// are the session's.
	Runner Runner
	// Options prepare it. Cubes are the session's.
	Options PrepareOptions
	// Backend opens what trials run in. A backend that shows this machine's own
	// files must not show what is hidden, a list of absolute paths: results, tasks
	// and their solutions. release frees what it holds open.
	Backend func(ctx context.Context, hidden []string) (b sandbox.Backend, release func() error, err error)
	// Signals end what runs: the first cancels what cubes set up, and the trials,
	// which are recorded; the second destroys their sandboxes at once and waits for
	// nobody.
	Signals <-chan os.Signal
	// Draining is called at the first signal while trials run; it may be nil.
	Draining func()

	cubes    *Cubes
	backend  sandbox.Backend // nil until it is opened
	guard    *jobdir.Guard
	signals  *interrupts // nil until somebody listens
	closings []func(context.Context) error
}

// CubeOpener sets up a cube whose tasks a job has.
type CubeOpener struct {
	// Containers says that its tasks run in containers. Without any such cube a
	// session opens no backend.
	Containers bool
	// Hidden are absolute paths that containers must not show.
	Hidden []string
	// Open selects the tasks, for sandboxes of a backend: those that it makes for a
	// trial are the trial's.
	Open func(sandbox.Backend) (CubeSource, error)
}

// Close closes what the session opened, the last first. It works also when ctx has
// ended.
func (s *Session) Close(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(s.closings) {
		errs = append(errs, f(context.WithoutCancel(ctx)))
	}
	s.closings = nil
	return errors.Join(errs...)
}

func (s *Session) onClose(f func(context.Context) error) { s.closings = append(s.closings, f) }

// Claim keeps others from writing to the job's directory until Close. A job that
// is not named gets a directory of its own first: where the name that its
// configuration has is taken, "-2", "-3", … stand behind it. Directories that
// nothing was written to are removed by Close.
//
// While another process writes there, the error is a [*jobdir.InUseError].
func (s *Session) Claim(cfg *jobdir.Config, named bool) error {
	if !named {
		if err := s.makeDir(cfg); err != nil {
			return err
		}
	}
	return s.Hold(cfg.Dir())
}

// makeDir makes a directory that no other job has.
func (s *Session) makeDir(cfg *jobdir.Config) error {
	_, statErr := os.Stat(cfg.JobsDir)
	if err := os.MkdirAll(cfg.JobsDir, 0o755); err != nil {
		return fmt.Errorf("making the jobs directory: %w", err)
	}
	first := cfg.JobName
	for n := 2; ; n++ {
		err := os.Mkdir(cfg.Dir(), 0o755)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making the job directory: %w", err)
		}
		cfg.JobName = fmt.Sprintf("%s-%d", first, n)
	}
	jobsDir, dir := cfg.JobsDir, cfg.Dir()
	s.onClose(func(context.Context) error {
		// Remove leaves alone what is not empty.
		_ = os.Remove(dir)
		if errors.Is(statErr, fs.ErrNotExist) {
			_ = os.Remove(jobsDir)
		}
		return nil
	})
	return nil
}

// Hold is the part of Claim for a directory that is there. One that is not there
// yet is guarded when it is made.
func (s *Session) Hold(dir string) (err error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // there is nothing that another could write to
	}
	r, err := s.Runner.withDefaults()
	if err != nil {
		return err
	}
	if s.guard, err = jobdir.Acquire(dir, r.holder()); err != nil {
		return err
	}
	s.onClose(func(context.Context) error { return s.guard.Release() })
	return nil
}

// OpenCubes sets cubes up, for the job of a configuration, and returns their tasks.
// The backend is opened when one of them, or one of the configuration's agents, needs it, and
// its name recorded in the configuration. Without a cube it does nothing.
func (s *Session) OpenCubes(ctx context.Context, cfg *jobdir.Config, cubes ...CubeOpener) ([]jobdir.TaskConfig, error) {
	if len(cubes) == 0 {
		return nil, nil
	}
	s.backend = NoSandboxes{}
	contained := slices.ContainsFunc(cubes, func(c CubeOpener) bool { return c.Containers })
	if contained || WorkApart(cfg.Agents, s.Runner.Trials.Agents) {
		hidden := Hidden(*cfg, s.Options.Home)
		for _, c := range cubes {
			hidden = append(hidden, c.Hidden...)
		}
		if err := s.open(ctx, hidden); err != nil {
			return nil, err
		}
		cfg.Environment.SetBackend(s.backend.Name())
	}
	s.cubes = &Cubes{}
	ctx, stop := s.interrupts().context(ctx, func() {})
	defer stop()
	s.onClose(s.closeCubes) // while signals are still heard
	var tasks []jobdir.TaskConfig
	for _, c := range cubes {
		added, err := s.openCube(ctx, c)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, added...)
	}
	return tasks, nil
}

// openCube sets a cube up and adds its tasks to those of the session.
func (s *Session) openCube(ctx context.Context, c CubeOpener) ([]jobdir.TaskConfig, error) {
	var tasks []jobdir.TaskConfig
	backend, own := cubeBackend{s.backend}, &Cubes{}
	discard := func() { _ = own.Close(context.WithoutCancel(ctx)) }
	err := s.apart(ctx, "setting the cube up", func(ctx context.Context) error {
		source, err := c.Open(backend)
		if err == nil {
			tasks, err = own.Add(ctx, source)
		}
		if err != nil {
			discard()
		}
		return err
	}, discard)
	if err != nil {
		return nil, err
	}
	return tasks, s.cubes.take(own)
}

// closeCubes closes what OpenCubes set up.
func (s *Session) closeCubes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeCubesLimit)
	defer cancel()
	return s.apart(ctx, "closing the cubes", s.cubes.Close, func() {})
}

func (s *Session) open(ctx context.Context, hidden []string) error {
	b, release, err := s.Backend(ctx, hidden)
	if err != nil {
		return err
	}
	s.backend = b
	s.onClose(func(context.Context) error { return release() })
	return nil
}

// Prepare is [Prepare] with the session's options and cubes.
func (s *Session) Prepare(cfg jobdir.Config) (*Prepared, error) { return Prepare(cfg, s.options()) }

// PrepareResume is [PrepareResume] with the session's options and cubes.
func (s *Session) PrepareResume(dir string, o ResumeOptions) (*Resumed, error) {
	o.PrepareOptions = s.options()
	return PrepareResume(dir, o)
}

func (s *Session) options() PrepareOptions {
	o := s.Options
	o.Cubes = s.cubes
	return o
}

// Open opens the backend for a prepared job, unless that has been done.
func (s *Session) Open(ctx context.Context, p *Prepared) error {
	if s.backend != nil {
		return nil
	}
	return s.open(ctx, append(Hidden(p.Config, s.Options.Home), p.TaskDirs()...))
}

// CheckTasks refuses trials that are still to be run and whose environment can
// never start in the backend, which is open: compose projects where it runs none.
func (s *Session) CheckTasks(p *Prepared) error {
	if s.backend == nil || s.backend.Capabilities().Compose {
		return nil
	}
	for _, i := range p.Remaining {
		t := &p.Trials[i]
		if len(t.Environment.ExtraDockerCompose) > 0 {
			return fmt.Errorf("environment %s runs no compose projects, and --extra-docker-compose makes one of every task", s.backend.Name())
		}
		dir, err := p.TaskDir(t.Task)
		if err != nil {
			continue // a cube's task, or one that its trial tells of
		}
		if task := (harbor.Task{Dir: dir}); task.HasCompose() {
			return fmt.Errorf("task %q is a compose project (environment/%s), which environment %s cannot run", t.Task.BaseName(), harbor.ComposeFile, s.backend.Name())
		}
	}
	return nil
}

// Run runs a prepared job, see [Runner.Run], in a backend that [Session.Open] opens.
func (s *Session) Run(ctx context.Context, p *Prepared) (*Summary, error) {
	if err := s.Open(ctx, p); err != nil {
		return nil, err
	}
	signals := s.interrupts()
	ctx, stop := signals.context(ctx, func() {
		if s.Draining != nil {
			s.Draining()
		}
	})
	defer stop()
	r := s.Runner
	r.Trials.Backend, r.Kill, r.Guard = s.backend, signals.second, s.guard
	if s.cubes != nil {
		r.Trials.Cube = s.cubes.Find
	}
	return r.Run(ctx, p)
}

// Hidden lists what a sandbox that shows this machine's own files must not show of a
// job: its and other jobs' results, the tasks that its configuration names and those
// that were fetched, with their solutions. home is the home directory; the paths are
// absolute.
func Hidden(cfg jobdir.Config, home string) []string {
	paths := []string{cfg.JobsDir}
	for _, t := range cfg.Tasks {
		paths = append(paths, present(t.Path, t.DownloadDir)...)
	}
	for _, d := range cfg.Datasets {
		paths = append(paths, present(d.Path, d.DownloadDir)...)
	}
	if cache, err := dataset.CacheDir(home); err == nil {
		paths = append(paths, cache)
	}
	return absolute(paths)
}

func present(paths ...*string) []string {
	var list []string
	for _, p := range paths {
		if p != nil {
			list = append(list, *p)
		}
	}
	return list
}

func absolute(paths []string) []string {
	var list []string
	for _, p := range paths {
		if abs, err := filepath.Abs(p); err == nil {
			list = append(list, abs)
		}
	}
	return list
}
