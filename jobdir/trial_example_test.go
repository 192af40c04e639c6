package jobdir_test

import (
	"fmt"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/jobdir"
)

// A configuration is read with its defaults, and written with credentials
// redacted.
func ExampleParseConfig() {
	c, report, err := jobdir.ParseTrialConfig([]byte(`{
		"task": {"path": "./tasks//hello/"},
		"agent": {"name": "command", "env": {"API_KEY": "sk-0123456789"}},
		"colour": "red"
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(*c.Task.Path, *c.Agent.Name, c.TimeoutMultiplier)
	fmt.Println("unknown:", report.Unknown[0])
	fmt.Println(c.Agent.Env)
	for name, value := range c.Agent.Env.All() {
		fmt.Println(name, "is written as", harbor.RedactEnv(name, value, nil))
	}
	// Output:
	// tasks/hello command 1
	// unknown: colour
	// env(API_KEY)
	// API_KEY is written as sk-0****789
}

func ExampleSplitModel() {
	m := jobdir.SplitModel("openrouter/meta/llama")
	fmt.Println(*m.Provider, m.Name)
	// Output: openrouter meta/llama
}
