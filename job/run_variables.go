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

type taskVariables struct {
	task, phase string
	template    harbor.Template
}

// HostVariables lists the variables that the job's tasks would load from the
// host, each name and phase once (Harbor job format, section 7.1).
func (p *Prepared) HostVariables(host jobdir.HostEnv) []HostVariable {
	var list []HostVariable
	for _, v := range p.variables {
		if slices.ContainsFunc(list, func(h HostVariable) bool { return h.Name == v.template.Name && h.Phase == v.phase }) {
			continue
		}
		_, set := host(v.template.Name)
		list = append(list, HostVariable{
			Name: v.template.Name, Phase: v.phase, Task: v.task,
			Set: set, Missing: !set && !v.template.HasDefault,
		})
	}
	return list
}

// variablesOf finds the templates of a task. Keys that the job sets itself do
// not count, and the solution's only where an oracle runs.
func variablesOf(task *harbor.Task, cfg jobdir.Config) []taskVariables {
	var list []taskVariables
	add := func(phase string, env harbor.Env, set func(string) bool) {
		for name, value := range env.All() {
			if t, ok := harbor.ParseTemplate(value); ok && !set(name) {
				list = append(list, taskVariables{task: task.Name, phase: phase, template: t})
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
