package gitfetch

import (
	"os/exec"
	"syscall"
)

// ownGroup has a program killed together with the helpers that it starts, and
// when this program is killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
