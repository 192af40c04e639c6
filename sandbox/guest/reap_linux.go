package guest

import (
	"errors"
	"syscall"
)

// reap collects every child that has ended: commands, whose status goes to
// their execution, and orphans that were handed to the supervisor.
func (s *server) reap() {
	for {
		s.reapEnded()
		<-s.children
	}
}

func (s *server) reapEnded() {
	for s.reapOne() {
	}
}

// reapOne works under the lock under which commands are forked: one that ends
// at once is still there to be looked at, and found when it is reaped.
func (s *server) reapOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
	if err != nil || pid <= 0 {
		return errors.Is(err, syscall.EINTR)
	}
	if e := s.byPID[pid]; e != nil {
		delete(s.byPID, pid)
		e.exited = true
		e.status <- codeOf(ws)
	}
	return true
}

func codeOf(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}
