package trial

import (
	"fmt"
	"io"
	"os"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// ScriptedAgent plays the actions of a list, its setting "actions": a JSON file
// or the list itself. It works on tasks through CUBE's layer.
const ScriptedAgent = "scripted"

// maxScript bounds the file of a script, in bytes.
const maxScript = 64 << 20

// newCubeAgent builds the agent of a cube task.
func (a *attempt) newCubeAgent(source *CubeTask) (cube.Agent, agent.Info, error) {
	name := jobdir.DefaultAgent
	if a.cfg.Agent.Name != nil {
		name = *a.cfg.Agent.Name
	}
	info := agent.Info{Name: name, Version: "1.0.0"}
	switch name {
	case ScriptedAgent:
		actions, err := ScriptedActions(a.cfg.Agent)
		return cube.Script(actions...), info, err
	case "nop":
		return cube.Script(), info, nil
	case "oracle":
		if source.Oracle == nil {
			return nil, info, exception.Errorf(exception.ValueError, "nobody knows the solution of task %s", source.Name)
		}
		return source.Oracle, info, nil
	}
	return nil, info, exception.Errorf(exception.ValueError, "Agent name %s is not valid for a cube. Valid agent names: oracle, nop, scripted", name)
}

// ScriptedActions reads the actions of agent scripted.
func ScriptedActions(cfg jobdir.AgentConfig) ([]cube.Action, error) {
	var v value.Value
	if cfg.Kwargs != nil {
		v, _ = cfg.Kwargs.Get("actions")
	}
	where := "setting actions"
	if path, ok := v.(value.Str); ok {
		where = fmt.Sprintf("%q", string(path))
		data, err := readScript(string(path))
		if err != nil {
			return nil, exception.Errorf(exception.ValueError, "agent scripted: reading the actions: %s", err)
		}
		if v, err = value.Decode(data); err != nil {
			return nil, exception.Errorf(exception.ValueError, "agent scripted: reading the actions in %s: %s", where, err)
		}
	}
	list, ok := v.(value.List)
	if !ok {
		return nil, exception.Errorf(exception.ValueError, "agent scripted: %s holds no list of actions; give a JSON file with --ak actions=FILE", where)
	}
	reg := cube.NewRegistry(cube.Options{})
	actions := make([]cube.Action, 0, len(list))
	for i, item := range list {
		action, err := cube.FromValue[*cube.Action](reg, item)
		if err != nil {
			return nil, exception.Errorf(exception.ValueError, "agent scripted: action %d of %s: %s", i, where, err)
		}
		actions = append(actions, *action)
	}
	return actions, nil
}

func readScript(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err == nil && len(data) > maxScript {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxScript)
	}
	return data, err
}
