package installed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/installed/internal/prompt"
	"github.com/proctor-run/proctor/agent/installed/internal/setting"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// program is an agent that a definition describes, in one sandbox.
type program struct {
	def    *Definition
	config agent.Config
	// version is the one that was asked for or, once it is known, that which is there.
	version string
	asked   bool // for the version
	mode    string
	prompt  string // a template around the instruction; empty for none
	flags   []string
	env     []string
	values  map[string]string
	prefix  string // where the program is; empty where the image has it by itself
}

// newProgram reads the settings of a configuration.
func newProgram(d *Definition, c agent.Config) (*program, error) {
	p := &program{def: d, config: c, version: cmp.Or(c.Text(versionSetting), d.Version), asked: c.Text(versionSetting) != ""}
	var err error
	if p.flags, p.env, p.values, err = setting.Flags(d.settings, c.Settings, c.Lookup); err != nil {
		return nil, fmt.Errorf("agent %s: %w", d.Name, err)
	}
	if p.mode = cmp.Or(c.Text(installSetting), installAuto); p.mode != installAuto && p.mode != installSkip && p.mode != installAlways {
		return nil, invalidf("agent %s: setting %s is %q, want %s, %s or %s", d.Name, installSetting, p.mode, installAuto, installSkip, installAlways)
	}
	if file := c.Text(promptSetting); file != "" {
		data, err := bounded.ReadFile(file, maxDefinition)
		if err != nil {
			return nil, fmt.Errorf("agent %s: setting %s: %w", d.Name, promptSetting, err)
		}
		p.prompt = string(data)
	}
	return p, nil
}

// Info returns the definition's name and the version, which Setup finds out.
func (p *program) Info() agent.Info { return agent.Info{Name: p.def.Name, Version: p.version} }

// profile is a file of the sandbox that each of the program's commands begins with.
const profile = agent.TaskDir + "/agent.sh"

// homeless is the home of a user who has none that can be written to.
const homeless = "/tmp/proctor-agent-home"

// writeProfile lets commands find the program behind what the image has or, with first,
// before it.
func (p *program) writeProfile(ctx context.Context, env agent.Env, prefix string, first bool) error {
	text := fmt.Sprintf(`HOME=${HOME:-$(cd ~ 2>/dev/null && pwd)}
if ! { [ -n "$HOME" ] && mkdir -p "$HOME" && [ -w "$HOME" ]; } 2>/dev/null; then
	HOME=%s-$(id -u)
	mkdir -p "$HOME"
fi
export HOME
`, homeless)
	if prefix != "" {
		dir, err := harbor.Linux.Quote(prefix + "/bin")
		if err != nil {
			return err
		}
		if first {
			text += "PATH=" + dir + ":$PATH\n"
		} else {
			text += "PATH=$PATH:" + dir + "\n"
		}
	}
	return env.UploadText(ctx, profile, text+"export PATH\n")
}

// withProfile is a script that begins with the profile.
func withProfile(script string) string { return ". " + profile + "\n" + script }

// Setup finds the program in the sandbox, or installs it there.
func (p *program) Setup(ctx context.Context, env agent.Env) error {
	if err := env.UploadServers(ctx); err != nil {
		return err
	}
	if done, err := p.setUpKnown(ctx, env); done || err != nil {
		return err
	}
	if p.mode != installAlways {
		version, found, err := p.find(ctx, env)
		if err != nil {
			return err
		}
		if found {
			p.version = version
			return nil
		}
	}
	if p.mode == installSkip {
		return fmt.Errorf("%s is not in the image, and setting %s is %s: install it there, so that '%s' runs, or leave the setting away",
			p.def.Name, installSetting, installSkip, p.def.Check.Command)
	}
	p.prefix = ownPrefix(p.def.Name)
	version, err := p.install(ctx, env, p.prefix)
	p.version = cmp.Or(version, p.version)
	return err
}

// setUpKnown takes what was installed before, where that runs in this sandbox.
func (p *program) setUpKnown(ctx context.Context, env agent.Env) (done bool, err error) {
	known := env.Installed
	if known == nil || p.mode == installAlways {
		return false, nil
	}
	if err := p.writeProfile(ctx, env, known.Prefix, true); err != nil {
		return false, err
	}
	version := known.Version
	if !known.Trusted {
		if version, err = p.works(ctx, env, known.Prefix); err != nil {
			if ctx.Err() != nil {
				return false, err
			}
			warn(env, "%s as it was installed before does not run in this image, so that it is installed anew: %v", p.def.Name, err)
			return false, nil
		}
	}
	p.prefix, p.version, known.Used = known.Prefix, cmp.Or(version, p.version), true
	return true, nil
}

