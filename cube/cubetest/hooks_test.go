package cubetest

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/cube"
)

func TestMisspells(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]string{
		"ObsPostprocess": "PostprocessObs", "PostProcessObs": "PostprocessObs", "PostprocessObservation": "",
		"GetPrivilegedInfo": "PrivilegedInfo", "PriviledgedInfo": "PrivilegedInfo",
		"FilterAction": "FilterActions", "ActionsFilter": "FilterActions",
		"Finish": "Finished", "IsFinished": "Finished", "FINISHED": "",
		"GetStatus": "Status", "Statuses": "Status", "ToolBuild": "BuildTool", "Closes": "Close",
		"Clone": "", "Score": "", "Word": "", "State": "", "Solve": "", "Answer": "", "Evaluation": "", "Tools": "",
	} {
		found := ""
		for _, h := range []string{"FilterActions", "PostprocessObs", "Finished", "PrivilegedInfo", "Status", "BuildTool", "Close", "EvaluateValue"} {
			if misspells(name, h) {
				found = h
			}
		}
		if found != hook {
			t.Errorf("%s is taken for %q, want %q", name, found, hook)
		}
	}
}

type oddProblem struct {
	cube.TaskBase[cube.Metadata]
}

func (*oddProblem) Reset(context.Context) (*cube.Observation, cube.Info, error) { return nil, nil, nil }
func (*oddProblem) Evaluate(context.Context, *cube.Observation) (float64, cube.Info, error) {
	return 0, nil, nil
}

type finish struct{ oddProblem }

func (*finish) Finish() bool { return true }

type signature struct{ oddProblem }

func (*signature) Finished() bool { return true }

// helper has both a hook and a method that is nearly called the same.
type helper struct{ oddProblem }

func (*helper) Finish() bool                                              { return true }
func (*helper) Finished(context.Context, *cube.Observation) (bool, error) { return true, nil }
func (*helper) Word() string                                              { return "" }
func (*helper) Validate() error                                           { return nil }

type oddTaskConfig struct {
	cube.TaskConfigBase[cube.Metadata]
}

func (*oddTaskConfig) TypeName() string { return "odd.TaskConfig" }
func (*oddTaskConfig) Make(context.Context, cube.RuntimeContext, cube.ContainerBackend) (*cube.Task, error) {
	return nil, nil
}

type verifyWithContext struct{ oddTaskConfig }

func (*verifyWithContext) VerifyInstalled(context.Context) error { return nil }

type verifyInstall struct{ oddTaskConfig }

func (*verifyInstall) VerifyInstall() error { return nil }

type oddConfig struct{ cube.BenchmarkConfigBase }

func (*oddConfig) TypeName() string            { return "odd.Config" }
func (*oddConfig) Definition() cube.Definition { return cube.Definition{} }

type installWithoutCache struct{ oddConfig }

func (*installWithoutCache) Install(context.Context) error { return nil }

type configureTasks struct{ oddConfig }

func (*configureTasks) ConfigureTasks(iter.Seq[cube.TaskConfig]) {}

type halfParametrised struct{ oddConfig }

func (*halfParametrised) Define() (cube.Definition, error) { return cube.Definition{}, nil }

type installer struct{ oddConfig }

func (*installer) Install(context.Context, *cube.Cache) error   { return nil }
func (*installer) Uninstall(context.Context, *cube.Cache) error { return nil }

func TestHooksThatAreNeverCalled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"problem, name":           {problemHooks(&finish{}), "method Finish of *cubetest.finish is never called: is it meant to be Finished of cube.Finisher?"},
		"problem, signature":      {problemHooks(&signature{}), "method Finished of *cubetest.signature does not have the signature of cube.Finisher"},
		"problem with the hook":   {problemHooks(&helper{}), ""},
		"problem without hooks":   {problemHooks(&oddProblem{}), ""},
		"task config, signature":  {taskConfigHooks(&verifyWithContext{}), "VerifyInstalled of *cubetest.verifyWithContext does not have the signature"},
		"task config, name":       {taskConfigHooks(&verifyInstall{}), "is it meant to be VerifyInstalled"},
		"task config":             {taskConfigHooks(&oddTaskConfig{}), ""},
		"config, signature":       {configHooks(&installWithoutCache{}), "Install of *cubetest.installWithoutCache does not have the signature of cube.Installer"},
		"config, name":            {configHooks(&configureTasks{}), "is it meant to be ConfigureTask"},
		"config, half":            {configHooks(&halfParametrised{}), "Define of *cubetest.halfParametrised does not have the signature of cube.Parametrised"},
		"config":                  {configHooks(&installer{}), ""},
		"composite with bad part": {configHooks(cube.NewComposite("c", &installer{}, &installWithoutCache{})), "Install of *cubetest.installWithoutCache"},
	} {
		switch {
		case c.want == "" && c.err != nil:
			t.Errorf("%s: %v", name, c.err)
		case c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", name, c.err, c.want)
		}
	}
}

func TestCheckAction(t *testing.T) {
	t.Parallel()
	schema := cube.Pairs("type", "object", "properties", cube.Pairs())
	for name, ok := range map[string]bool{"say": true, "say-it_2": true, "": false, "say it": false, "say\n": false, strings.Repeat("s", 65): false, cube.StopName: false} {
		if err := checkAction(cube.ActionSchema{Name: name, Description: "d", Parameters: schema}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
