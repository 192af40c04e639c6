package job

import (
	"errors"
	"slices"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
)

// CheckAgents reports what is wrong with the agents of a configuration, see
// [trial.CheckAgent]. known lists the agents that there are; cube tells that the tasks are those of a cube.
func CheckAgents(agents []jobdir.AgentConfig, known agent.Registry, cube bool) error {
	var errs []error
	for _, a := range agents {
		errs = append(errs, trial.CheckAgent(known, a, cube))
	}
	return errors.Join(dedup(errs)...)
}

// WorkApart reports whether one of the agents of a configuration plays the tasks of cubes
// from a sandbox of its own: the job needs sandboxes then, whatever its cubes need.
func WorkApart(agents []jobdir.AgentConfig, known agent.Registry) bool {
	return slices.ContainsFunc(agents, func(a jobdir.AgentConfig) bool {
		if a.Name == nil {
			return false
		}
		e, ok := known.Find(*a.Name)
		return ok && e.WorksApart(true)
	})
}
