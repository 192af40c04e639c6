package job

import (
	"slices"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// HostVariable is a variable of this machine that a task's template names.
type HostVariable struct {
	Name  string
	Phase string // "environment", "verifier" or "solution"
	Task  string
	// Set: the host has it. Missing: it has not, and there is no default.
	Set, Missing bool
}

// TaskVariable is a template in a task that takes its value from the host.
type TaskVariable struct {
	Task       string `json:"task"`
	Phase      string `json:"phase"` // "environment", "verifier" or "solution"
	Name       string `json:"name"`
	HasDefault bool   `json:"has_default"`
}

// HostVariables lists the variables that the job's tasks would load from the
// host, each name and phase once (Harbor job format, section 7.1).
func (p *Prepared) HostVariables(lookup harbor.Lookup) []HostVariable {
	var list []HostVariable
	for _, v := range p.Variables {
		if slices.ContainsFunc(list, func(h HostVariable) bool { return h.Name == v.Name && h.Phase == v.Phase }) {
			continue
		}
		_, set := lookup(v.Name)
		list = append(list, HostVariable{
			Name: v.Name, Phase: v.Phase, Task: v.Task,
			Set: set, Missing: !set && !v.HasDefault,
		})
	}
	return list
}

// variablesOf finds the templates of a task. Keys that the job sets itself do
// not count, and the solution's only where an oracle runs.
func variablesOf(task *harbor.Task, cfg jobdir.Config) []TaskVariable {
	var list []TaskVariable
	add := func(phase string, env harbor.Env, set func(string) bool) {
		for name, value := range env.All() {
			if t, ok := harbor.ParseTemplate(value); ok && !set(name) {
				list = append(list, TaskVariable{Task: task.Name, Phase: phase, Name: t.Name, HasDefault: t.HasDefault})
			}
		}
	}
	inJob := func(env jobdir.Env) func(string) bool {
		return func(name string) bool { _, ok := env.Get(name); return ok }
	}
	add("environment", task.Config.Environment.Env, inJob(cfg.Environment.Env))
	if !cfg.Verifier.Disable {
		add("verifier", task.Config.Verifier.Env, inJob(cfg.Verifier.Env))
	}
	isOracle := func(a jobdir.AgentConfig) bool { return a.Name != nil && *a.Name == jobdir.DefaultAgent }
	if slices.ContainsFunc(cfg.Agents, isOracle) {
		add("solution", task.Config.Solution.Env, func(string) bool { return false })
	}
	return list
}
