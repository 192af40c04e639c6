package runtimes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pidPoll is how often it is looked whether the runtime has written a pid down.
const pidPoll = 2 * time.Millisecond

// First returns a handle of the sandbox's first process, which the runtime writes
// down, or nil where the kernel has no such handles. Runtimes write when the process
// runs, so that the guest may have greeted before. While the guest is connected it lives,
// so that its pid means nothing else.
func (p *Process) First(ctx context.Context) (*os.File, error) {
	if p.pidFile == "" {
		return p.first, nil
	}
	for {
		pid, err := readPID(p.pidFile)
		if err != nil {
			return nil, err
		}
		if pid != 0 {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return nil, nil // the sandbox works without
			}
			return os.NewFile(uintptr(fd), "pidfd"), nil
		}
		select {
		case <-time.After(pidPoll):
		case <-p.done:
			return nil, errors.New("the runtime has ended and has not said which process is the sandbox's first")
		case <-ctx.Done():
			return nil, fmt.Errorf("the runtime has not said which process is the sandbox's first: %w", context.Cause(ctx))
		}
	}
}

// readPID reads a file with a pid. It is 0 as long as the file is not there or
// empty.
func readPID(name string) (int, error) {
	data, err := os.ReadFile(name)
	text := strings.TrimSpace(string(data))
	if errors.Is(err, os.ErrNotExist) || (err == nil && text == "") {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading which process is the sandbox's first: %w", err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("the runtime says that the sandbox's first process is %.40q", text)
	}
	return pid, nil
}
