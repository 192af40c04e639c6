package builtin

import (
	"fmt"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

func scriptedEntry() agent.Entry {
	return agent.Entry{
		Name:    "scripted",
		Summary: "plays the actions of a JSON file, on tasks of cubes and, through CUBE's layer, of Harbor",
		Settings: []agent.Setting{
			{Name: "actions", Summary: "the JSON file with the list of actions, or the list itself", Required: true},
		},
		Check: func(c agent.Config) error {
			_, err := scriptOf(c)
			return err
		},
		Stepped: func(c agent.Config) (cube.Agent, error) {
			actions, err := scriptOf(c)
			return fixed{cube.Script(actions...), c.Name}, err
		},
	}
}

// maxScript bounds the file of a script, in bytes.
const maxScript = 64 << 20

// scriptOf reads the actions of agent scripted.
func scriptOf(c agent.Config) ([]cube.Action, error) {
	v := c.Setting("actions")
	where := "setting actions"
	if path, ok := v.(value.Str); ok {
		where = fmt.Sprintf("%q", string(path))
		data, err := bounded.ReadFile(string(path), maxScript)
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
