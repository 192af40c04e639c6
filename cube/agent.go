package cube

import "context"

// Agent plays a task: it is shown what the last step brought and what can be
// done, and answers with what it does next. There is no other kind of agent for
// tasks that are stepped: debug agents of cubes, built-in agents and those of a
// model are all this.
type Agent interface {
	// Act chooses the actions of the next turn; one [Task.Step] executes them in
	// order. No action at all means that the agent has nothing more to do: whoever
	// drives the episode has the task evaluated, once, with what was seen last
	// (CUBE, section 10.6). Only an agent that takes the action [Stop] is scored on
	// the text that says so.
	//
	// obs is the first observation or that of the last step. actions is what can
	// be done now, and has [StopAction] where the driver offers it.
	Act(ctx context.Context, obs *Observation, actions []ActionSchema) ([]Action, error)
}

// AgentFunc is an [Agent] made of a function.
type AgentFunc func(ctx context.Context, obs *Observation, actions []ActionSchema) ([]Action, error)

// Act calls f.
func (f AgentFunc) Act(ctx context.Context, obs *Observation, actions []ActionSchema) ([]Action, error) {
	return f(ctx, obs, actions)
}

// Script returns an agent that plays the actions in order, one in each turn, and
// then stops. It is for one episode.
func Script(actions ...Action) Agent {
	next := 0
	return AgentFunc(func(context.Context, *Observation, []ActionSchema) ([]Action, error) {
		if next >= len(actions) {
			return nil, nil
		}
		next++
		return actions[next-1 : next : next], nil
	})
}
