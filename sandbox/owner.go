package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Self identifies the calling process.
func Self() (Owner, error) {
	boot, err := bootID()
	if err != nil {
		return Owner{}, err
	}
	pid := os.Getpid()
	ticks, err := startTicks(pid)
	if err != nil {
		return Owner{}, err
	}
	return Owner{BootID: boot, PID: pid, StartTicks: ticks}, nil
}

// Alive reports whether the owner is still running on this machine. An owner
// of another boot is dead; where it cannot be told, the owner counts as alive,
// so that nothing in use is ever removed.
func (o Owner) Alive() bool {
	boot, err := bootID()
	if err != nil {
		return true
	}
	if boot != o.BootID {
		return false
	}
	ticks, err := startTicks(o.PID)
	if os.IsNotExist(err) {
		return false
	}
	return err != nil || ticks == o.StartTicks
}

// String is the owner as one label value, see ParseOwner.
func (o Owner) String() string {
	return fmt.Sprintf("%s:%d:%d", o.BootID, o.PID, o.StartTicks)
}

// ParseOwner reads what String wrote.
func ParseOwner(s string) (Owner, error) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return Owner{}, fmt.Errorf("owner %q: want BOOT_ID:PID:START", s)
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return Owner{}, fmt.Errorf("owner %q: pid: %w", s, err)
	}
	ticks, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return Owner{}, fmt.Errorf("owner %q: start time: %w", s, err)
	}
	return Owner{BootID: parts[0], PID: pid, StartTicks: ticks}, nil
}
