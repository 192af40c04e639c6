package job

import (
	"fmt"
	"runtime"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// CheckLimits refuses a job of which each trial that is still to be run has a task that
// leaves a phase no time. Where others are left to run, a warning names such tasks: one bad
// task does not stop a job. Tasks that cannot be loaded are their trials' matter.
func (p *Prepared) CheckLimits() error {
	var first error
	trials, tasks := 0, map[string]bool{}
	p.eachRemaining(func(t *jobdir.TrialConfig, task *harbor.Config) {
		err := trial.CheckLimits(t, task)
		if err == nil {
			return
		}
		if first == nil {
			first = fmt.Errorf("task %q: %w", t.Task.BaseName(), err)
		}
		trials++
		tasks[TaskKey(t.Task)] = true
	})
	if first != nil && trials < len(p.Remaining) {
		p.Warnings = append(p.Warnings, first.Error()+moreLike(len(tasks)-1))
		return nil
	}
	return first
}

// moreLike says how many others there are of what a warning has named.
func moreLike(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more like it)", n)
}

// eachRemaining calls fn with each trial that is still to be run and its task. Tasks of
// cubes and those that cannot be loaded are left out.
func (p *Prepared) eachRemaining(fn func(*jobdir.TrialConfig, *harbor.Config)) {
	for _, i := range p.Remaining {
		t := &p.Trials[i]
		if config := p.taskConfig(t.Task); config != nil {
			fn(t, config)
		}
	}
}

// taskConfig is what the task.toml of a task says, nil where it cannot be read. It is read
// at most once, also in a job that another process prepared.
func (p *Prepared) taskConfig(t jobdir.TaskConfig) *harbor.Config {
	key := TaskKey(t)
	if config, seen := p.configs[key]; seen {
		return config
	}
	if p.configs == nil {
		p.configs = map[string]*harbor.Config{}
	}
	p.configs[key] = nil
	if dir, err := p.TaskDir(t); err == nil {
		if task, err := harbor.Load(dir, harbor.LoadOptions{}); err == nil {
			p.configs[key] = &task.Config
		}
	}
	return p.configs[key]
}

// NoteProcessors adds a warning if tasks ask for more processors than this machine has,
// and the sandboxes of the backend, which is open, are on it.
func (s *Session) NoteProcessors(p *Prepared) {
	if s.backend == nil || !s.backend.Capabilities().Mounted {
		return
	}
	if text := p.tooManyProcessors(runtime.NumCPU()); text != "" {
		p.Warnings = append(p.Warnings, text)
	}
}

// NoteStorage adds a warning if tasks bound what may be written and the backend, which is
// open, does not.
func (s *Session) NoteStorage(p *Prepared) {
	if s.backend == nil || s.backend.Capabilities().StorageLimit {
		return
	}
	if text := p.unboundStorage(); text != "" {
		p.Warnings = append(p.Warnings, fmt.Sprintf("%s; environment %s does not bound it", text, s.backend.Name()))
	}
}

// unboundStorage says which task has a limit of storage, and how many others do; it is
// empty if none does.
func (p *Prepared) unboundStorage() string {
	text, tasks := "", map[string]bool{}
	p.eachRemaining(func(t *jobdir.TrialConfig, task *harbor.Config) {
		limit := task.Environment.StorageMB
		if override := t.Environment.OverrideStorageMB; override != nil {
			limit = new(value.NewInt(int64(*override)))
		}
		if limit == nil || limit.Sign() <= 0 {
			return
		}
		if text == "" {
			text = fmt.Sprintf("task %q has %s MiB of storage (storage_mb)", t.Task.BaseName(), limit)
		}
		tasks[TaskKey(t.Task)] = true
	})
	if text == "" {
		return ""
	}
	return text + moreLike(len(tasks)-1)
}

// tooManyProcessors says which task asks for more processors than there are, and how
// many others do; it is empty if none does.
func (p *Prepared) tooManyProcessors(have int) string {
	text, tasks := "", map[string]bool{}
	p.eachRemaining(func(t *jobdir.TrialConfig, task *harbor.Config) {
		if t.Environment.CPUEnforcementPolicy == "ignore" {
			return
		}
		want := ""
		switch override := t.Environment.OverrideCPUs; {
		case override != nil && *override > have:
			want = fmt.Sprint(*override)
		case override == nil && task.Environment.CPUs != nil && task.Environment.CPUs.Cmp(value.NewInt(int64(have))) > 0:
			want = task.Environment.CPUs.String()
		default:
			return
		}
		if text == "" {
			text = fmt.Sprintf("task %q asks for %s processors, and this machine has %d", t.Task.BaseName(), want, have)
		}
		tasks[TaskKey(t.Task)] = true
	})
	if text == "" {
		return ""
	}
	return text + moreLike(len(tasks)-1) + fmt.Sprintf("; --override-cpus %d asks for these alone", have)
}
