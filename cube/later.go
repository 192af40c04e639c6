package cube

import (
	"fmt"
	"slices"

	"github.com/proctor-run/proctor/cube/internal/params"
)

// What a step does with the stop action and with actions that fail, by the rules
// of the version that this package implements and by those of the later line
// ([TaskCommon], LaterRules; CUBE server, dialect B).

// stop ends the task, unless the action has arguments and the later rules hold:
// then it is an action whose arguments do not fit.
func (t *Task) stop(out *EnvironmentOutput, a Action) bool {
	if t.c.LaterRules && a.Arguments.Len() > 0 {
		for name := range a.Arguments.All() {
			out.Obs.Contents = append(out.Obs.Contents, answer(a, invalidArguments(StopName, params.Unexpected(name), nil)))
			break
		}
		return false
	}
	out.Obs.Contents = append(out.Obs.Contents, Text(stopText))
	out.Done = true
	return true
}

// failed notes an action that failed. It ends the task, unless the later rules
// hold: then the agent is told.
func (t *Task) failed(out *EnvironmentOutput, a Action, r Result) {
	switch {
	case !t.c.LaterRules:
		out.Error = r.Err
		out.Done = true
	case r.invalid != "":
		out.Obs.Contents = append(out.Obs.Contents, answer(a, r.invalid))
	default:
		out.Error = r.Err
		out.Obs.Contents = append(out.Obs.Contents, Text(fmt.Sprintf("Action failed — %s: %s", r.Err.ErrorType, r.Err.ExceptionStr)))
	}
}

// answer is text that answers an action.
func answer(a Action, s string) Content {
	content := Text(s)
	content.ToolCallID = a.ID
	return content
}

// invalidArguments is what the later line tells agents whose arguments do not
// fit.
func invalidArguments(action, why string, expected []string) string {
	return fmt.Sprintf("Invalid arguments for %s: %s. Expected parameters: %s.", action, why, quoteList(expected))
}

// withStop adds the stop action where a tool that has it lists it: declared
// actions are in order of their names.
func withStop(actions []ActionSchema) []ActionSchema {
	if slices.ContainsFunc(actions, func(a ActionSchema) bool { return a.Name == StopName }) {
		return actions
	}
	at := 0
	for at < len(actions) && actions[at].Name < StopName && (at == 0 || actions[at-1].Name < actions[at].Name) {
		at++
	}
	stop := StopAction()
	stop.Parameters = Pairs("type", "object", "properties", Pairs())
	return slices.Insert(slices.Clone(actions), at, stop)
}
