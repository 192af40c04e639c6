package builtin_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/builtin"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/value"
)

// config makes a configuration of alternating names and values of settings.
func config(name string, settings ...any) agent.Config {
	return agent.Config{Name: name, Settings: cube.Pairs(settings...)}
}

// newAgent makes a built-in agent that works in a sandbox.
func newAgent(name string, settings ...any) (agent.Agent, error) {
	c := config(name, settings...)
	e, err := builtin.Agents().Resolve(c, false)
	if err != nil {
		return nil, err
	}
	return e.Sandboxed(c)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	script := t.TempDir() + "/actions.json"
	if err := os.WriteFile(script, []byte(`[{"name": "bash"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name    string
		c       agent.Config
		stepped bool
		want    []string // parts of the error; none for a configuration that is fine
	}{
		{"oracle", config("oracle"), false, nil},
		{"oracle of a cube", config("oracle", "max_steps", 3), true, nil},
		{"command", config("command", "run", "true", "version", "1.10"), false, nil},
		{"scripted", config("scripted", "actions", script, "max_steps", 5), false, nil},
		{"mistyped name", config("orcale"), false, []string{`"orcale" is not an agent`, "did you mean oracle?", "oracle, nop, command, python, scripted"}},
		{"nothing near", config("mine"), false, []string{`"mine" is not an agent; choose from oracle`}},
		{"Harbor's", config("claude-code"), false, []string{"claude-code is an agent of Harbor that proctor does not have", "command"}},
		{"mistyped setting", config("command", "rum", "true", "run", "true"), false, []string{"agent command has no setting rum", "did you mean run?", "run, install, share_install, version"}},
		{"no settings", config("nop", "x", 1), false, []string{"agent nop has no setting x; it has none"}},
		{"nothing to run", config("command"), false, []string{"agent command: setting run is missing", "--ak run="}},
		{"blank command", config("command", "run", "  "), false, []string{"setting run is missing"}},
		{"no text", config("command", "run", true), false, []string{"setting run is True, want text"}},
		{"python for a cube", config("python", "dir", ".", "import", "m:C"), true, []string{"cannot play the tasks of a cube", "oracle, nop, command, scripted"}},
		{"command for a cube", config("command", "run", "true", "max_steps", 3, "sandbox_image", "some:1"), true, nil},
		{"an image for no sandbox", config("nop", "sandbox_image", "some:1"), true, []string{"agent nop has no setting sandbox_image"}},
		{"an image for a task that has one", config("command", "run", "x", "sandbox_image", "some:1"), false, []string{"sandbox_image is for tasks that are stepped"}},
		{"an image that is none", config("command", "run", "x", "sandbox_image", 3), true, []string{"sandbox_image is 3, want the reference of an image"}},
		{"no actions", config("scripted"), true, []string{"setting actions is missing"}},
		{"no such script", config("scripted", "actions", "/nowhere"), true, []string{"reading the actions"}},
		{"no list", config("scripted", "actions", cube.Pairs()), true, []string{"holds no list of actions"}},
		{"steps in a sandbox", config("oracle", "max_steps", 3), false, []string{"max_steps is for tasks that are stepped"}},
		{"steps of an agent that never steps", config("command", "run", "x", "max_steps", 3), false, []string{"max_steps is for tasks that are stepped"}},
		{"no steps", config("nop", "max_steps", 0), true, []string{"max_steps is 0, want a whole number from 1"}},
		{"steps that are text", config("nop", "max_steps", "many"), true, []string{"max_steps is 'many'"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := builtin.Agents().Check(c.c, c.stepped)
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("error %v, want parts %q", err, c.want)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q lacks %q", err, part)
				}
			}
		})
	}
}

// TestResolveIsLenient: a trial lets pass what Harbor lets pass.
func TestResolveIsLenient(t *testing.T) {
	t.Parallel()
	if _, err := builtin.Agents().Resolve(config("nop", "temperature", 1), false); err != nil {
		t.Errorf("unknown setting: %v", err)
	}
	_, err := builtin.Agents().Resolve(config("claude-code"), false)
	var typed interface{ ErrorType() string }
	if !errors.As(err, &typed) || typed.ErrorType() != "ValueError" || !strings.HasPrefix(err.Error(), "Agent name claude-code is not valid. Valid agent names: ") {
		t.Errorf("unknown agent: %v", err)
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	mine := agent.Entry{
		Name: "mine", Summary: "is mine", AnySetting: true,
		Stepped: func(agent.Config) (cube.Agent, error) { return cube.Script(), nil },
	}
	r := append(builtin.Agents(), mine, agent.Entry{Name: "nop", Summary: "another", Stepped: mine.Stepped})
	if got, want := r.Names(), []string{"oracle", "nop", "command", "python", "scripted", "mine"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	if e, _ := r.Find("nop"); e.Summary != "another" {
		t.Errorf("the first entry of a name counts: %q", e.Summary)
	}
	if err := r.Check(config("mine", "whatever", 1), false); err != nil {
		t.Error(err)
	}
	if err := builtin.Agents().Check(config("mine"), false); err == nil {
		t.Error("the list of another is known")
	}
}

func TestStepAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []agent.Config{
		config("nop"),
		config("scripted", "actions", value.List{cube.Pairs("name", "look")}),
		{Name: "oracle", Solver: cube.Script(cube.NewAction("look"))},
	} {
		e, err := builtin.Agents().Resolve(c, true)
		if err != nil {
			t.Fatal(err)
		}
		a, err := e.Stepped(c)
		if err != nil {
			t.Fatal(err)
		}
		var played []string
		for {
			actions, err := a.Act(context.Background(), &cube.Observation{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(actions) == 0 {
				break
			}
			played = append(played, actions[0].Name)
		}
		if want := c.Name != "nop"; (len(played) == 1) != want {
			t.Errorf("%s played %q", c.Name, played)
		}
		if info := a.(agent.Reporter).Info(); info.Name != c.Name || info.Version != "1.0.0" {
			t.Errorf("%s calls itself %+v", c.Name, info)
		}
	}
	if _, err := (agent.Config{}).MaxSteps(); err != nil {
		t.Error(err)
	}
	e, _ := builtin.Agents().Find("oracle")
	if _, err := e.Stepped(agent.Config{}); err == nil {
		t.Error("an oracle without a solution was made")
	}
}
