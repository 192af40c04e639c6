package trial_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// writeSkills makes directories of skills and returns the one above them.
func writeSkills(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSkillsAndServersReachTheAgent(t *testing.T) {
	t.Parallel()
	skills := writeSkills(t, map[string]string{
		"one/k/SKILL.md": "first", "one/other/SKILL.md": "other", "two/k/SKILL.md": "second", "two/k/data/x": "x",
	})
	const own = "[environment]\nskills_dir = \"/opt/skills\"\n"
	const servers = "[[environment.mcp_servers]]\nname = \"x\"\nurl = \"http://task\"\n[[environment.mcp_servers]]\nname = \"y\"\ntransport = \"stdio\"\ncommand = \"serve\"\n"
	for _, c := range []struct {
		name, toml string
		inputs     []string
		dir        string // PROCTOR_SKILLS_DIR
		uploaded   map[string]string
		exception  string
		message    string
	}{
		{name: "none", toml: ""},
		{name: "two roots with the same skill name", inputs: []string{"one", "two"}, dir: "/harbor/skills",
			uploaded: map[string]string{"/harbor/skills/k/SKILL.md": "second", "/harbor/skills/k/data/x": "x", "/harbor/skills/other/SKILL.md": "other"}},
		{name: "the task's directory", toml: own, inputs: []string{"one"}, dir: "/opt/skills",
			uploaded: map[string]string{"/opt/skills/k/SKILL.md": "first", "/opt/skills/baked/SKILL.md": "in the image"}},
		{name: "the task's directory alone", toml: own, dir: "/opt/skills",
			uploaded: map[string]string{"/opt/skills/baked/SKILL.md": "in the image"}},
		{name: "relative directory of the task", toml: "[environment]\nskills_dir = \"skills\"\n", inputs: []string{"one"},
			exception: "ValueError", message: "must be an absolute path"},
		{name: "missing", inputs: []string{"nowhere"}, exception: "FileNotFoundError", message: "Skill path does not exist: "},
		{name: "no skill", inputs: []string{"two/k/data"}, exception: "ValueError", message: "must be a skill directory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			agentsDir := ""
			b := newBench(t, goodTask().with("task.toml", c.toml+servers), fake.Config{
				Files: map[string]string{"/opt/skills/baked/SKILL.md": "in the image"},
				Rules: []fake.Rule{fake.On("work", func(_ context.Context, p *fake.Process) (int, error) {
					agentsDir = p.Env["PROCTOR_SKILLS_DIR"]
					config, err := p.Sandbox.ReadFile(p.Env["PROCTOR_MCP_CONFIG"])
					if err != nil || strings.Count(string(config), "http://") != 1 || !strings.Contains(string(config), "http://agent") || !strings.Contains(string(config), `"command": "serve"`) {
						t.Errorf("servers: %s, %v", config, err)
					}
					for path, want := range c.uploaded {
						if got, err := p.Sandbox.ReadFile(path); err != nil || string(got) != want {
							t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
						}
					}
					return 0, nil
				}), rewardRule("reward.txt", "1")},
			})
			commandAgent("work")(&b.cfg)
			b.cfg.Agent.MCPServers = []harbor.MCPServer{{Name: "x", Transport: "sse", URL: new("http://agent")}}
			for _, in := range c.inputs {
				b.cfg.Agent.Skills = append(b.cfg.Agent.Skills, filepath.Join(skills, in))
			}
			res := b.run(t)
			if exceptionType(res) != c.exception || agentsDir != c.dir {
				t.Errorf("exception %+v, directory %q; want %q, %q", res.ExceptionInfo, agentsDir, c.exception, c.dir)
			}
			if c.message != "" && !strings.Contains(res.ExceptionInfo.Message, c.message) {
				t.Errorf("message %q lacks %q", res.ExceptionInfo.Message, c.message)
			}
			opened := false
			for _, call := range b.backend.Calls() {
				opened = opened || len(call.Command.Argv) > 0 && call.Command.Argv[0] == "chmod" && call.Command.Argv[2] == "a+rX" && call.Command.User == "root"
			}
			if want := c.exception == "" && len(c.inputs) > 0; opened != want {
				t.Errorf("opened to every user: %v, want %v", opened, want)
			}
		})
	}
}

func TestSkillsThatCannotBeUploadedEndTheTrial(t *testing.T) {
	t.Parallel()
	b := newBench(t, goodTask(), fake.Config{Before: fake.FailAt(fake.OpUpload, 1, nil), Rules: []fake.Rule{rewardRule("reward.txt", "1")}})
	b.cfg.Agent.Skills = []string{writeSkills(t, map[string]string{"SKILL.md": ""})}
	res := b.run(t)
	if exceptionType(res) != "RuntimeError" || !strings.Contains(res.ExceptionInfo.Message, "uploading skill") || res.VerifierResult != nil {
		t.Errorf("exception %+v", res.ExceptionInfo)
	}
}
