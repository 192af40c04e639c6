package job

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/gitfetch"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/score"
)

// foundTasks is what the configuration's tasks and datasets turned out to be.
type foundTasks struct {
	tasks     []dataset.FetchedTask
	datasets  []score.DatasetMetrics
	homes     map[string]taskHome       // by TaskKey
	configs   map[string]*harbor.Config // of those that can be loaded, by TaskKey
	variables []TaskVariable
	unmatched []*dataset.UnmatchedError
	warnings  []string
}

// taskHome is where a task lies on this machine, and what it is.
type taskHome struct {
	dir    string  // empty for a task of a cube
	commit *string // of a git task
	digest string  // content hash; empty if it could not be made
	name   string  // as filters and locks call it
}

func resolveTasks(cfg jobdir.Config, o PrepareOptions) (*foundTasks, error) {
	fetched, err := fetchRemote(cfg, o)
	if err != nil {
		return nil, err
	}
	f := &foundTasks{homes: map[string]taskHome{}, configs: map[string]*harbor.Config{}, warnings: fetched.Warnings}
	for i, t := range cfg.Tasks {
		if t.Kind() == jobdir.LocalTask {
			name, err := localName(t, o.Cubes)
			if err != nil {
				return nil, err
			}
			f.addLocal(t, name)
			continue
		}
		f.tasks = append(f.tasks, fetched.Tasks[i])
	}
	var errs []error
	for i, d := range cfg.Datasets {
		if d.Kind() == jobdir.LocalDataset {
			errs = append(errs, f.addDataset(d, cfg.Verifier.Disable))
			continue
		}
		own, err := score.ConfiguredMetrics(fetched.Datasets[i].Metrics)
		errs = append(errs, err)
		f.datasets = append(f.datasets, score.DatasetMetrics{Name: *d.Name, Metrics: own})
		f.tasks = append(f.tasks, fetched.Datasets[i].Tasks...)
		f.noteUnmatched(fetched.Datasets[i].Unmatched)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, t := range f.tasks {
		f.look(t, cfg, o)
	}
	return f, nil
}

// localName is what a task with a path is called in the names of its trials.
func localName(t jobdir.TaskConfig, cubes *Cubes) (string, error) {
	if !cubes.has(t) {
		return harbor.LocalName(*t.Path), nil
	}
	if cubes.Task(t) == nil {
		return "", fmt.Errorf("the cube has no task %q any more: the job can be shown and scored, and not be run", *t.Path)
	}
	return cubeTaskName(*t.Path), nil
}

func fetchRemote(cfg jobdir.Config, o PrepareOptions) (*dataset.Fetched, error) {
	switch {
	case !dataset.IsRemote(cfg):
		return &dataset.Fetched{}, nil
	case o.Fetch == nil:
		return nil, errors.New("the job names tasks or datasets that are not local directories, and nothing here fetches them")
	}
	return o.Fetch(cfg)
}

func (f *foundTasks) addLocal(t jobdir.TaskConfig, name string) {
	f.tasks = append(f.tasks, dataset.FetchedTask{Task: jobdir.Task{Config: t, Name: name}, Dir: *t.Path})
}

func (f *foundTasks) noteUnmatched(e *dataset.UnmatchedError) {
	if e != nil {
		f.unmatched = append(f.unmatched, e)
	}
}

// refuseUnmatched refuses to start a job with filters that match nothing. One that was
// started, by whatever runner, is resumed: its tasks are what they are.
func (p *Prepared) refuseUnmatched(unmatched []*dataset.UnmatchedError, begun bool) error {
	var errs []error
	for _, e := range unmatched {
		errs = append(errs, e)
		p.Warnings = append(p.Warnings, e.Lines()...)
	}
	if begun {
		return nil
	}
	return errors.Join(errs...)
}

// plain are the tasks as the plan wants them.
func (f *foundTasks) plain() []jobdir.Task {
	list := make([]jobdir.Task, len(f.tasks))
	for i, t := range f.tasks {
		list[i] = t.Task
	}
	return list
}

// TaskKey tells apart the tasks of a job.
func TaskKey(t jobdir.TaskConfig) string {
	var b strings.Builder
	for _, part := range []*string{t.Path, t.GitURL, t.GitCommitID, t.Name, t.Ref, t.DownloadDir} {
		if part != nil {
			b.WriteString(strconv.Quote(*part))
		}
		b.WriteByte(',')
	}
	return b.String()
}

// TaskDir is where a task of the job lies on this machine.
func (p *Prepared) TaskDir(t jobdir.TaskConfig) (string, error) {
	if dir, ok := p.Dirs[TaskKey(t)]; ok {
		if dir == "" {
			return "", fmt.Errorf("task %q of a cube has no directory", describeTask(t))
		}
		return dir, nil
	}
	if t.Kind() == jobdir.LocalTask {
		return *t.Path, nil
	}
	return "", fmt.Errorf("task %q has not been fetched", describeTask(t))
}

func describeTask(t jobdir.TaskConfig) string {
	switch {
	case t.Name != nil:
		return *t.Name
	case t.GitURL != nil:
		return gitfetch.Anonymous(*t.GitURL)
	}
	return *t.Path
}

// dirs says where each task lies.
func (f *foundTasks) dirs() map[string]string {
	dirs := make(map[string]string, len(f.homes))
	for key, home := range f.homes {
		dirs[key] = home.dir
	}
	return dirs
}

// TaskDirs lists the directories of the job's tasks, each once, as absolute paths:
// also those that no path of the configuration leads to, such as the ones of a
// registry file. A task without a directory is left to its trial.
func (p *Prepared) TaskDirs() []string {
	var dirs []string
	for _, t := range p.Trials {
		dir, err := p.TaskDir(t.Task)
		if err == nil && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return absolute(dirs)
}
