package external

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownGroup puts a command into a process group of its own, and has it killed when this
// program is.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until a process has ended, and does not reap it: until that is done
// nobody else can have its number, which is that of its group. There is no state yet.
func awaitExit(p *os.Process) (*os.ProcessState, error) {
	for {
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return nil, os.NewSyscallError("waitid", err)
		}
	}
}
