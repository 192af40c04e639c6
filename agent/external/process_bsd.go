//go:build unix && !linux

package external

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts a command into a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// awaitExit waits until a process has ended.
func awaitExit(p *os.Process) (*os.ProcessState, error) {
	return p.Wait() //nolint:wrapcheck // names the call
}
