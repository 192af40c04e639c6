package job

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/admit"
	"github.com/proctor-run/proctor/internal/machine"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// Room is what trials that run at once share on a machine. A trial begins when what its
// task asks for is free, in the order of the plan; one that asks for more than there is
// runs alone. A task that does not say needs 1 processor and 2 GiB of memory, and no disk
// that is worth counting.
type Room struct {
	CPUs      int
	MemoryMiB int64
	// DiskMiB is what is free where sandboxes write; 0 is not known, and bounds nothing.
	DiskMiB int64
}

// ThisMachine is the room of this machine, of whose disks nothing is known.
func ThisMachine() Room { return Room{CPUs: machine.CPUs(), MemoryMiB: machine.MemoryKiB() >> 10} }

// errElsewhere is the error of [Session.ShareMachine].
var errElsewhere = errors.New("the sandboxes are not on this machine, so that what fits there is not known: say how many trials run at once")

// ShareMachine lets a trial begin only when what its task asks for is free where the
// sandboxes of the backend are, which is open. It is an error where that is another
// machine of which nothing is known.
func (s *Session) ShareMachine(ctx context.Context) error {
	room := ThisMachine()
	if teller, tells := s.backend.(sandbox.HostTeller); tells {
		host, err := teller.Host(ctx)
		if err != nil {
			return err
		}
		room = Room{
			CPUs: cmp.Or(host.CPUs, room.CPUs), MemoryMiB: cmp.Or(host.MemoryMiB, room.MemoryMiB), DiskMiB: host.DiskMiB,
		}
	} else if s.backend != nil && !s.backend.Capabilities().Mounted {
		return errElsewhere
	}
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
		p: p, m: m, gate: admit.New(r.Room.amount()),
		needs: make(map[int]admit.Amount, len(p.Remaining)),
	}
	for _, i := range p.Remaining {
		t := &p.Trials[i]
		a.needs[i] = needOf(t, p.taskConfig(t.Task))
	}
	return a
}

// amount is the room as a gate counts it.
func (r Room) amount() admit.Amount {
	return admit.Amount{CPUs: float64(r.CPUs), MemoryMiB: r.MemoryMiB, DiskMiB: cmp.Or(r.DiskMiB, math.MaxInt64)}
}

// needOf is what a trial needs; task is nil where nothing is known of it.
func needOf(t *jobdir.TrialConfig, task *harbor.Config) admit.Amount {
	var cpus, memory, disk *value.Int
	if task != nil {
		cpus, memory, disk = task.Environment.CPUs, task.Environment.MemoryMB, task.Environment.StorageMB
	}
	return admit.Amount{
		CPUs:      float64(asked(t.Environment.OverrideCPUs, cpus, machine.TaskCPUs)),
		MemoryMiB: asked(t.Environment.OverrideMemoryMB, memory, machine.TaskMemoryMiB),
		DiskMiB:   asked(t.Environment.OverrideStorageMB, disk, 0),
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
