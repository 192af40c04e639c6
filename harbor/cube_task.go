package harbor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
	"github.com/proctor-run/proctor/verify"
)

// CubeTask is a Harbor task as a problem: its instruction is the first
// observation and its verifier the evaluation.
type CubeTask struct {
	cube.TaskBase[*CubeMetadata]

	task   *Task
	host   Lookup
	run    CubeRun
	oracle bool
	dirty  bool // the sandbox has been used since it was made

	// last is the evaluation of the state after lastUse commands.
	last    *CubeVerdict
	lastUse int
}

// TypeName returns "terminalbench2_cube.task.TerminalBench2Task".
func (*CubeTask) TypeName() string { return "terminalbench2_cube.task.TerminalBench2Task" }

// BuildTool makes the shell, in an environment of the task's own only: one
// that was started from an image alone is not what the task asks for.
func (p *CubeTask) BuildTool(ctx context.Context, c cube.Container) (cube.Tool, error) {
	if p.task == nil {
		return nil, cube.RuntimeErrorf("a Harbor task is made by its task config")
	}
	if _, ok := environmentOf(c); !ok {
		return nil, cube.ValueErrorf("a Harbor task needs a container backend that runs sandboxes, such as LocalContainerBackend")
	}
	return p.ToolConfig.Make(ctx, c)
}

func (p *CubeTask) environment() *cubeContainer {
	c, _ := environmentOf(p.Container())
	return c
}

// Sandbox returns the sandbox that runs now. A reset replaces it.
func (p *CubeTask) Sandbox() sandbox.Sandbox { return p.environment().Sandbox() }

// Reset brings a sandbox that nobody has used and states the instruction.
func (p *CubeTask) Reset(ctx context.Context) (*cube.Observation, cube.Info, error) {
	env := p.environment()
	p.last = nil
	if p.dirty {
		if err := env.renew(ctx); err != nil {
			return nil, nil, err
		}
	}
	p.dirty = true
	if err := p.Tool().Reset(ctx); err != nil {
		return nil, nil, err
	}
	if p.oracle {
		if err := p.uploadSolution(ctx, env.Sandbox()); err != nil {
			return nil, nil, err
		}
	}
	info := cube.Pairs("task_id", p.Metadata.ID, "difficulty", p.Metadata.Difficulty, "category", p.Metadata.Category)
	return cube.Observe(cube.Text(p.task.Instruction)), info, nil
}

// solutionDir is where a solution lies in a sandbox.
const solutionDir = "/solution"

func (p *CubeTask) uploadSolution(ctx context.Context, sb sandbox.Sandbox) error {
	script := p.task.SolutionScript(nil)
	if !exists(script) {
		return exception.Errorf(exception.FileNotFoundError, "Solution script not found: %s", script)
	}
	if err := sandbox.UploadDir(ctx, sb, filepath.Dir(script), solutionDir, filepath.Base(script)); err != nil {
		return fmt.Errorf("uploading the solution: %w", err)
	}
	return nil
}

// OracleActions are the actions that solve a task in oracle mode: its solution
// script, with the solution's variables, and a stop.
func (t *Task) OracleActions(host Lookup) ([]cube.Action, error) {
	env, err := ResolveEnv(t.Config.Solution.Env, host)
	if err != nil {
		return nil, err
	}
	command := "DEBIAN_FRONTEND=noninteractive"
	for _, assignment := range Assignments(env) {
		quoted, err := Linux.Quote(assignment)
		if err != nil {
			return nil, err
		}
		command += " " + quoted
	}
	command = "env " + command + " " + path.Join(solutionDir, path.Base(filepath.ToSlash(t.SolutionScript(nil))))
	return []cube.Action{cube.NewAction("bash", "command", command, "timeout", maxCommandSec), cube.Stop()}, nil
}

// CubeVerdict is what an evaluation came to.
type CubeVerdict struct {
	// Verification is the verifier's own result.
	Verification verify.Result
	// Err is how the verification failed, nil when there are rewards or null.
	Err error
	// Reward is the scalar.
	Reward float64
	Info   cube.Info
}

// Verdict returns the last evaluation since the last reset, nil for none.
func (p *CubeTask) Verdict() *CubeVerdict { return p.last }

// outputLimit bounds what is kept of the tests' output, in bytes.
const outputLimit = 16 << 20

