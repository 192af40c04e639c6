package job

import (
	"errors"

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
