package job

import (
	"context"
	"errors"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/admit"
	"github.com/proctor-run/proctor/internal/machine"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// Room is what trials that run at once share on a machine. A trial begins when what its
// task asks for is free, in the order of the plan; one that asks for more than there is
// runs alone. A task that does not say needs 1 processor and 2 GiB.
type Room struct {
	CPUs      int
	MemoryMiB int64
}

// ThisMachine is the room of this machine.
func ThisMachine() Room { return Room{CPUs: machine.CPUs(), MemoryMiB: machine.MemoryKiB() >> 10} }

// errElsewhere is the error of [Session.ShareMachine].
var errElsewhere = errors.New("the sandboxes are not on this machine, so that what fits there is not known: say how many trials run at once")

// ShareMachine lets a trial begin only when what its task asks for is free on this
// machine. It is an error where the sandboxes of the backend, which is open, are on
// another one.
func (s *Session) ShareMachine() error {
	if s.backend != nil && !s.backend.Capabilities().Mounted {
		return errElsewhere
	}
	room := ThisMachine()
	s.Runner.Room = &room
	return nil
}

// admission lets trials into a room; it is nil where their number alone bounds them.
type admission struct {
	p     *Prepared
	m     *monitor
	gate  *admit.Gate
	needs map[int]admit.Amount // of the trials with these numbers in the plan
}

func (r *Runner) admission(p *Prepared, m *monitor) *admission {
	if r.Room == nil {
		return nil
	}
	a := &admission{
		p: p, m: m, gate: admit.New(admit.Amount{CPUs: float64(r.Room.CPUs), MemoryMiB: r.Room.MemoryMiB}),
		needs: make(map[int]admit.Amount, len(p.Remaining)),
	}
	for _, i := range p.Remaining {
		t := &p.Trials[i]
		a.needs[i] = needOf(t, p.taskConfig(t.Task))
	}
	return a
}

// needOf is what a trial needs; task is nil where nothing is known of it.
func needOf(t *jobdir.TrialConfig, task *harbor.Config) admit.Amount {
	var cpus, memory *value.Int
	if task != nil {
		cpus, memory = task.Environment.CPUs, task.Environment.MemoryMB
	}
	return admit.Amount{
		CPUs:      float64(asked(t.Environment.OverrideCPUs, cpus, machine.TaskCPUs)),
		MemoryMiB: asked(t.Environment.OverrideMemoryMB, memory, machine.TaskMemoryMiB),
	}
}

// asked is a number of a task's, or the one instead of it; what is not above 0 says
// nothing, and what is beyond any machine is very many.
func asked(override *int, n *value.Int, fallback int64) int64 {
	const veryMany = 1 << 40
	if override != nil {
		n = new(value.NewInt(int64(*override)))
	}
	if amount := value.Clamp(n, veryMany); amount > 0 {
		return amount
	}
	return fallback
}

// enter waits until there is room for an attempt at a trial. leave gives it back.
func (a *admission) enter(ctx context.Context, i, attempt int) (leave func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	t := &a.p.Trials[i]
	return a.gate.Enter(ctx, a.needs[i], func(why string) {
		a.m.emit(Event{Kind: EventWait, Waiting: &Waiting{TrialName: t.TrialName, TaskName: t.Task.BaseName(), Attempt: attempt}, Message: "waits: " + why})
	})
}
