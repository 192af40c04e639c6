// Package procid identifies processes beyond their own life: a pid is given to
// another process later and means nothing after a boot. What a process makes
// outside itself carries its ID, so that another process can tell leftovers from
// what is in use.
package procid

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ID identifies one process on one machine.
type ID struct {
	// BootID is the kernel's boot id.
	BootID string `json:"boot_id"`
	// PID and StartTicks (field 22 of /proc/PID/stat) name one process of a boot.
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
}

// Self identifies the calling process.
func Self() (ID, error) {
	boot, err := bootID()
	if err != nil {
		return ID{}, err
	}
	pid := os.Getpid()
	ticks, err := startTicks(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{BootID: boot, PID: pid, StartTicks: ticks}, nil
}

// Alive reports whether the process is still running on this machine. One of
// another boot is dead; where it cannot be told, the process counts as alive, so
// that nothing in use is ever removed.
func (id ID) Alive() bool {
	boot, err := bootID()
	if err != nil {
		return true
	}
	if boot != id.BootID {
		return false
	}
	ticks, err := startTicks(id.PID)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err != nil || ticks == id.StartTicks
}

// String is the ID as one label value, BOOT_ID:PID:START; see Parse.
func (id ID) String() string {
	return fmt.Sprintf("%s:%d:%d", id.BootID, id.PID, id.StartTicks)
}

// Parse reads what String wrote.
func Parse(s string) (ID, error) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return ID{}, fmt.Errorf("owner %q: want BOOT_ID:PID:START", s)
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return ID{}, fmt.Errorf("owner %q: pid: %w", s, err)
	}
	ticks, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return ID{}, fmt.Errorf("owner %q: start time: %w", s, err)
	}
	return ID{BootID: parts[0], PID: pid, StartTicks: ticks}, nil
}
