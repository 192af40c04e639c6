package installed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// desk is a sandbox in which an agent works, with what it was told.
type desk struct {
	env    agent.Env
	sb     *fake.Sandbox
	ran    []sandbox.Command // all commands
	files  map[string]string // what was written by standard input, by the shell's word for the file
	warned []string
}

// newDesk makes a sandbox whose commands do what the rules say, and of which those that
// write files keep them.
func newDesk(t testing.TB, rules ...fake.Rule) *desk {
	t.Helper()
	d := &desk{files: map[string]string{}}
	see := fake.Rule{Match: func(cmd sandbox.Command) bool {
		d.ran = append(d.ran, cmd)
		return false
	}}
	write := fake.On(" && cat > ", func(_ context.Context, p *fake.Process) (int, error) {
		_, file, _ := strings.Cut(p.Command.Shell, " && cat > ")
		data, err := io.ReadAll(p.Stdin)
		d.files[file] = string(data)
		return 0, err
	})
	b := fake.New(fake.Config{Dir: t.TempDir(), Rules: append([]fake.Rule{see}, append(rules, write)...)})
	sb, err := b.Create(t.Context(), sandbox.Spec{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
		fake.Verify(t, b)
	})
	d.sb, _ = sb.(*fake.Sandbox)
	d.env = agent.Env{
		Sandbox: sb, User: "worker", LogDir: t.TempDir(), OutputLimit: 1 << 20,
		Warn: func(format string, args ...any) { d.warned = append(d.warned, fmt.Sprintf(format, args...)) },
	}
	return d
}

// shells are the scripts that ran, without the profile that they begin with.
func (d *desk) shells() []string {
	var all []string
	for _, cmd := range d.ran {
		all = append(all, strings.TrimPrefix(cmd.Shell, ". /proctor/agent.sh\n"))
	}
	return all
}

// model is a way to one with the key "k".
func model(apis ...llm.API) *agent.ModelAccess {
	cached := 1e-7
	return &agent.ModelAccess{
		APIs: apis, Key: "k",
		Addresses: func(api llm.API) (string, string) {
			return "http://h/" + string(api) + "/v1", "http://h/" + string(api)
		},
		Info: llm.Info{InputLimit: 1000, OutputLimit: 100, Prices: &llm.Prices{Input: 1e-6, Output: 2e-6, CacheRead: &cached}},
	}
}

