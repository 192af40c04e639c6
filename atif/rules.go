package atif

import (
	"errors"
	"fmt"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// checkPart is rule 1 of section 6.3.
func checkPart(p Part) (Part, error) {
	present := map[string]bool{"text": p.Text != nil, "source": p.Source != nil}
	want, not := "text", "source"
	if p.Type == ImagePart {
		want, not = not, want
	}
	if !present[want] {
		return p, fmt.Errorf("'%s' field is required when type='%s'", want, p.Type)
	}
	if present[not] {
		return p, fmt.Errorf("'%s' field is not allowed when type='%s'", not, p.Type)
	}
	return p, nil
}

// checkTimestamp is rule 2.
func checkTimestamp(s string) (string, error) {
	if err := checkISO(strings.ReplaceAll(s, "Z", "+00:00")); err != nil {
		return s, fmt.Errorf("Invalid ISO 8601 timestamp: %w", err) //nolint:staticcheck // the reference's words
	}
	return s, nil
}

// checkAgentOnly is rule 3: members that only steps of the agent have.
func checkAgentOnly(s numberedStep) (numberedStep, error) {
	if s.Source == Agent {
		return s, nil
	}
	for _, m := range []struct {
		name    string
		present bool
	}{
		{"model_name", s.ModelName != nil},
		{"reasoning_effort", s.ReasoningEffort != nil},
		{"reasoning_content", s.ReasoningContent != nil},
		{"tool_calls", s.ToolCalls != nil},
		{"metrics", s.Metrics != nil},
	} {
		if m.present {
			//lint:ignore ST1005 the reference's words
			return s, fmt.Errorf("Field '%s' is only applicable when source is 'agent', but source is '%s'", m.name, s.Source) //nolint:staticcheck // the reference's words
		}
	}
	return s, nil
}

// checkWithoutCalls is rule 4: a step that took no model call has nothing that
// only a call gives.
func checkWithoutCalls(s numberedStep) (numberedStep, error) {
	if s.Source != Agent || s.LLMCallCount == nil || s.LLMCallCount.Sign() != 0 {
		return s, nil
	}
	name := ""
	switch {
	case s.Metrics != nil:
		name = "metrics"
	case s.ReasoningContent != nil:
		name = "reasoning_content"
	default:
		return s, nil
	}
	//lint:ignore ST1005 the reference's words
	return s, fmt.Errorf("Field '%s' must be absent when llm_call_count is 0 (deterministic dispatch)", name) //nolint:staticcheck // the reference's words
}

// checkRef is rule 5.
func checkRef(r SubagentRef) (SubagentRef, error) {
	if r.TrajectoryID == nil && r.TrajectoryPath == nil {
		return r, errors.New("SubagentTrajectoryRef must be resolvable: set 'trajectory_id' or 'trajectory_path'")
	}
	return r, nil
}

// numberSteps is rule 6: the numbers are 1, 2, 3 and so on, here from the first on.
func numberSteps(steps []Step, numbers []value.Int, first int) error {
	for i, n := range numbers {
		want := first + i
		if n.Cmp(value.NewInt(int64(want))) != 0 {
			return fmt.Errorf("steps[%d].step_id: expected %d (sequential from 1), got %s", want-1, want, n)
		}
		steps[i].ID = want
	}
	return nil
}

// checkTrajectory is rules 7 to 9.
func checkTrajectory(t *Trajectory) error {
	seen := map[string]bool{}
	for i := range t.Subagents {
		id := t.Subagents[i].TrajectoryID
		if id == nil {
			return fmt.Errorf("subagent_trajectories[%d].trajectory_id is required for embedded subagents", i)
		}
		if seen[*id] {
			return fmt.Errorf("subagent_trajectories[%d].trajectory_id '%s' is not unique among the embedded subagents", i, *id)
		}
		seen[*id] = true
	}
	for i := range t.Steps {
		if err := checkSources(&t.Steps[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkSources is rule 9: results name calls of their own step.
func checkSources(s *Step) error {
	if s.Observation == nil {
		return nil
	}
	calls := make(map[string]bool, len(s.ToolCalls))
	for _, c := range s.ToolCalls {
		calls[c.ID] = true
	}
	for _, r := range s.Observation.Results {
		if r.SourceCallID != nil && !calls[*r.SourceCallID] {
			return fmt.Errorf("Observation result references source_call_id '%s' which is not found in step %d's tool_calls", *r.SourceCallID, s.ID) //nolint:staticcheck // the reference's words
		}
	}
	return nil
}

// ValidTimestamp reports whether a step may have this timestamp (rule 2).
func ValidTimestamp(s string) bool {
	_, err := checkTimestamp(s)
	return err == nil
}
