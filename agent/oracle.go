package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/taskpath"
	"github.com/proctor-run/proctor/sandbox"
)

// oracle runs the task's own solution (section 2.2). A solution that exits
// non-zero is not an error: its code is kept in exit-code.txt.
type oracle struct {
	// Solution finds the solution of the task, or of a step of it.
	Solution func(step string) Solution
}

func oracleEntry() Entry {
	return Entry{
		Name:      "oracle",
		Summary:   "runs the task's own solution",
		Solves:    true,
		Trusted:   true,
		Sandboxed: func(c Config) (Agent, error) { return &oracle{Solution: c.Solution}, nil },
		Stepped: func(c Config) (cube.Agent, error) {
			if c.Solver == nil {
				return nil, invalidf("agent oracle: the solution of the task is not known")
			}
			return fixed{c.Solver, c.Name}, nil
		},
	}
}

var _ Agent = (*oracle)(nil)

// Info returns Harbor's name and version of the agent.
func (*oracle) Info() Info { return Info{Name: "oracle", Version: builtinVersion} }

// Setup does nothing.
func (*oracle) Setup(context.Context, Env) error { return nil }

// Run uploads the solution and runs it; the instruction is not used.
func (o *oracle) Run(ctx context.Context, env Env, task Task) (Result, error) {
	s := o.Solution(task.Step)
	host := filepath.Join(s.Dir, filepath.FromSlash(s.Script))
	if _, err := os.Stat(host); errors.Is(err, fs.ErrNotExist) {
		return Result{}, s.missing(host)
	}
	if err := sandbox.UploadDir(ctx, env.Sandbox, s.Dir, taskpath.Solution, s.Script); err != nil {
		return Result{}, fmt.Errorf("uploading the solution: %w", err)
	}
	vars := []string{"DEBIAN_FRONTEND=noninteractive"}
	if s.Env != nil {
		own, err := s.Env()
		if err != nil {
			return Result{}, err
		}
		vars = append(vars, own...)
	}
	status, err := runLogged(ctx, env, "oracle.txt", sandbox.Command{
		Shell: "(" + path.Join(taskpath.Solution, s.Script) + ")",
		Env:   vars,
		User:  env.User,
	}, nil)
	if err != nil {
		return Result{}, err
	}
	if status.Code == 0 {
		return Result{}, nil
	}
	return Result{}, atomicfile.WriteIn(env.LogDir, "exit-code.txt", []byte(strconv.Itoa(status.Code)), 0o644)
}

func (s Solution) missing(host string) error {
	message := "Solution script not found: " + host
	if s.Step != "" {
		message = fmt.Sprintf("No OS-compatible solution script found for step '%s': expected %s", s.Step, host)
	}
	return exception.New(exception.FileNotFoundError, message)
}

// runLogged runs a command with its output in a file of the log directory, and
// its end also in tail when that is given.
func runLogged(ctx context.Context, env Env, name string, cmd sandbox.Command, tail *bounded.Tail) (sandbox.ExitStatus, error) {
	out, err := bounded.Create(env.LogDir, name, env.OutputLimit)
	if err != nil {
		return sandbox.ExitStatus{}, fmt.Errorf("keeping the agent's output: %w", err)
	}
	cmd.Stdout = out
	if tail != nil {
		cmd.Stdout = tee{out, tail}
	}
	status, err := env.Sandbox.Exec(ctx, cmd)
	if status.NotStarted || err != nil && ctx.Err() == nil && out.Written() == 0 { // then there is no output of it
		why, discardErr := out.Discard()
		if env.Warn != nil && status.NotStarted {
			env.Warn("a command of the agent could not be started: %s", strings.TrimSpace(why))
		}
		return status, errors.Join(err, discardErr)
	}
	if closeErr := out.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("keeping the agent's output: %w", closeErr)
	}
	return status, err
}

// tee writes to both; neither ever fails.
type tee struct {
	file *bounded.File
	tail *bounded.Tail
}

func (t tee) Write(p []byte) (int, error) {
	_, _ = t.tail.Write(p)
	return t.file.Write(p)
}
