package ownrunner

import "github.com/proctor-run/proctor/internal/machine"

// Cost is what a trial of a task needs. Nothing, or not more than 0, is the
// default.
type Cost struct {
	CPUs      float64
	MemoryMiB int64
}

// Machine is what trials run on.
type Machine struct {
	CPUs     int // that the process may use
	TotalKiB int64
}

// Concurrency returns how many trials run at once: as many as there is room for
// if each needs the most that any task needs, at least 1 and at most one per
// CPU. limit, if not nil, bounds it further.
func Concurrency(tasks []Cost, m Machine, limit *int) int {
	cpus, memory := 0.0, int64(0)
	for _, t := range tasks {
		cpus, memory = max(cpus, orDefault(t.CPUs, machine.TaskCPUs)), max(memory, orDefault(t.MemoryMiB, machine.TaskMemoryMiB))
	}
	cpus, memory = orDefault(cpus, machine.TaskCPUs), orDefault(memory, machine.TaskMemoryMiB)
	processors := max(m.CPUs, 1)
	// More than one trial per CPU is never run, which also bounds the quotient.
	byCPU := int(min(float64(processors)/cpus, float64(processors)))
	byMemory := int(min(m.TotalKiB/1024/memory, int64(processors)))
	n := max(1, min(byCPU, byMemory))
	if limit != nil {
		n = max(1, min(n, *limit))
	}
	return n
}

func orDefault[T float64 | int64](x, fallback T) T {
	if x > 0 {
		return x
	}
	return fallback
}
