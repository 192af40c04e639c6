package builtin_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

func TestCommandIsToldOfServersAndSkills(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		servers []agent.MCPServer
		skills  string
		want    map[string]string
	}{
		{"neither", nil, "", map[string]string{}},
		{"both", []agent.MCPServer{{Name: "a", Transport: "sse", URL: "http://a"}}, "/harbor/skills",
			map[string]string{"PROCTOR_MCP_CONFIG": "/proctor/mcp.json", "PROCTOR_SKILLS_DIR": "/harbor/skills"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := fake.New(fake.Config{Dir: t.TempDir()})
			defer fake.Verify(t, b)
			sb, err := b.Create(t.Context(), sandbox.Spec{Name: "x"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = sb.Destroy(t.Context()) }()
			a, err := newAgent("command", "install", "get it", "run", "work")
			if err != nil {
				t.Fatal(err)
			}
			env := agent.Env{Sandbox: sb, LogDir: t.TempDir(), OutputLimit: 1 << 10, MCPServers: c.servers, SkillsDir: c.skills}
			if err := a.Setup(t.Context(), env); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Run(t.Context(), env, agent.Task{Instruction: "do"}); err != nil {
				t.Fatal(err)
			}
			for _, call := range b.Calls() {
				if call.Op != fake.OpExec {
					continue
				}
				got := map[string]string{}
				for _, kv := range call.Command.Env {
					if name, value, _ := strings.Cut(kv, "="); name == "PROCTOR_MCP_CONFIG" || name == "PROCTOR_SKILLS_DIR" {
						got[name] = value
					}
				}
				if !maps.Equal(got, c.want) {
					t.Errorf("%s is told %v, want %v", call.Command.Shell, got, c.want)
				}
			}
			config, err := b.Sandboxes()[0].ReadFile("/proctor/mcp.json")
			if (err == nil) != (c.servers != nil) || (err == nil && string(config) != string(agent.AppendMCPConfig(nil, c.servers))) {
				t.Errorf("the file of servers: %q, %v", config, err)
			}
		})
	}
}
