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

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/atomicfile"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/sandbox"
)

// Oracle runs the task's own solution (section 2.2). A solution that exits
// non-zero is not an error: its code is kept in exit-code.txt.
type Oracle struct {
	// Dir is the solution directory on the host, Script its entry relative to
	// it. Step names the step that the directory belongs to; empty for the
	// task's own.
	Dir, Script, Step string
	// Env gives the solution's variables, KEY=VALUE, later entries win. It is
	// called when the solution is about to start, so that a missing variable
	// is an error of the agent.
	Env func() ([]string, error)
}

var _ Agent = (*Oracle)(nil)

const solutionDir = "/solution"

// Info returns Harbor's name and version of the agent.
func (*Oracle) Info() Info { return Info{Name: "oracle", Version: "1.0.0"} }

// Setup does nothing.
func (*Oracle) Setup(context.Context, Env) error { return nil }

// Run uploads the solution and runs it; the instruction is not used.
func (o *Oracle) Run(ctx context.Context, env Env, _ Task) (Result, error) {
	host := filepath.Join(o.Dir, filepath.FromSlash(o.Script))
	if _, err := os.Stat(host); errors.Is(err, fs.ErrNotExist) {
		return Result{}, o.missing(host)
	}
	if err := sandbox.UploadDir(ctx, env.Sandbox, o.Dir, solutionDir, o.Script); err != nil {
		return Result{}, fmt.Errorf("uploading the solution: %w", err)
	}
	vars := []string{"DEBIAN_FRONTEND=noninteractive"}
	if o.Env != nil {
		own, err := o.Env()
		if err != nil {
			return Result{}, err
		}
		vars = append(vars, own...)
	}
	status, err := runLogged(ctx, env, "oracle.txt", sandbox.Command{
		Shell: "(" + path.Join(solutionDir, o.Script) + ")",
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

func (o *Oracle) missing(host string) error {
	message := "Solution script not found: " + host
	if o.Step != "" {
		message = fmt.Sprintf("No OS-compatible solution script found for step '%s': expected %s", o.Step, host)
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