func warn(env agent.Env, format string, args ...any) {
	if env.Warn != nil {
		env.Warn(format, args...)
	}
}

// find looks for the program in the image. One of another version than was asked for does
// not count.
func (p *program) find(ctx context.Context, env agent.Env) (version string, found bool, err error) {
	if err := p.writeProfile(ctx, env, "", false); err != nil {
		return "", false, err
	}
	name, err := harbor.Linux.Quote(p.def.Check.program())
	if err != nil {
		return "", false, err
	}
	look := sandbox.Command{Shell: withProfile("command -v -- " + name), User: env.User}
	status, err := env.Sandbox.Exec(ctx, look)
	if err != nil || status.Code != 0 {
		return "", false, wrap(err, "looking for %s in the sandbox", p.def.Name)
	}
	version, err = p.check(ctx, env)
	if err != nil {
		return "", false, ctxError(ctx, err)
	}
	return version, !p.asked || version == p.version, nil
}

// works tells which version is installed at a prefix; an error says that it does not run.
func (p *program) works(ctx context.Context, env agent.Env, prefix string) (string, error) {
	if err := p.writeProfile(ctx, env, prefix, true); err != nil {
		return "", err
	}
	return p.check(ctx, env)
}

// maxCheck bounds what is read of what a program says of its version, in bytes.
const maxCheck = 16 << 10

// checkLimit bounds how long a program may take to tell its version.
const checkLimit = 2 * time.Minute

// check asks the program for its version.
func (p *program) check(ctx context.Context, env agent.Env) (string, error) {
	out := bounded.NewTail(maxCheck)
	status, err := env.Sandbox.Exec(ctx, sandbox.Command{
		Shell: withProfile(p.def.Check.Command), User: env.User, Env: p.static(), Stdout: out, Timeout: checkLimit,
	})
	said := strings.TrimSpace(out.String())
	switch {
	case err != nil:
		return "", fmt.Errorf("asking %s for its version: %w", p.def.Name, err)
	case status.TimedOut:
		return "", fmt.Errorf("'%s' has not ended after %s", p.def.Check.Command, checkLimit)
	case status.Code != 0:
		return "", fmt.Errorf("'%s' ends with %d: %s", p.def.Check.Command, status.Code, lastLine(said))
	case p.def.Check.Pattern == nil:
		return "", nil
	}
	version := p.def.Check.Pattern.FindString(said)
	if version == "" {
		return "", fmt.Errorf("'%s' prints no version: %s", p.def.Check.Command, lastLine(said))
	}
	return version, nil
}

// static are the variables of the definition that are no templates: those that switch off
// what a program does at its start.
func (p *program) static() []string {
	var all []string
	for _, v := range p.def.Run.Env {
		if !strings.Contains(v.Value, "{{") {
			all = append(all, v.Name+"="+v.Value)
		}
	}
	return all
}

func lastLine(text string) string {
	lines := strings.Split(text, "\n")
	const longest = 300
	last := lines[len(lines)-1]
	return strings.ToValidUTF8(last[:min(len(last), longest)], "")
}

// Run writes the program's files and runs it.
func (p *program) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	if err := p.instruct(&task); err != nil {
		return agent.Result{}, err
	}
	told, err := env.Tell(ctx, task, p.config.Model)
	if err != nil {
		return agent.Result{}, err
	}
	r := p.renderer(env)
	run, err := p.rendered(r)
	if err != nil {
		return agent.Result{}, err
	}
	run.env = append(append(env.Equipped(run.env), told...), p.config.Env...)
	if env.Vars != nil { // what the configuration sets counts, and has no key in it
		run.env = env.Variables(run.env)
	}
	if err := p.prepare(ctx, env, run); err != nil {
		return agent.Result{}, err
	}
	err = env.Check(ctx, p.def.Output, sandbox.Command{Shell: withProfile(run.command), Env: run.env, User: env.User})
	p.after(ctx, env, run)
	if exit, ok := errors.AsType[*agent.ExitError](err); ok {
		exit.Command = run.command
	}
	return agent.Result{}, err
}

