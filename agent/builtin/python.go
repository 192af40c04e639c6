package builtin

import (
	"context"
	_ "embed" // the program that runs the agent
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// python is an agent given as a Python class of a directory (outcome mapping, section
// 8.3). Setup uploads the directory and the program pythonAgent, Run runs it as the
// agent's user: it imports the class, constructs it, and calls setup and run.
//
// The class, and whatever else runs in the sandbox, can change all that is uploaded
// and reported. It harms nothing but its own trial.
type python struct {
	// Import is "module:Class", Dir the host directory of the code.
	Import, Dir string
	// Interpreter is a program's name or its path in the sandbox.
	Interpreter string
	// Env is set for the process and handed to the class, KEY=VALUE.
	Env   []string
	Model string
	// Version is recorded with the results; empty for unknown.
	Version string
}

var _ agent.Agent = (*python)(nil)

//go:embed pythonagent.py
var pythonAgent string

const (
	codeDir       = "/workspace/agent"
	pythonShim    = agent.TaskDir + "/python_agent.py"
	pythonOptions = agent.TaskDir + "/python_agent.json"
	pythonContext = agent.TaskDir + "/python_context.json"

	defaultImport = "agent:Agent"
	defaultPython = "python3"

	// What pythonAgent exits with when the code gives no agent.
	statusUnusable = 96

	// Bounds of a code directory, libraries that it brings included.
	maxCodeBytes   = 1 << 30
	maxCodeEntries = 100_000

	// pythonProbe fails where the interpreter cannot run pythonAgent. Debian's
	// minimal Python lacks modules.
	pythonProbe = "import sys\nif sys.version_info < (3, 8): sys.exit('this is Python ' + sys.version.split()[0])\nimport asyncio, json, logging"
)

// pythonOutput has what the class printed.
const pythonOutput = "python.txt"

func pythonEntry() agent.Entry {
	return agent.Entry{
		Name:    "python",
		Summary: "runs a Python class of yours, in the sandbox",
		Output:  pythonOutput,
		Gateway: true,
		Settings: append([]agent.Setting{
			{Name: "import", Summary: "the class, `module:Class`; `agent:Agent` unless given: class `Agent` of `agent.py`", Text: true},
			{Name: "dir", Summary: "the directory of this machine with the agent's code", Text: true, Required: true},
			{Name: "python", Summary: "the interpreter in the sandbox, a name or a path; `python3` unless given", Text: true},
			{Name: "version", Summary: "recorded with the results", Text: true},
		}, agent.GatewaySettings()...),
		Check: func(c agent.Config) error {
			p := newPython(c)
			if err := checkImport(p.Import); err != nil {
				return err
			}
			return checkCode(p.Dir)
		},
		Digest: func(c agent.Config) (string, error) {
			dir := c.Text("dir")
			if err := checkCode(dir); err != nil { // which bounds what is read
				return "", err
			}
			digest, err := agent.DirDigest(dir)
			if err != nil {
				return "", fmt.Errorf("hashing the agent's code: %w", err)
			}
			return digest, nil
		},
		Sandboxed: func(c agent.Config) (agent.Agent, error) { return newPython(c), nil },
	}
}

func newPython(c agent.Config) *python {
	text := func(name, otherwise string) string {
		if c.Setting(name) == nil {
			return otherwise
		}
		return c.Text(name)
	}
	return &python{
		Import: text("import", defaultImport), Dir: c.Text("dir"), Interpreter: text("python", defaultPython),
		Version: c.Text("version"), Env: c.Env, Model: c.Model,
	}
}

// checkImport refuses what does not name a class of a module.
func checkImport(text string) error {
	module, class, _ := strings.Cut(text, ":")
	for _, name := range append(strings.Split(module, "."), class) {
		if !isIdentifier(name) {
			return exception.Errorf(exception.ValueError, "agent python: setting import is %s, want module:Class, for example %s",
				value.Repr(value.Str(text)), defaultImport)
		}
	}
	return nil
}

func isIdentifier(name string) bool {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !unicode.Is(unicode.M, r)) {
			return false
		}
	}
	return name != ""
}

// checkCode refuses a directory that cannot be uploaded.
func checkCode(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return exception.Errorf(exception.ValueError, "agent python: setting dir: there is no directory %q; give the one with the code as --ak dir=DIR", dir)
	case err == nil && !info.IsDir():
		return exception.Errorf(exception.ValueError, "agent python: setting dir: %q is not a directory; give the one that the file is in", dir)
	}
	var size int64
	entries := 0
	bounded.Walk(dir, func(p bounded.Place, e fs.DirEntry) error {
		entries++
		if e.IsDir() {
			return p.Enter(e.Name())
		}
		if info, infoErr := e.Info(); infoErr == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		if entries > maxCodeEntries || size > maxCodeBytes {
			return fs.SkipAll
		}
		return nil
	}, func(name string, walkErr error) {
		if err == nil {
			err = fmt.Errorf("%q: %w", name, walkErr)
		}
	})
	switch {
	case err != nil:
		return exception.Errorf(exception.ValueError, "agent python: setting dir: reading %q: %w", dir, err)
	case entries > maxCodeEntries || size > maxCodeBytes:
		return exception.Errorf(exception.ValueError, "agent python: setting dir: %q is too large to upload: at most %d files and directories of %d MiB together",
			dir, maxCodeEntries, maxCodeBytes>>20)
	}
	return nil
}

