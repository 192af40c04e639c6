// Package machine says what this machine has for work.
package machine

import (
	"math"
	"os"
	"runtime"

	"github.com/proctor-run/proctor/internal/procfs"
)

// What a task needs that does not say.
const (
	TaskCPUs      = 1
	TaskMemoryMiB = 2048
)

// CPUs is how many processors this process may use.
func CPUs() int { return runtime.NumCPU() }

// MemoryKiB is the memory of the machine. Where it is not known it bounds nothing.
func MemoryKiB() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return math.MaxInt64
	}
	kib, err := procfs.ParseMemTotal(text)
	if err != nil {
		return math.MaxInt64
	}
	return kib
}
