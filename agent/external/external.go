// Package external has agents that are reached by a protocol: a command of this machine
// that works on the sandbox through lines of JSON, and a command in the sandbox that
// speaks the Agent Client Protocol.
//
// Both are told the task, and ask for commands and files of the sandbox, which they get
// as the agent's user. Nothing that they send reads or writes a file of this machine.
package external

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/clock"
)

// Agents returns the registry of them. The list is the caller's.
func Agents() agent.Registry { return agent.Registry{externalEntry(), acpEntry(), {Open: openACP}} }

// protocolError is the exception of an agent that does not keep to its protocol. What it
// did is not verified.
const protocolError = "AgentProtocolError"

const (
	externalName = "external"
	// externalOutput has what the command printed on its standard error, and
	// externalJournal what was said.
	externalOutput  = "external.txt"
	externalJournal = "external.jsonl"
)

func externalEntry() agent.Entry {
	return agent.Entry{
		Name:      externalName,
		Summary:   "runs a command of yours on this machine, which works on the sandbox by a protocol",
		Output:    externalOutput,
		UsesTools: true, Outside: true,
		Settings: []agent.Setting{
			{Name: "run", Summary: "the command, run by `sh -c` on this machine, in the directory in which proctor runs", Text: true, Required: true},
			{Name: "version", Summary: "recorded with the results", Text: true},
		},
		Sandboxed: func(c agent.Config) (agent.Agent, error) {
			return &external{command: c.Text("run"), version: c.Text("version"), vars: c.Env, model: c.Model, now: clock.Or(nil)}, nil
		},
	}
}

// external is an agent that runs on this machine, outside the sandbox.
type external struct {
	command, version, model string
	// vars are those of the configuration, KEY=VALUE. They are the command's, and none
	// of them is set in the sandbox.
	vars []string
	now  func() time.Time
}

var _ agent.Agent = (*external)(nil)

// Info returns "external" and the configured version.
func (x *external) Info() agent.Info { return agent.Info{Name: externalName, Version: x.version} }

// Setup does nothing: there is nothing to install.
func (x *external) Setup(context.Context, agent.Env) error { return nil }

// Run starts the command, tells it the task, and answers what it asks for until it ends,
// is done, or its time is up. What it used counts in any case.
func (x *external) Run(ctx context.Context, env agent.Env, task agent.Task) (_ agent.Result, err error) {
	b := box{sb: env.Sandbox, user: env.User}
	workdir, err := b.workdir(ctx)
	if err != nil {
		return agent.Result{}, err
	}
	start, err := x.start(env, task, workdir)
	if err != nil {
		return agent.Result{}, err
	}
	log, err := newJournal(env, externalJournal, x.now)
	if err != nil {
		return agent.Result{}, err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	printed, err := newPrinted(env, externalOutput)
	if err != nil {
		return agent.Result{}, err
	}
	defer func() { err = errors.Join(err, printed.close()) }()

	s := newSession(ctx, b, workdir, log)
	defer s.close()
	p, err := startProcess(x.command, x.variables(env), s.splitter(), printed)
	if err != nil {
		return agent.Result{}, fmt.Errorf("starting the agent's command: %w", err)
	}
	s.begin(p.stdin, start)
	p.read()
	code, err := p.finish(ctx, s.stopped, s.cancel)
	s.handlers.Wait()
	switch result := s.result(); {
	case ctx.Err() != nil:
		return result, context.Cause(ctx)
	case s.failed() != nil:
		return result, s.failed()
	case err != nil:
		return result, fmt.Errorf("waiting for the agent's command: %w", err)
	case code != 0 && !s.done():
		return result, &agent.ExitError{Command: x.command, Code: code, Output: printed.end()}
	default:
		return result, nil
	}
}

// variables are those of the command: what it needs to find programs, what the
// configuration gives it, and the model's name. Nothing else of this machine's
// environment is handed to it.
func (x *external) variables(env agent.Env) []string {
	var vars []string
	for _, name := range []string{"PATH", "HOME"} {
		if env.Lookup == nil {
			break
		}
		if v, ok := env.Lookup(name); ok {
			vars = append(vars, name+"="+v)
		}
	}
	return append(append(vars, x.vars...), "PROCTOR_MODEL="+x.model)
}

// start is the first message.
func (x *external) start(env agent.Env, task agent.Task, workdir string) (message, error) {
	logDir, err := filepath.Abs(env.LogDir)
	if err != nil {
		return nil, err
	}
	m := message{
		"type": "start", "instruction": task.Instruction, "deadline": nil, "step": orNull(task.Step), "model": orNull(x.model),
		"workdir": orNull(workdir), "skills_dir": orNull(env.SkillsDir), "log_dir": logDir,
	}
	if !task.Deadline.IsZero() {
		m["deadline"] = task.Deadline.UTC().Format(time.RFC3339)
	}
	servers := make([]message, len(env.MCPServers))
	for i, server := range env.MCPServers {
		servers[i] = message{"name": server.Name, "transport": server.Transport}
		if server.Transport == "stdio" {
			servers[i]["command"], servers[i]["args"] = server.Command, append([]string{}, server.Args...)
		} else {
			servers[i]["url"] = server.URL
		}
	}
	m["mcp_servers"] = servers
	return m, nil
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// printed keeps what an agent prints, redacted, within bounds, and its end once more.
type printed struct {
	file  *bounded.File
	tail  *bounded.Tail
	write func(p []byte) (int, error)
	flush func() error
}

// errorOutput is how much of what an agent printed is quoted in errors, in bytes.
const errorOutput = 1000

func newPrinted(env agent.Env, name string) (*printed, error) {
	file, err := bounded.Create(env.LogDir, name, env.OutputLimit)
	if err != nil {
		return nil, fmt.Errorf("keeping the agent's output: %w", err)
	}
	p := &printed{file: file, tail: bounded.NewTail(errorOutput)}
	p.write, p.flush = p.both, func() error { return nil }
	if env.Redact != nil {
		through := env.Redact(writerFunc(p.both))
		p.write, p.flush = through.Write, through.Close
	}
	return p, nil
}

func (p *printed) Write(data []byte) (int, error) { return p.write(data) }

func (p *printed) both(data []byte) (int, error) {
	_, _ = p.tail.Write(data)
	return p.file.Write(data)
}

// end is the end of what was printed; nothing may be written afterwards.
func (p *printed) end() string {
	_ = p.flush() // what it kept back goes to memory and to a file that reports at its close
	return p.tail.String()
}

func (p *printed) close() error {
	if err := errors.Join(p.flush(), p.file.Close()); err != nil {
		return fmt.Errorf("keeping the agent's output: %w", err)
	}
	return nil
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func protocolErrorf(format string, args ...any) error {
	return exception.Errorf(protocolError, format, args...)
}
