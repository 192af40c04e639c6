package guest

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/proctor-run/proctor/sandbox/internal/native"
)

// guardMemory notes that the kernel spares the supervisor when memory is short,
// and that commands are not to be spared.
func (s *server) guardMemory(scores native.Scores) error {
	if scores.Guest == scores.Commands {
		return nil
	}
	f, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("protecting the supervisor when memory is short: %w", err)
	}
	s.oom = f
	s.ownScore, s.commandScore = []byte(strconv.Itoa(scores.Guest)), []byte(strconv.Itoa(scores.Commands))
	return nil
}

// forkExec starts a command. It inherits how readily the kernel kills it when
// memory is short, and the bound below which only the privileged can lower
// that: for the moment of the start the supervisor is as its commands are.
func (s *server) forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	if s.oom == nil {
		pid, err := syscall.ForkExec(path, argv, attr)
		return pid, os.NewSyscallError("exec", err)
	}
	if _, err := s.oom.WriteAt(s.commandScore, 0); err != nil {
		return 0, fmt.Errorf("giving up the protection when memory is short: %w", err)
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	if _, guardErr := s.oom.WriteAt(s.ownScore, 0); guardErr != nil && err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it is reaped like an orphan
		return 0, fmt.Errorf("protecting the supervisor when memory is short: %w", guardErr)
	}
	return pid, os.NewSyscallError("exec", err)
}

// spareThreads is how many threads the supervisor has in reserve.
const spareThreads = 8

// reserveThreads makes threads that wait until they are needed: when commands have
// as many processes as there may be, the kernel refuses more, and a program
// that gets none dies.
func reserveThreads() {
	var made, done sync.WaitGroup
	made.Add(spareThreads)
	for range spareThreads {
		done.Go(func() {
			runtime.LockOSThread() // no two of them on the same thread
			made.Done()
			made.Wait()
			runtime.UnlockOSThread() // the runtime keeps the thread
		})
	}
	done.Wait()
}