// open makes an agent of a definition.
func open(t testing.TB, d *installed.Definition, c agent.Config) agent.Agent {
	t.Helper()
	c.Name = d.Name
	a, err := d.Entry().Sandboxed(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTemplates: every name and function of templates.
func TestTemplates(t *testing.T) {
	t.Parallel()
	settings := value.NewObject(2)
	settings.Set("effort", value.Str("a b"))
	settings.Set("version", value.Str("7"))
	for text, want := range map[string]string{
		"plain }} text":                      "plain }} text",
		"{{.Version}} {{.Prefix}} {{.Logs}}": "7 /opt/x /logs/agent",
		"{{.Model.Full}} {{.Model.Provider}} {{.Model.Name}} {{.Model.Last}}": "openrouter/openai/gpt openrouter openai/gpt gpt",
		"{{.API}} {{.URL}} {{.Root}} {{.Key}}":                                "responses http://h/responses/v1 http://h/responses k",
		"{{.Prices.Input}} {{.Prices.Output}} {{.Prices.CacheRead}}":          "1 2 0.1",
		"{{.Limits.Input}} {{.Limits.Output}}":                                "1000 100",
		"{{.Flags}}":                                                          "--effort 'a b' -c fast=true",
		"{{.Skills}}":                                                         "/skills dir",
		"{{range .MCP}}{{.Name}} {{.Transport}} {{.URL}}{{.Command}} {{.Args}};{{end}}": "a stdio c [x y];b sse http://s [];",
		`{{setting "effort"}}|{{setting "none"}}|{{setting "version"}}`:                 "a b||",
		"{{json .Key}} {{json .Limits.Input}}":                                          `"k" 1000`,
		`{{json "<a>\"\n"}}`:                                                            `"\u003ca\u003e\"\n"`,
		`{{toml "a\"b\\c\n\u007f\u0001é"}}`:                                             `"a\"b\\c\n\u007f\u0001é"`,
		`{{quote "it's $HOME"}} {{quote "a/b"}}`:                                        `'it'"'"'s $HOME' a/b`,
	} {
		d := parse(t, "[model]\napis = ['anthropic', 'responses', 'chat']\n[[file]]\npath = '/f'\ncontent = "+quoted(text)+
			"\n[[setting]]\nname = 'effort'\nflag = '--effort'\n[[setting]]\nname = 'none'\nflag = '--none'\n[[setting]]\nname = 'fast'\nformat = '-c fast={value}'\ntype = 'bool'\ndefault = true\n")
		desk := newDesk(t)
		desk.env.Model = model(llm.Chat, llm.Responses)
		desk.env.SkillsDir = "/skills dir"
		desk.env.MCPServers = []agent.MCPServer{{Name: "a", Transport: "stdio", Command: "c", Args: []string{"x", "y"}}, {Name: "b", Transport: "sse", URL: "http://s"}}
		desk.env.Installed = &agent.Installed{Prefix: "/opt/x", Version: "7", Trusted: true}
		a := open(t, d, agent.Config{Model: "openrouter/openai/gpt", Settings: settings})
		if err := a.Setup(t.Context(), desk.env); err != nil {
			t.Fatal(err)
		}
		_, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "i"})
		if got := desk.files["/f"]; err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", text, got, err, want)
		}
	}
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// TestMCPForms: each form is that of Harbor's agents (Harbor agent format, section 8.2).
func TestMCPForms(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"claude":   `{"s": {"type": "stdio", "command": "npx", "args": ["-y", "a b"]}, "h": {"type": "http", "url": "http://h/?a=1&b=\"2\""}, "e": {"type": "sse", "url": "http://e"}, "n": {"type": "stdio", "command": "c", "args": []}}`,
		"gemini":   `{"s": {"command": "npx", "args": ["-y", "a b"]}, "h": {"httpUrl": "http://h/?a=1&b=\"2\""}, "e": {"url": "http://e"}, "n": {"command": "c", "args": []}}`,
		"opencode": `{"s": {"type": "local", "command": ["npx", "-y", "a b"]}, "h": {"type": "remote", "url": "http://h/?a=1&b=\"2\""}, "e": {"type": "remote", "url": "http://e"}, "n": {"type": "local", "command": ["c"]}}`,
		"plain":    `{"s": {"command": "npx", "args": ["-y", "a b"]}, "h": {"url": "http://h/?a=1&b=\"2\""}, "e": {"url": "http://e"}, "n": {"command": "c", "args": []}}`,
	} {
		desk := newDesk(t)
		run := func() string {
			t.Helper()
			a := open(t, parse(t, "[model]\nrequired = false\n[[file]]\npath = '/f'\ncontent = '{{mcp \""+form+"\"}}'\n"), agent.Config{})
			if _, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "i"}); err != nil {
				t.Fatal(err)
			}
			return desk.files["/f"]
		}
		if got := run(); got != "{}" {
			t.Errorf("%s without servers: %s", form, got)
		}
		desk.env.MCPServers = []agent.MCPServer{
			{Name: "s", Transport: "stdio", Command: "npx", Args: []string{"-y", "a b"}}, {Name: "h", Transport: "streamable-http", URL: `http://h/?a=1&b="2"`},
			{Name: "e", Transport: "sse", URL: "http://e"}, {Name: "n", Transport: "stdio", Command: "c"},
		}
		if diff := cmp.Diff(want, run()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", form, diff)
		}
	}
}

// TestShippedRender: the files that come with proctor make well-formed files for each of
// their protocols, with nothing and with everything that a trial can have, whatever is in
// names and texts; none has a place that was not filled in.
func TestShippedRender(t *testing.T) {
	t.Parallel()
	for _, d := range installed.Definitions() {
		for _, api := range d.Model.APIs {
			for _, all := range []bool{false, true} {
				desk := newDesk(t)
				desk.env.Model = model(api)
				if all {
					desk.env.SkillsDir = "/skills"
					desk.env.MCPServers = []agent.MCPServer{
						{Name: `a"b`, Transport: "stdio", Command: `c "d"`, Args: []string{`\`, "x\ny"}}, {Name: "h", Transport: "streamable-http", URL: `http://h/"x"`},
						{Name: "e", Transport: "sse", URL: "http://e"},
					}
				} else {
					desk.env.Model.Info = llm.Info{}
				}
				a := open(t, d, agent.Config{Model: `p/it's "m"`})
				if _, err := a.Run(t.Context(), desk.env, agent.Task{Instruction: "i"}); err != nil {
					t.Errorf("%s: %v", d.Name, err)
				}
				if len(desk.files) != len(d.Files) {
					t.Errorf("%s wrote %d files of %d", d.Name, len(desk.files), len(d.Files))
				}
				for file, text := range desk.files {
					var err error
					switch {
					case strings.HasSuffix(file, ".toml"):
						_, err = toml.Decode(text)
					case strings.HasSuffix(file, ".json"):
						_, err = value.DecodeText(text)
					}
					if err != nil || strings.Contains(text, "<no value>") {
						t.Errorf("%s, %s: %s is not well-formed: %v\n%s", d.Name, api, file, err, text)
					}
				}
			}
		}
	}
}