// Evaluate runs the task's verifier, as a trial does. The result stands until
// the agent does something: asking again does not run the tests again. A
// verification that fails is a reward of 0 with verifier_error in info; an
// error is for a sandbox that could not do its work.
func (p *CubeTask) Evaluate(ctx context.Context, _ *cube.Observation) (float64, cube.Info, error) {
	env := p.environment()
	sb, used := env.state()
	if p.last != nil && p.lastUse == used {
		return p.last.Reward, p.last.Info, nil
	}
	if sb == nil {
		return 0, nil, sandbox.ErrDestroyed
	}
	p.dirty = true
	if err := env.show(ctx); err != nil {
		return 0, nil, err
	}
	v, err := p.verify(ctx, env, sb)
	if err != nil {
		return 0, nil, err
	}
	p.last, p.lastUse = v, used
	return v.Reward, v.Info, nil
}

func (p *CubeTask) verify(ctx context.Context, env *cubeContainer, sb sandbox.Sandbox) (*CubeVerdict, error) {
	cfg := &p.task.Config
	user := ""
	if u := cfg.VerifierUser(nil); u != nil {
		user = u.String()
	}
	sec := cfg.VerifierTimeoutSec(nil)
	if own := p.run.VerifierSec; own != nil {
		sec = *own
	}
	limitErr := exception.Errorf(exception.VerifierTimeoutError, "Verifier execution timed out after %s seconds", value.FloatRepr(sec))
	vctx, cancel := context.WithTimeoutCause(ctx, Seconds(sec), limitErr)
	defer cancel()
	res, err := verify.Run(vctx, sb, verify.Spec{
		TestDirs: []string{p.task.TestsDir()},
		Script:   cfg.Environment.OS.TestScript(),
		Env: func() ([]string, error) {
			vars, err := ResolveEnv(cfg.VerifierEnv(nil, p.run.VerifierEnv), p.host)
			return Assignments(vars), err
		},
		User:        user,
		LogDir:      filepath.Join(env.logs, "verifier"),
		Mounted:     env.backend.Capabilities().Mounted,
		OutputLimit: outputLimit,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && vctx.Err() != nil {
		err = limitErr
	}
	if _, typed := exception.Of(err); err != nil && !typed {
		return nil, fmt.Errorf("verifying: %w", err)
	}
	v := &CubeVerdict{Verification: res, Err: err}
	if err == nil {
		v.Reward, v.Err = ScalarReward(res.Rewards)
	}
	v.Info = v.info(filepath.Join(env.logs, "verifier"))
	return v, nil
}

// ScalarReward makes one number of rewards (CUBE server, section 3.2): the key
// "reward", else the only value, else the mean; 0 for none. The error is for
// what no finite number stands for.
func ScalarReward(r *reward.Rewards) (float64, error) {
	if r == nil || r.Len() == 0 {
		return 0, nil
	}
	if n, ok := r.Get(reward.Name); ok {
		return finite(value.ToFloat(n))
	}
	var all []value.Number
	for _, n := range r.All() {
		all = append(all, n)
	}
	if len(all) == 1 {
		return finite(value.ToFloat(all[0]))
	}
	sum, err := value.Sum(all)
	if err != nil {
		return 0, err
	}
	f, err := value.ToFloat(sum)
	return finite(f/float64(len(all)), err)
}

func finite(f float64, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	if f-f != 0 { // nan and the infinities
		return 0, exception.Errorf(exception.ValueError, "the reward %s is no finite number", value.FloatRepr(f))
	}
	return f, nil
}

// PrivilegedInfo tells judges the files of the solution and of the tests, and
// the solution's script.
func (p *CubeTask) PrivilegedInfo(context.Context) (cube.Content, error) {
	info := cube.Pairs("solution", fileList(p.task.SolutionDir()), "verifier", fileList(p.task.TestsDir()), "oracle", nil)
	if script, err := readBounded(p.task.SolutionScript(nil), maxInstructionSize); err == nil {
		info.Set("oracle", cube.Str(strings.ToValidUTF8(string(script), "\uFFFD")))
	}
	return cube.Structure(info), nil
}

// fileList names the regular files below a directory, in order.
func fileList(dir string) []string {
	list := []string{}
	_ = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			list = append(list, name)
		}
		return nil // what cannot be read is not listed
	})
	slices.Sort(list)
	return list
}
