package builtin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"

	"github.com/proctor-run/proctor/agent"
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
	Solution func(step string) agent.Solution
}

// oracleOutput has what the solution printed (section 2.2, step 6).
const oracleOutput = "oracle.txt"

func oracleEntry() agent.Entry {
	return agent.Entry{
		Name:      "oracle",
		Summary:   "runs the task's own solution",
		Output:    oracleOutput,
		Solves:    true,
		Trusted:   true,
		Sandboxed: func(c agent.Config) (agent.Agent, error) { return &oracle{Solution: c.Solution}, nil },
		Stepped: func(c agent.Config) (cube.Agent, error) {
			if c.Solver == nil {
				return nil, exception.Errorf(exception.ValueError, "agent oracle: the solution of the task is not known")
			}
			return fixed{c.Solver, c.Name}, nil
		},
	}
}

var _ agent.Agent = (*oracle)(nil)

// Info returns Harbor's name and version of the agent.
func (*oracle) Info() agent.Info { return agent.Info{Name: "oracle", Version: builtinVersion} }

// Setup does nothing.
func (*oracle) Setup(context.Context, agent.Env) error { return nil }

// Run uploads the solution and runs it; the instruction is not used.
func (o *oracle) Run(ctx context.Context, env agent.Env, task agent.Task) (agent.Result, error) {
	s := o.Solution(task.Step)
	host := filepath.Join(s.Dir, filepath.FromSlash(s.Script))
	switch err := isScript(host); {
	case errors.Is(err, fs.ErrNotExist):
		return agent.Result{}, missing(s, host)
	case err != nil:
		return agent.Result{}, fmt.Errorf("reading the solution: %w", err)
	}
	if err := sandbox.UploadDir(ctx, env.Sandbox, s.Dir, taskpath.Solution, s.Script); err != nil {
		return agent.Result{}, fmt.Errorf("uploading the solution: %w", err)
	}
	vars := []string{"DEBIAN_FRONTEND=noninteractive"}
	if s.Env != nil {
		own, err := s.Env()
		if err != nil {
			return agent.Result{}, err
		}
		vars = append(vars, own...)
	}
	status, err := env.Exec(ctx, oracleOutput, sandbox.Command{
		Shell: "(" + path.Join(taskpath.Solution, s.Script) + ")",
		Env:   vars,
		User:  env.User,
	})
	if err != nil {
		return agent.Result{}, err
	}
	if status.Code == 0 {
		return agent.Result{}, nil
	}
	return agent.Result{}, atomicfile.WriteIn(env.LogDir, "exit-code.txt", []byte(strconv.Itoa(status.Code)), 0o644)
}

// isScript looks whether there is a file: nothing else is uploaded.
func isScript(path string) error {
	f, err := bounded.OpenRegular(path)
	if err == nil {
		_ = f.Close()
	}
	return err
}

func missing(s agent.Solution, host string) error {
	message := "Solution script not found: " + host
	if s.Step != "" {
		message = fmt.Sprintf("No OS-compatible solution script found for step '%s': expected %s", s.Step, host)
	}
	return exception.New(exception.FileNotFoundError, message)
}