// Info returns "python" and the configured version.
func (p *python) Info() agent.Info { return agent.Info{Name: "python", Version: p.Version} }

// Setup looks for the interpreter and uploads the code.
func (p *python) Setup(ctx context.Context, env agent.Env) error {
	if err := p.findInterpreter(ctx, env); err != nil {
		return err
	}
	if err := checkCode(p.Dir); err != nil { // it may have changed
		return err
	}
	if err := sandbox.UploadDir(ctx, env.Sandbox, p.Dir, codeDir); err != nil {
		return fmt.Errorf("uploading the agent's code: %w", err)
	}
	// The directory may be closed to others on this machine.
	open := sandbox.Command{Argv: []string{"chmod", "-R", "a+rX", "--", codeDir}, User: "root"}
	if _, err := env.Sandbox.Exec(ctx, open); err != nil {
		return fmt.Errorf("opening the agent's code to its user: %w", err)
	}
	if err := env.UploadServers(ctx); err != nil {
		return err
	}
	return env.UploadText(ctx, pythonShim, pythonAgent)
}

func (p *python) findInterpreter(ctx context.Context, env agent.Env) error {
	const hint = "agent python needs an image with Python 3.8 or later and its standard library; --ak python=PATH names another interpreter"
	said := bounded.NewTail(maxProbe)
	status, err := env.Sandbox.Exec(ctx, sandbox.Command{Argv: []string{p.Interpreter, "-c", pythonProbe}, Env: env.Variables(p.Env), User: env.User, Stdout: said})
	switch {
	case err != nil:
		return fmt.Errorf("looking for %s in the sandbox: %w", p.Interpreter, err)
	case status.NotStarted:
		return fmt.Errorf("there is no %s in the sandbox (%s): %s", p.Interpreter, strings.TrimSpace(said.String()), hint)
	case status.Code != 0:
		return fmt.Errorf("%s in the sandbox cannot run the agent (exit %d: %s): %s", p.Interpreter, status.Code, strings.TrimSpace(said.String()), hint)
	}
	return nil
}

// maxProbe bounds what is quoted of an interpreter, in bytes.
const maxProbe = 500

// Run puts the task in place and runs the class. What it reports counts also when it
// fails, and when its time is up.
func (p *python) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	instruction, err := env.UploadInstruction(ctx, task)
	if err != nil {
		return agent.Result{}, err
	}
	vars := env.Equipped(p.Env)
	if err := env.UploadText(ctx, pythonOptions, p.options(instruction, env.Variables(p.Env))); err != nil {
		return agent.Result{}, err
	}
	// Empty, so that nothing of an earlier step counts, and open to the agent's user.
	if err := sandbox.UploadBytes(ctx, env.Sandbox, nil, pythonContext, 0o666); err != nil {
		return agent.Result{}, fmt.Errorf("uploading %q: %w", pythonContext, err)
	}
	err = env.Check(ctx, pythonOutput, sandbox.Command{
		Argv: []string{p.Interpreter, "-u", pythonShim, pythonOptions},
		Env:  vars, User: env.User,
	})
	result := readPythonContext(ctx, env, err)
	if exit, ok := errors.AsType[*agent.ExitError](err); ok && exit.Code == statusUnusable {
		return result, exception.Errorf(exception.SubmissionCodeError, "%s of the agent's code gives no agent:\n%s", p.Import, strings.TrimSpace(exit.Output))
	}
	return result, err
}

// options is what pythonAgent is told. Of variables it has the names alone, because
// values may be secrets.
func (p *python) options(instruction string, vars []string) string {
	var names value.List
	for _, kv := range vars {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(names, value.Value(value.Str(name))) {
			names = append(names, value.Str(name))
		}
	}
	var model value.Value = value.Null{}
	if p.Model != "" {
		model = value.Str(p.Model)
	}
	o := value.NewObject(6)
	o.Set("import", value.Str(p.Import))
	o.Set("dir", value.Str(codeDir))
	o.Set("instruction", value.Str(instruction))
	o.Set("context", value.Str(pythonContext))
	o.Set("model", model)
	o.Set("env", names)
	return string(value.AppendDumps(nil, o, value.DumpsOptions{}))
}

// reportLimit bounds the time for reading what the agent reports when its own is up.
const reportLimit = 5 * time.Second

// readPythonContext reads what the agent reports of its work. Of a run that failed
// there may be nothing.
func readPythonContext(ctx context.Context, env agent.Env, failed error) agent.Result {
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportLimit)
		defer cancel()
		ctx = late
	}
	warn := func(format string, args ...any) {
		if env.Warn != nil {
			env.Warn(format, args...)
		}
	}
	data, err := sandbox.DownloadBytes(ctx, env.Sandbox, pythonContext, maxContext)
	if err != nil {
		if failed == nil {
			warn("what the agent reports of its work is left out: %v", err)
		}
		return agent.Result{}
	}
	return parsePythonContext(data, warn)
}
