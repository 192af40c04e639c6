package guest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// powerless does work on a thread of its own, whose children have no capabilities
// and cannot gain any, also as root: the bounding set is empty and there are no
// new privileges. The supervisor's other threads keep what they have. The zero
// value is ready.
type powerless struct {
	once sync.Once
	work chan func()
	done chan struct{}
	err  error
}

// do does f on the thread, and returns when it is done.
func (p *powerless) do(f func()) error {
	p.once.Do(func() {
		p.work, p.done = make(chan func()), make(chan struct{})
		go p.serve() // until the process ends
		<-p.done
	})
	if p.err != nil {
		return fmt.Errorf("giving up capabilities: %w", p.err)
	}
	p.work <- f
	<-p.done
	return nil
}

func (p *powerless) serve() {
	runtime.LockOSThread() // and never unlocked: nothing else may run with so little
	p.err = giveUp()
	p.done <- struct{}{}
	if p.err != nil {
		return // the runtime ends the thread
	}
	for f := range p.work {
		f()
		p.done <- struct{}{}
	}
}

// giveUp leaves the calling thread its own capabilities, and its children none.
func giveUp() error {
	for c := uintptr(0); unix.Prctl(unix.PR_CAPBSET_READ, c, 0, 0, 0) == nil; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return fmt.Errorf("dropping capability %d from the bounding set: %w", c, err)
		}
	}
	// A kernel without ambient capabilities has none to clear.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("clearing the ambient capabilities: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return fmt.Errorf("reading the capabilities: %w", err)
	}
	sets[0].Inheritable, sets[1].Inheritable = 0, 0
	if err := unix.Capset(&head, &sets[0]); err != nil {
		return fmt.Errorf("clearing the inheritable capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refusing new privileges: %w", err)
	}
	return nil
}
