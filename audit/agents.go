package audit

import (
	"fmt"

	"github.com/proctor-run/proctor/jobdir"
)

// checkAgents compares the code that trials of one agent ran with: a score of two versions
// under one name is a score of neither. Each trial notes its own, see
// [jobdir.Notes.AgentDigest].
func (c *check) checkAgents() {
	first := map[string]*trialFiles{}
	for i := range c.trials {
		t := &c.trials[i]
		if t.result == nil || t.notes == nil || t.notes.AgentDigest == "" {
			continue
		}
		a := t.result.Config.Agent
		key := jobdir.TrialConfig{Agent: a}.Identity(nil)
		other := first[key]
		if other == nil {
			first[key] = t
			continue
		}
		if t.notes.AgentDigest != other.notes.AgentDigest {
			c.find(Finding{Kind: Config, Trial: t.name, File: slashed(t.name, jobdir.NotesFile), Message: fmt.Sprintf(
				"ran with other code of agent %q than trial %q (%s, not %s): it was changed in between",
				agentText(a), other.name, t.notes.AgentDigest, other.notes.AgentDigest)})
		}
	}
}
