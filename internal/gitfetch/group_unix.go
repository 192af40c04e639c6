//go:build unix && !linux

package gitfetch

import (
	"os/exec"
	"syscall"
)

// ownGroup has a program killed together with the helpers that it starts.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
