//go:build !unix

package external

import (
	"os"
	"os/exec"
)

// ownGroup leaves it at the process itself: there are no groups.
func ownGroup(*exec.Cmd) {}

// awaitExit waits until a process has ended.
func awaitExit(p *os.Process) (*os.ProcessState, error) {
	return p.Wait() //nolint:wrapcheck // names the call
}

// terminateGroup ends a process: it cannot be asked to.
func terminateGroup(p *os.Process) { _ = p.Kill() }

// killGroup ends a process. That it has ended is no error.
func killGroup(p *os.Process) { _ = p.Kill() }

func exitCode(s *os.ProcessState) int { return s.ExitCode() }
