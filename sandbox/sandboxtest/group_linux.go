package sandboxtest

import (
	osexec "os/exec"
	"syscall"
)

// ownGroup has a program killed together with what it starts in its group, and
// when this process or the calling thread ends.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
