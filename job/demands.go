package job

import (
	"fmt"
	"runtime"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// CheckLimits refuses trials that are still to be run and whose task leaves a phase no
// time. Tasks that cannot be loaded are their trials' matter.
func (p *Prepared) CheckLimits() error {
	return p.eachRemaining(func(t *jobdir.TrialConfig, task *harbor.Config) error {
		if err := trial.CheckLimits(t, task); err != nil {
			return fmt.Errorf("task %q: %w", t.Task.BaseName(), err)
		}
		return nil
	})
}

// eachRemaining calls fn with each trial that is still to be run and its task, which is
// read once. Tasks of cubes and those that cannot be loaded are left out.
func (p *Prepared) eachRemaining(fn func(*jobdir.TrialConfig, *harbor.Config) error) error {
	read := map[string]*harbor.Config{}
	for _, i := range p.Remaining {
		t := &p.Trials[i]
		key := TaskKey(t.Task)
		config, seen := read[key]
		if !seen {
			if dir, err := p.TaskDir(t.Task); err == nil {
				if task, err := harbor.Load(dir, harbor.LoadOptions{}); err == nil {
					config = &task.Config
				}
			}
			read[key] = config
		}
		if config == nil {
			continue
		}
		if err := fn(t, config); err != nil {
			return err
		}
	}
	return nil
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

// tooManyProcessors says which task asks for more processors than there are, and how
// many others do; it is empty if none does.
func (p *Prepared) tooManyProcessors(have int) string {
	text, tasks := "", map[string]bool{}
	_ = p.eachRemaining(func(t *jobdir.TrialConfig, task *harbor.Config) error {
		if t.Environment.CPUEnforcementPolicy == "ignore" {
			return nil
		}
		want := ""
		switch override := t.Environment.OverrideCPUs; {
		case override != nil && *override > have:
			want = fmt.Sprint(*override)
		case override == nil && task.Environment.CPUs != nil && task.Environment.CPUs.Cmp(value.NewInt(int64(have))) > 0:
			want = task.Environment.CPUs.String()
		default:
			return nil
		}
		if text == "" {
			text = fmt.Sprintf("task %q asks for %s processors, and this machine has %d", t.Task.BaseName(), want, have)
		}
		tasks[TaskKey(t.Task)] = true
		return nil
	})
	if others := len(tasks) - 1; others > 0 {
		text += fmt.Sprintf(" (and %d more like it)", others)
	}
	if text != "" {
		text += fmt.Sprintf("; --override-cpus %d asks for these alone", have)
	}
	return text
}
