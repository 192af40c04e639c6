package jobdir

import (
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/dump"
)

// Equal reports whether two configurations ask for the same trial: everything
// counts but the name and the job id (Harbor job format, section 1.7).
func (c TrialConfig) Equal(d TrialConfig, lookup harbor.Lookup) bool {
	return c.Identity(lookup) == d.Identity(lookup)
}

// Identity returns a text that configurations share exactly when they are
// [Config.Equal]. Values are taken as they would be written, so a redacted
// configuration has the identity of the one it was written from.
func (c TrialConfig) Identity(lookup harbor.Lookup) string {
	c.TrialName, c.JobID = "", nil
	return string(dump.AppendCanonical(nil, Encoder{Lookup: lookup}.Config(c)))
}
