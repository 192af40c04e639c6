package trial

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/internal/clock"
	"github.com/proctor-run/proctor/procid"
)

// WithDefaults returns a copy of the runner in which the fields that may be left
// out are set: Lookup, Now and Owner. Run does so itself; it is for those who
// need the same values besides. The error is that of a runner without agents, or of
// a process that cannot be identified.
func (r *Runner) WithDefaults() (*Runner, error) {
	if len(r.Agents) == 0 {
		return nil, errors.New("trial.Runner.Agents is not set; agents.All of package agent/agents lists those that come with proctor")
	}
	own := *r
	own.Now = clock.Or(r.Now)
	if own.Lookup == nil {
		own.Lookup = func(string) (string, bool) { return "", false }
	}
	if own.Owner == (procid.ID{}) {
		self, err := procid.Self()
		if err != nil {
			return nil, fmt.Errorf("identifying this process: %w", err)
		}
		own.Owner = self
	}
	return &own, nil
}