// instruct puts the instruction into the prompt template.
func (p *program) instruct(task *agent.Task) (err error) {
	if p.prompt != "" {
		task.Instruction, err = prompt.Render(p.prompt, task.Instruction)
	}
	switch {
	case err != nil:
		return err
	case len(task.Instruction) > longestInstruction:
		return invalidf("the instruction has %d bytes, and agent %s takes at most %d", len(task.Instruction), p.def.Name, longestInstruction)
	case strings.ContainsRune(task.Instruction, 0):
		return invalidf("the instruction has a NUL character, and agent %s cannot be given one", p.def.Name)
	}
	return nil
}

// longestInstruction is what a program can be given on its command line, in bytes.
const longestInstruction = 96 << 10

func (p *program) renderer(env agent.Env) *renderer {
	r := &renderer{values: p.values, known: p.def.settingNames()}
	r.vars = Vars{
		Version: p.version, Prefix: p.prefix, Logs: harbor.AgentLogsDir, Model: nameOf(p.config.Model),
		Flags: strings.Join(p.flags, " "), Skills: env.SkillsDir, MCP: env.MCPServers,
	}
	r.vars.withModel(env.Model, p.def.Model.APIs)
	return r
}

// rendered is a definition whose templates are filled in.
type rendered struct {
	command, after string
	env            []string
	files          []File
}

func (p *program) rendered(r *renderer) (out rendered, err error) {
	fill := func(name, text string) (filled string) {
		if err == nil {
			filled, err = r.render(name, text)
		}
		return filled
	}
	out.command, out.after = fill("[run] command", p.def.Run.Command), fill("[run] after", p.def.Run.After)
	for _, v := range p.def.Run.Env {
		if text := fill("[run.env] "+v.Name, v.Value); text != "" {
			out.env = append(out.env, v.Name+"="+text)
		}
	}
	out.env = append(out.env, p.env...)
	for _, f := range p.def.Files {
		out.files = append(out.files, File{Path: f.Path, Content: fill("[[file]] "+f.Path, f.Content)})
	}
	return out, err
}

// prepare writes the program's files and copies the skills, as the agent's user.
func (p *program) prepare(ctx context.Context, env agent.Env, run rendered) error {
	for _, f := range run.files {
		target, err := inHome(f.Path)
		if err != nil {
			return err
		}
		// An agent may have left a link there, or a pipe, which would not end.
		write := fmt.Sprintf("umask 077; mkdir -p \"$(dirname %[1]s)\" && rm -f %[1]s && cat > %[1]s", target)
		if err := p.mustRun(ctx, env, "writing "+f.Path, write, f.Content, run.env); err != nil {
			return err
		}
	}
	if p.def.Skills == "" || env.SkillsDir == "" {
		return nil
	}
	target, err := inHome(p.def.Skills)
	if err != nil {
		return err
	}
	from, err := harbor.Linux.Quote(env.SkillsDir)
	if err != nil {
		return err
	}
	return p.mustRun(ctx, env, "copying skills", fmt.Sprintf("mkdir -p %[1]s && { cp -r %[2]s/. %[1]s/ || true; }", target, from), "", run.env)
}

// inHome is a path for a shell, in which "~" is the home directory.
func inHome(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		quoted, err := harbor.Linux.Quote(rest)
		return `"$HOME"/` + quoted, err
	}
	return harbor.Linux.Quote(name)
}

func (p *program) mustRun(ctx context.Context, env agent.Env, what, script, input string, vars []string) error {
	out := bounded.NewTail(maxCheck)
	status, err := env.Sandbox.Exec(ctx, sandbox.Command{
		Shell: withProfile(script), User: env.User, Env: vars, Stdin: strings.NewReader(input), Stdout: out,
	})
	if err == nil && status.Code != 0 {
		err = fmt.Errorf("exit %d: %s", status.Code, lastLine(strings.TrimSpace(out.String())))
	}
	return wrap(err, "%s", what)
}

// afterLimit bounds what is run when the program has ended.
const afterLimit = time.Minute

// after keeps what the program left elsewhere, also when its time is up.
func (p *program) after(ctx context.Context, env agent.Env, run rendered) {
	if strings.TrimSpace(run.after) == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterLimit)
	defer cancel()
	if err := p.mustRun(ctx, env, "keeping what "+p.def.Name+" left", run.after, "", run.env); err != nil {
		warn(env, "%v", err)
	}
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
}

// ctxError is an error that counts because the context has ended.
func ctxError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return nil
}
