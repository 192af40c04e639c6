package guest

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// holdSignals keeps signals that commands may send from ending or stopping the supervisor.
// SIGURG and SIGPROF are the Go runtime's own.
//
// Each signal that the runtime is asked for takes several switches between threads, which
// are dear where a kernel like gVisor's makes them. So the kernel ignores what it can: a
// command does not inherit that, as the runtime sets those signals back for its children
// which it handled when it began. It does not for those that it leaves alone until it is
// asked, and for two that it leaves ignored where they were.
func holdSignals(children chan os.Signal) error {
	signal.Notify(children, syscall.SIGCHLD)
	signal.Notify(make(chan os.Signal, 1), // nobody reads: what does not fit is dropped
		syscall.SIGHUP, syscall.SIGINT, // left ignored where they were
		syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, // left alone
		syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGPIPE, // what the runtime makes of its own is to stay
	)
	for _, n := range []syscall.Signal{
		syscall.SIGQUIT, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGTERM, syscall.SIGSTKFLT, syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGVTALRM, syscall.SIGWINCH, syscall.SIGIO,
		syscall.SIGPWR, syscall.SIGSYS,
	} {
		if err := ignoreSignal(n); err != nil {
			return err
		}
	}
	return nil
}

// action is the kernel's struct sigaction, see rt_sigaction(2).
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const ignored = 1 // SIG_IGN

// ignoreSignal lets the kernel drop a signal, and the Go runtime know nothing of that.
func ignoreSignal(n syscall.Signal) error {
	act := action{handler: ignored}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(&act)), 0, unsafe.Sizeof(act.mask), 0, 0); errno != 0 {
		return fmt.Errorf("ignoring signal %d: %w", n, errno)
	}
	return nil
}
