//go:build unix && !linux

package sandboxtest

import (
	osexec "os/exec"
	"syscall"
)

// ownGroup has a program killed together with what it starts in its group.
func ownGroup(cmd *osexec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
