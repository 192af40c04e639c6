package taskcheck

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
)

// Subject is a task under check.
type Subject struct {
	Dir    string
	Report *Report
	// Runs: its files allow trials of it to be run.
	Runs bool
	// Goal is the reward of the task's solution.
	Goal   float64
	Config harbor.Config
	// Compose: the task has a compose project, whose network cannot be changed
	// while it runs.
	Compose bool

	outcome Outcome
}

// Batch is what is run at once: one trial of each task for each role.
type Batch struct {
	// Name tells the batches of a course apart; it is part of a job's name.
	Name  string
	Tasks []*Subject
	Roles []Role
	// Amend changes tasks before they are run; nil leaves them.
	Amend func(jobdir.TrialConfig, *harbor.Task)
}

// Course is the way through the checks that need trials: the solution and no
// work first; tasks whose solution gets its reward go on to the network and to
// the attempts on the reward.
type Course struct {
	// Repeats is how often the solution is run, at least once.
	Repeats int
	// Sealed: the trials run with their verifiers sealed.
	Sealed bool
	// Environment names where the trials run, and Can is what it can do.
	Environment string
	Can         sandbox.Capabilities
	// Run runs a batch and returns for each task the trials of its roles, in
	// order; see [GatherAll].
	Run func(context.Context, Batch) ([][]Trial, error)
	// Say is called with what is run next; nil for nobody.
	Say func(tasks int, text string)
}

// Check runs all batches and adds the judgements to the reports. An error ends
// it.
func (c *Course) Check(ctx context.Context, tasks []*Subject) error {
	for _, t := range tasks {
		t.outcome.Goal = t.Goal
	}
	usable, err := c.reference(ctx, tasks)
	if err != nil {
		return err
	}
	if err := c.network(ctx, usable); err != nil {
		return err
	}
	return c.channel(ctx, usable)
}

// reference runs the solution and no work, and returns the tasks that further
// checks can say something about.
func (c *Course) reference(ctx context.Context, tasks []*Subject) ([]*Subject, error) {
	c.say(len(tasks), fmt.Sprintf("the solution %s, and no work", times(c.Repeats)))
	trials, err := c.Run(ctx, Batch{Name: "reference", Tasks: tasks, Roles: Reference(c.Repeats)})
	if err != nil {
		return nil, err
	}
	var usable []*Subject
	for i, t := range tasks {
		t.outcome.Reference = trials[i]
		if JudgeReference(t.Report, t.outcome) {
			usable = append(usable, t)
		}
	}
	return usable, nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// network runs the solutions again, with the network taken away.
func (c *Course) network(ctx context.Context, tasks []*Subject) error {
	var running []*Subject
	for _, t := range tasks {
		config := t.Config
		config.Steps = slices.Clone(config.Steps) // taking the network changes them
		t.outcome.Reach = TakeNetwork(&config, c.Can.SwitchNetwork && !t.Compose)
		switch {
		case !Solved(t.outcome):
			t.outcome.NoOffline = "not tried: the solution does not get its reward with the network either"
		case t.outcome.Reach == ReachNone:
		case !c.Can.NoNetwork:
			t.outcome.NoOffline = fmt.Sprintf("not tried: environment %s cannot take the network away", c.Environment)
		default:
			running = append(running, t)
		}
	}
	if len(running) > 0 {
		c.say(len(running), "the solution without network")
		trials, err := c.Run(ctx, Batch{Name: "offline", Tasks: running, Roles: Offline(), Amend: func(_ jobdir.TrialConfig, task *harbor.Task) {
			TakeNetwork(&task.Config, c.Can.SwitchNetwork && !task.HasCompose())
		}})
		if err != nil {
			return err
		}
		for i, t := range running {
			t.outcome.Offline = &trials[i][0]
		}
	}
	for _, t := range tasks {
		JudgeNetwork(t.Report, t.outcome)
	}
	return nil
}

// channel lets an agent try to write its reward.
func (c *Course) channel(ctx context.Context, tasks []*Subject) error {
	if len(tasks) == 0 {
		return nil
	}
	c.say(len(tasks), fmt.Sprintf("%d attempts on the reward", len(Attempts())))
	trials, err := c.Run(ctx, Batch{Name: "channel", Tasks: tasks, Roles: Channel()})
	if err != nil {
		return err
	}
	for i, t := range tasks {
		t.outcome.Channel, t.outcome.Sealed = trials[i], c.Sealed
		JudgeChannel(t.Report, t.outcome)
	}
	return nil
}

func (c *Course) say(tasks int, text string) {
	if c.Say != nil {
		c.Say(tasks, text)
	}
}

// GatherAll reads the trials of a batch from their job's directory: plan lists
// them task by task, each in the order of the roles, and results holds what was
// returned of each, by name.
func GatherAll(jobDir string, plan []jobdir.TrialConfig, roles []Role, results map[string]*jobdir.TrialResult) ([][]Trial, error) {
	var all [][]Trial
	for i, planned := range plan {
		if i%len(roles) == 0 {
			all = append(all, make([]Trial, 0, len(roles)))
		}
		t, err := Gather(filepath.Join(jobDir, planned.TrialName), roles[i%len(roles)], results[planned.TrialName])
		if err != nil {
			return nil, err
		}
		last := len(all) - 1
		all[last] = append(all[last], t)
	}
	return all, nil
}
