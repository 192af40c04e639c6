//go:build !linux

package procid

import (
	"fmt"
	"os"
)

// Without /proc a process is known by its pid and the host's name alone, and
// another process's start cannot be told: owners there count as alive.
func bootID() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host name: %w", err)
	}
	return host, nil
}

func startTicks(pid int) (uint64, error) {
	if pid == os.Getpid() {
		return 1, nil
	}
	return 0, fmt.Errorf("the start of process %d cannot be told on this system", pid)
}
