// Package ownkernel holds what the guest and who starts it agree on for sandboxes that
// have a kernel of their own, which is gVisor.
//
// Such a sandbox is bounded twice. The control groups of the machine hold gVisor itself
// with all that is in it; they know of no process of the sandbox, and if they run out of
// memory the whole sandbox ends. Inside, gVisor's kernel counts processes, but enforces no
// other limit and lets nobody set one from outside. So the guest sets the limits there when
// it starts, and ends commands when memory runs out.
package ownkernel

import (
	"encoding/json"
	"fmt"
)

// Mode is the first argument of the guest there, Limits as text the second one.
const Mode = "own-kernel"

// Placeholder keeps "/tmp" from being empty when the sandbox starts: gVisor would
// mount a tmpfs there, and what is written to it would count as memory. The guest
// removes it.
const Placeholder = "/tmp/.proctor-start"

const (
	// TaskMemory is about what gVisor needs of the machine for each task of the sandbox,
	// in bytes, beside the task's own memory.
	TaskMemory = 448 << 10
	// Tasks is for how many it is given that; for others it is taken from the sandbox's.
	Tasks = 1024
)

// Limits of a sandbox; 0 for none.
type Limits struct {
	PIDs   int64 `json:"pids,omitempty"`
	Memory int64 `json:"memory,omitempty"` // bytes
	// CPUQuota is the time of processors in each CPUPeriod, in microseconds.
	CPUQuota  int64 `json:"cpu_quota,omitempty"`
	CPUPeriod int64 `json:"cpu_period,omitempty"`
}

// String is the argument of the guest.
func (l Limits) String() string {
	text, err := json.Marshal(l)
	if err != nil {
		panic(fmt.Sprintf("encoding numbers: %v", err))
	}
	return string(text)
}

// ParseLimits reads an argument of the guest.
func ParseLimits(text string) (Limits, error) {
	var l Limits
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return Limits{}, fmt.Errorf("reading the limits %q: %w", text, err)
	}
	return l, nil
}
