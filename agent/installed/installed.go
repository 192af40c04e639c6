// Package installed has the agents that are programs of their own and are known by
// name. Each is a file of data, a [Definition]: how its program is installed, how it is
// run, how it reaches a model, and what its logs are like. [Load] reads a file of
// somebody's own, and [Definition.Entry] makes an agent of it.
//
// The program is installed once for an image and kept, see [agent.Installation]. Its calls
// go through the model gateway: files and variables of the program get the gateway's
// address and key. Harbor's rules are those of its agents, sections 3.1 to 3.4 and 8.
package installed

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
)

//go:embed data/*.toml
var data embed.FS

// Agents returns the registry of them. The list is the caller's.
func Agents() agent.Registry { return slices.Clone(entries()) }

// entries are made once, as the definitions are read.
var entries = sync.OnceValue(func() agent.Registry {
	var all agent.Registry
	for _, d := range shipped() {
		all = append(all, d.Entry())
	}
	return all
})

// Definitions returns those that come with proctor, by name. They are the same each time,
// and must not be changed; the list is the caller's.
func Definitions() []*Definition { return slices.Clone(shipped()) }

// shipped reads them once: every command of a program lists agents in its help.
var shipped = sync.OnceValue(func() []*Definition {
	files, err := data.ReadDir("data")
	if err != nil {
		panic(err) // it is part of the program
	}
	var all []*Definition
	for _, e := range files {
		text, err := data.ReadFile(path.Join("data", e.Name()))
		if err != nil {
			panic(err)
		}
		d, err := parse(e.Name(), string(text))
		if err != nil {
			panic(err)
		}
		all = append(all, d)
	}
	return all
})

// readers are the readers of logs, by the name that definitions give them.
var readers = map[string]logs.Reader{
	"claude-code":    logs.ClaudeCode,
	"cline-cli":      logs.ClineCLI,
	"codex":          logs.Codex,
	"continue":       logs.Continue,
	"copilot-cli":    logs.CopilotCLI,
	"gemini-cli":     logs.GeminiCLI,
	"goose":          logs.Goose,
	"kilo":           logs.Kilo,
	"mini-swe-agent": logs.MiniSWEAgent,
	"opencode":       logs.OpenCode,
	"openhands":      logs.OpenHands,
	"pi":             logs.Pi,
	"qwen-coder":     logs.QwenCoder,
}

// Settings that every agent here has.
const (
	versionSetting = "version"
	installSetting = "install"
	promptSetting  = "prompt_template_path"
)

var ownSettings = []string{versionSetting, installSetting, promptSetting}

// What the setting "install" may be.
const (
	installAuto   = "auto"
	installSkip   = "skip"
	installAlways = "always"
)

// Entry is the agent of the definition.
func (d *Definition) Entry() agent.Entry {
	e := agent.Entry{
		Name: d.Name, Summary: d.Summary, Output: d.Output, Settings: d.settingList(),
		Gateway: len(d.Model.APIs) > 0, NeedsModel: d.Model.Required && len(d.Model.APIs) > 0, OwnKeys: d.Model.Keys,
		Logs: d.reader(), FailuresOnly: d.Logs == "", UsesTools: d.namesServers(),
		Check:     d.check,
		Digest:    func(agent.Config) (string, error) { return d.digest(), nil },
		Sandboxed: func(c agent.Config) (agent.Agent, error) { return newProgram(d, c) },
	}
	if !d.Install.empty() {
		e.Install = d.installation
	}
	return e
}

// digest is that of the text of the agent's file.
func (d *Definition) digest() string {
	sum := sha256.Sum256([]byte(d.source))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (d *Definition) settingList() []agent.Setting {
	all := []agent.Setting{
		{Name: versionSetting, Summary: "the version that is installed; " + d.Version + " unless given", Text: true},
		{Name: installSetting, Summary: "`auto` installs the program where it is not there, `skip` never does, `always` does in each sandbox", Text: true},
		{Name: promptSetting, Summary: "a file of this machine with a template around the instruction, which it names as `{{ instruction }}`", Text: true},
	}
	if d.Version == "" {
		all[0].Summary = "the version that is installed; the newest unless given"
	}
	for _, s := range d.settings {
		all = append(all, agent.Setting{Name: s.Name, Summary: s.Summary, Typed: true})
	}
	if len(d.Model.APIs) > 0 {
		all = append(all, agent.GatewaySettings()...)
	}
	return all
}

// check finds mistakes in a configuration before anything runs.
func (d *Definition) check(c agent.Config) error {
	if d.Model.Required && c.Model == "" {
		return invalidf("agent %s needs a model: give it as -m provider/model", d.Name)
	}
	if _, err := newProgram(d, c); err != nil {
		return err
	}
	if c.Model == "" || len(d.Model.APIs) == 0 {
		return nil
	}
	options, err := c.ModelOptions()
	if err != nil {
		return err
	}
	served := llm.Protocols(c.Model, options)
	if _, ok := common(d.Model.APIs, served); !ok {
		return invalidf("agent %s speaks to models in the protocol %s, and %s is served in %s: choose another model or agent, or say with --ak api=… what its server speaks",
			d.Name, listed(d.Model.APIs), c.Model, listed(served))
	}
	return nil
}

func listed(apis []llm.API) string {
	var all []string
	for _, a := range apis {
		all = append(all, string(a))
	}
	return strings.Join(all, " or ")
}

func invalidf(format string, args ...any) error {
	return exception.Errorf(exception.ValueError, format, args...)
}

// prefixes are below this directory.
const prefixes = "/installed-agent"

// ownPrefix is where a program is installed that is not kept.
func ownPrefix(name string) string { return path.Join(prefixes, name+"-own") }

// installation tells how the program is installed for a configuration; nil where that is
// not wanted.
func (d *Definition) installation(c agent.Config) (*agent.Installation, error) {
	p, err := newProgram(d, c)
	if err != nil || p.mode != installAuto {
		return nil, err
	}
	prefix := path.Join(prefixes, d.Name)
	sum := sha256.Sum256([]byte(strings.Join(append([]string{
		d.Name, p.version, prefix, d.Install.Node, d.Install.NodeBuild, d.Install.Script, npmVersion, installScript, finishScript,
	}, d.Install.NPM...), "\x00")))
	return &agent.Installation{
		Agent: d.Name, Version: p.version, Digest: hex.EncodeToString(sum[:]), Prefix: prefix,
		Hosts:   p.hosts(),
		Find:    p.find,
		Install: func(ctx context.Context, env agent.Env) (string, error) { return p.install(ctx, env, prefix) },
		Works:   func(ctx context.Context, env agent.Env) (string, error) { return p.works(ctx, env, prefix) },
	}, nil
}
