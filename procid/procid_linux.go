package procid

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/proctor-run/proctor/internal/procfs"
)

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return strings.TrimSpace(string(id)), nil
}

// startTicks is the start of a process that runs. One that has ended and that its parent
// has not waited for is none any more: where the first process of a container reaps
// nobody, it stays so for good.
func startTicks(pid int) (uint64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	process, err := procfs.ParseStat(stat)
	if err != nil {
		return 0, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
	}
	if process.Ended() {
		return 0, fs.ErrNotExist
	}
	return process.Start, nil
}
