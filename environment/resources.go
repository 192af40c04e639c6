package environment

import (
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// resources applies overrides and policies (sections 4.1 and 5.8).
func (p *Planner) resources(table *harbor.Environment) (sandbox.Resources, error) {
	cpus, err := p.limited("CPU", p.CPUPolicy, overridden(p.OverrideCPUs, table.CPUs), p.Can.CPULimit)
	if err != nil {
		return sandbox.Resources{}, err
	}
	memory, err := p.limited("Memory", p.MemoryPolicy, overridden(p.OverrideMemoryMB, table.MemoryMB), p.Can.MemoryLimit)
	if err != nil {
		return sandbox.Resources{}, err
	}
	var storage int64
	if p.Can.StorageLimit { // otherwise it is the job's to say so, once
		storage = max(amount(overridden(p.OverrideStorageMB, table.StorageMB)), 0)
	}
	gpus := overridden(p.OverrideGPUs, p.Task.Config.Environment.GPUs)
	return sandbox.Resources{CPUs: float64(cpus), MemoryMB: memory, StorageMB: storage, GPUs: int(amount(gpus))}, nil
}

func overridden(n *int, task *value.Int) *value.Int {
	if n != nil {
		return new(value.NewInt(int64(*n)))
	}
	return task
}

// amount reads a resource number; none and what is beyond any machine count as
// 0 and as very many.
func amount(n *value.Int) int64 {
	const veryMany = 1 << 40
	return value.Clamp(n, veryMany)
}

// inSentence spells a resource that begins a sentence elsewhere.
func inSentence(what string) string {
	if what == "Memory" {
		return "memory"
	}
	return what
}

// limited returns the limit that a policy makes of a value. Under policy auto a
// backend that cannot enforce it only warns.
func (p *Planner) limited(what, policy string, value *value.Int, enforced bool) (int64, error) {
	switch policy {
	case "ignore":
		return 0, nil
	case "request", "guarantee":
		return 0, exception.Errorf(exception.ValueError, "%s environment does not support %s resource requests.", p.Backend, inSentence(what))
	case "limit":
		if value == nil {
			return 0, exception.Errorf(exception.ValueError, "%s resource mode 'limit' requires a task value or numeric override.", what)
		}
		if !enforced {
			return 0, exception.Errorf(exception.ValueError, "%s environment does not support %s resource limits.", p.Backend, inSentence(what))
		}
	}
	if value != nil && amount(value) > 0 && !enforced {
		if p.Warn != nil {
			p.Warn("the %s limit of %s is not enforced in environment %s", what, value, p.Backend)
		}
		return 0, nil
	}
	return max(amount(value), 0), nil
}
