// Package agents lists the agents that come with proctor, for the programs that run
// them.
package agents

import (
	"slices"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/builtin"
	"github.com/proctor-run/proctor/agent/external"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/terminus"
	"github.com/proctor-run/proctor/agent/tools"
)

// All returns the agents that come with proctor. The list is the caller's, who may
// append entries of its own.
func All() agent.Registry {
	return slices.Concat(builtin.Agents(), agent.Registry{tools.Entry(), terminus.Entry()}, external.Agents(), installed.Agents())
}
