package fake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/proctor-run/proctor/sandbox"
)

// Op is a method of the contract.
type Op string

// The methods.
const (
	opCheck    Op = "check"
	OpCreate   Op = "create"
	OpExec     Op = "exec"
	OpMark     Op = "mark"
	OpKillTree Op = "killtree"
	OpUpload   Op = "upload"
	OpDownload Op = "download"
	opReset    Op = "reset"
	OpSnapshot Op = "snapshot"
	OpFork     Op = "fork"
	opPrepare  Op = "prepare"
	opTake     Op = "take"
	OpStop     Op = "stop"
	OpDestroy  Op = "destroy"
	opCollect  Op = "collect"
	OpListen   Op = "listen"
	// OpEndAll and OpServices are the methods of sandbox.Restarter.
	OpEndAll   Op = "endall"
	OpServices Op = "services"
	// OpNetwork is SetNetwork.
	OpNetwork Op = "network"
)

// Call is one call as it was recorded.
type Call struct {
	Op Op
	// N counts the calls of this Op on the backend, from 1.
	N int
	// Sandbox is the Spec's name; empty for Check and Collect.
	Sandbox string
	Spec    sandbox.Spec    // of Create
	Command sandbox.Command // of Exec, without its streams
	Path    string          // of Upload and Download
	Mark    sandbox.Mark    // of KillTree
	// Network is the policy under which Exec runs, or that SetNetwork sets.
	Network sandbox.Network
	// Done, Status and Err are how the call ended.
	Done   bool
	Status sandbox.ExitStatus
	Err    error
}

// call records c, asks Config.Before and does the work.
func (b *Backend) call(ctx context.Context, c *Call, work func() error) error {
	b.mu.Lock()
	b.counts[c.Op]++
	c.N = b.counts[c.Op]
	b.calls = append(b.calls, c)
	seen := *c
	b.mu.Unlock()

	var err error
	if ctx.Err() != nil && c.Op != OpDestroy {
		err = context.Cause(ctx)
	}
	if err == nil && b.cfg.Before != nil {
		err = b.cfg.Before(ctx, seen)
	}
	if err == nil {
		err = work()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Done, c.Err = true, err
	return err
}

// Calls are all calls so far, in the order in which they began.
func (b *Backend) Calls() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]Call, len(b.calls))
	for i, c := range b.calls {
		all[i] = *c
	}
	return all
}

// Count is how many calls of one kind there were.
func (b *Backend) Count(op Op) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[op]
}

// Violations are what no correct caller does, one line each: calls on a
// sandbox that is not created yet or is destroyed, one name for two sandboxes
// at a time, a Destroy with a context that has ended, relative paths, marks of
// another sandbox, and, as of now, sandboxes that were never destroyed, snapshots
// that were never released, and prepared sandboxes that nobody took or destroyed.
func (b *Backend) Violations() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.violations)
	for _, sb := range b.live {
		if sb.getState() != stopped {
			all = append(all, fmt.Sprintf("sandbox %q was never destroyed", sb.spec.Name))
		}
	}
	if b.snapshots > 0 {
		all = append(all, fmt.Sprintf("%d snapshots were never released", b.snapshots))
	}
	if b.prepared > 0 {
		all = append(all, fmt.Sprintf("%d prepared sandboxes were neither taken nor destroyed", b.prepared))
	}
	slices.Sort(all[len(b.violations):])
	return all
}

func (b *Backend) violate(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violateLocked(format, args...)
}

func (b *Backend) violateLocked(format string, args ...any) {
	b.violations = append(b.violations, fmt.Sprintf(format, args...))
}

// Verify fails the test for every violation. Defer it.
func Verify(t testing.TB, b *Backend) {
	t.Helper()
	for _, v := range b.Violations() {
		t.Errorf("illegal use of the sandbox: %s", v)
	}
}

// ErrInjected is the error of faults that are given none.
var ErrInjected = errors.New("fake: injected error")

// Fault is a Config.Before.
type Fault = func(ctx context.Context, call Call) error

// FailAt lets the n-th call of a kind fail, all of them when n is 0. A nil
// error means ErrInjected.
func FailAt(op Op, n int, err error) Fault {
	if err == nil {
		err = ErrInjected
	}
	return func(_ context.Context, c Call) error {
		if c.Op == op && (n == 0 || c.N == n) {
			return err
		}
		return nil
	}
}

// HangAt lets the n-th call of a kind hang until its context ends, all of
// them when n is 0.
func HangAt(op Op, n int) Fault {
	return waitAt(op, n, nil)
}

// waitAt lets the n-th call of a kind wait until the channel is closed or the
// context ends, all of them when n is 0.
func waitAt(op Op, n int, until <-chan struct{}) Fault {
	return func(ctx context.Context, c Call) error {
		if c.Op != op || (n != 0 && c.N != n) {
			return nil
		}
		select {
		case <-until:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// FailEvery lets every n-th call of all kinds but Destroy fail.
func FailEvery(n int64, err error) Fault {
	if err == nil {
		err = ErrInjected
	}
	var seen atomic.Int64
	return func(_ context.Context, c Call) error {
		if c.Op != OpDestroy && seen.Add(1)%n == 0 {
			return err
		}
		return nil
	}
}

// Faults are asked in order; the first error counts.
func Faults(faults ...Fault) Fault {
	return func(ctx context.Context, c Call) error {
		for _, f := range faults {
			if err := f(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
}
