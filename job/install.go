package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// install installs the programs of the agents for the images of the tasks, where that has
// not been done, before the job's clock starts: at most as many at a time as trials. What
// fails for some images is told, and left to their trials. Where every installation fails
// the job does not start.
func (r *Runner) install(ctx context.Context, p *Prepared) error {
	todo := r.installers(p)
	if len(todo) == 0 {
		return nil
	}
	failures := make([]error, len(todo))
	secrets := r.secrets(p) // which an image could show in what it prints
	var emitting sync.Mutex
	emit := func(kind EventKind, format string, args ...any) {
		emitting.Lock()
		defer emitting.Unlock()
		if r.Emit != nil {
			r.Emit(Event{Kind: kind, Time: r.Trials.Now(), JobName: p.Config.JobName, Message: secrets.String(fmt.Sprintf(format, args...)),
				Progress: Progress{Total: len(p.Trials), Pending: len(p.Remaining)}})
		}
	}
	queue := make(chan int)
	var workers sync.WaitGroup
	for range min(max(p.Config.NConcurrentTrials, 1), len(todo)) {
		workers.Go(func() {
			for i := range queue {
				failures[i] = r.installOne(ctx, todo[i], emit)
			}
		})
	}
	for i := range todo {
		queue <- i
	}
	close(queue)
	workers.Wait()
	failed := 0
	for _, err := range failures {
		if err != nil {
			failed++
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil // the job is recorded as interrupted
	case failed == len(todo):
		err := fmt.Errorf("installing %s for %s: %w", todo[0].Agent, todo[0].Image, failures[0])
		if text := secrets.String(err.Error()); text != err.Error() {
			return errors.New(text)
		}
		return err
	}
	for i, err := range failures {
		if err != nil {
			emit(EventWarning, "installing %s for %s: %v; its trials try it again", todo[i].Agent, todo[i].Image, err)
		}
	}
	return nil
}

func (r *Runner) installOne(ctx context.Context, i *trial.Installer, emit func(EventKind, string, ...any)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	name := i.Agent
	if i.Version != "" {
		name += " " + i.Version
	}
	begun := r.Trials.Now()
	emit(EventInstall, "installing %s for %s, once for all trials", name, i.Image)
	made, err := i.Install(ctx)
	if err != nil {
		return err
	}
	took := r.Trials.Now().Sub(begun).Round(100 * time.Millisecond)
	if made.Prefix == "" {
		emit(EventInstall, "%s %s is in the image of %s: nothing to install", i.Agent, made.Version, i.Image)
		return nil
	}
	emit(EventInstall, "installed %s %s for %s: %d MB in %s", i.Agent, made.Version, i.Image, made.Bytes/1e6, took)
	return nil
}

// installers are what is to be done, once for each image.
func (r *Runner) installers(p *Prepared) []*trial.Installer {
	if r.Trials.Layers == nil {
		return nil
	}
	runner := r.Trials
	runner.TaskDir, runner.Secrets = p.TaskDir, r.restoring(p)
	var all []*trial.Installer
	seen := map[string]bool{} // of tasks with agents, and of what is installed
	for _, i := range p.Remaining {
		cfg := p.Trials[i]
		key := TaskKey(cfg.Task) + "\x00" + agentKey(cfg.Agent)
		if seen[key] {
			continue
		}
		seen[key] = true
		one := runner.Installer(cfg)
		if one == nil || seen[one.Key] {
			continue
		}
		seen[one.Key] = true
		all = append(all, one)
	}
	return all
}

func agentKey(a jobdir.AgentConfig) string {
	key := ""
	if a.Name != nil {
		key = *a.Name
	}
	if a.Kwargs != nil {
		key += string(value.AppendDumps(nil, a.Kwargs, value.DumpsOptions{}))
	}
	return key
}
