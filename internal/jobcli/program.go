// Package jobcli is the command line of jobs, as proctor and the programs of cubes'
// authors share it: the flags of a run, the configuration that they make, what is
// shown while trials run, results, exit codes.
package jobcli

import (
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/ownfiles"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/trial"
)

// Auto is the name that lets the program choose an environment.
const Auto = "auto"

// Program is a program that runs jobs, and what it takes from the outside world.
type Program struct {
	// Name stands before its messages.
	Name string
	// Resume is its command that resumes a job, which a hint names.
	Resume string
	// Show is the program whose commands "job show" and "trial show" show what it ran;
	// empty if there is none.
	Show string
	// Agents can be chosen with -a.
	Agents agent.Registry
	// Environments can be chosen with -e, besides Auto. EnvironmentsUsage is how help
	// lists them; empty means by their names.
	Environments      []string
	EnvironmentsUsage string

	Args           []string
	Stdout, Stderr io.Writer
	// Lookup finds a variable of the environment.
	Lookup func(name string) (string, bool)
	// Environ is the environment, KEY=VALUE: what is secret in it is printed nowhere.
	Environ []string
	Now     func() time.Time
	Signals <-chan os.Signal
	// Farewell is said when a signal ends the program at once; it may be nil.
	Farewell *Farewell
}

func (p *Program) getenv(name string) string {
	v, _ := p.Lookup(name)
	return v
}

// PrepareOptions are what preparing a job takes from the outside world.
func (p *Program) PrepareOptions() job.PrepareOptions {
	return job.PrepareOptions{
		Now: p.Now().Local(), Lookup: p.Lookup, Home: p.getenv("HOME"), Random: rand.IntN, Invocation: p.Args, Environ: p.Environ,
	}
}

// Session is a session for a command line.
func (p *Program) Session(f *Flags) *job.Session {
	options := p.PrepareOptions()
	options.AcceptHarmless, options.SecretNames, options.Policy = f.AcceptHarmless, f.Secrets, f.Policy.fixed()
	return &job.Session{
		Runner: job.Runner{Trials: trial.Runner{
			Lookup: p.Lookup, Now: p.Now, Agents: p.Agents, SealedVerifier: f.Sealed, Environ: p.Environ, SecretNames: f.Secrets,
			Hardened: f.Hardened, AllowEngineSocket: f.AllowEngineSocket, Models: p.Models(&f.Model), Budget: f.Model.TrialBudget(),
			Gateway: f.Model.Gateway, Layers: p.Layers(),
		}, Budget: f.Model.Budget(), Recordings: f.Model.Recordings()},
		Options: options,
		Signals: p.Signals,
	}
}

// Layers keep what is installed of agents' programs; nil where there is no place for it.
func (p *Program) Layers() *layer.Store {
	cache, err := ownfiles.Cache(p.Lookup)
	if err != nil {
		return nil
	}
	return &layer.Store{Dir: filepath.Join(cache, "agents"), Now: p.Now}
}

// CheckAgents refuses agents that no trial could run with, before anything is
// done. cube tells that the tasks are those of a cube. What a job directory holds
// that is there already is let be: others may have made it, and finished trials need
// no agent.
func (p *Program) CheckAgents(cfg jobdir.Config, f *Flags, cube bool) error {
	if err := f.Model.CheckReplay(); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(cfg.Dir(), scan.ResultFile)); err == nil && info.Mode().IsRegular() {
		return nil
	}
	if err := job.CheckAgents(cfg.Agents, p.Agents, cube); err != nil {
		return exitcode.Usagef("%w", err)
	}
	if err := p.CheckTemplates(cfg.Agents, cfg.Verifier); err != nil {
		return err
	}
	if err := p.CheckModels(cfg.Agents, &f.Model); err != nil {
		return err
	}
	return p.CheckBudgets(cfg.Agents, &f.Model)
}

// CheckOne refuses a job of more or less than one trial where the command is for one.
func (f *Flags) CheckOne(prepared *job.Prepared) error {
	if n := len(prepared.Trials); f.One && n != 1 {
		return exitcode.WithHint(exitcode.Usagef("there are %d tasks, and this command is for one", n), "choose it with -t")
	}
	return nil
}

// CheckTemplates refuses variables that take their value from one of this machine that is
// not set: every trial would fail, and most often it is a key.
func (p *Program) CheckTemplates(agents []jobdir.AgentConfig, verifier jobdir.VerifierConfig) error {
	check := func(flag string, env harbor.Env) error {
		for name, value := range env.All() {
			t, ok := harbor.ParseTemplate(value)
			if !ok || t.HasDefault {
				continue
			}
			if _, set := p.Lookup(t.Name); !set {
				return exitcode.WithHint(exitcode.Usagef("%s %s=%s: environment variable %s is not set on this machine", flag, name, value, t.Name),
					"set it and export it, or give a value for its absence: %s %s='${%s:-…}'", flag, name, t.Name)
			}
		}
		return nil
	}
	for _, a := range agents {
		if err := check("--ae", a.Env.Map); err != nil {
			return err
		}
	}
	return check("--ve", verifier.Env.Map)
}

// CubeTraits is what a run has to know of the cube that it is for.
type CubeTraits struct {
	Name string
	// Solved says that the cube has a debug agent, which the oracle is.
	Solved bool
	// Containers says that its tasks run in containers.
	Containers bool
}

// CheckCube refuses what a configuration and flags say that a cube, named as an
// argument, would ignore, and agents that do not play its tasks.
func (p *Program) CheckCube(cfg jobdir.Config, f *Flags, c CubeTraits) error {
	switch {
	case len(cfg.Tasks)+len(cfg.Datasets) > 0:
		return exitcode.Usagef("the configuration names tasks, and the cube is named as the argument")
	case len(cfg.Artifacts) > 0:
		return exitcode.Usagef("the configuration names artifacts: the tasks of a cube have no artifacts")
	case len(cfg.ExtraInstructionPaths) > 0:
		return exitcode.Usagef("the configuration names extra instructions: the first observation is the cube's own")
	}
	c.Containers = c.Containers || job.WorkApart(cfg.Agents, p.Agents)
	if err := c.check(cfg, &f.Set, f.Runtime); err != nil {
		return err
	}
	return p.CheckAgents(cfg, f, true)
}

func (c CubeTraits) check(cfg jobdir.Config, o *job.Overrides, runtime string) error {
	if !c.Containers {
		const why = "its tasks run in no containers, and its agent in no sandbox"
		switch {
		case o.EnvironmentType != nil:
			return exitcode.Usagef("--env is not supported for cube %q: %s", c.Name, why)
		case runtime != "":
			return exitcode.Usagef("--runtime is not supported for cube %q: %s", c.Name, why)
		case len(o.EnvironmentKwargs) > 0:
			return exitcode.Usagef("--ek is not supported for cube %q: %s", c.Name, why)
		}
	}
	agentLimit := slices.ContainsFunc(cfg.Agents, func(a jobdir.AgentConfig) bool { return a.OverrideTimeoutSec != nil })
	verifierLimit := cfg.Verifier.OverrideTimeoutSec != nil
	const why = "the tasks of a cube have no time limits of their own, and the configuration gives none"
	switch {
	case o.TimeoutMultiplier != nil && !agentLimit && !verifierLimit:
		return exitcode.Usagef("--timeout-multiplier is not supported for cube %q: %s", c.Name, why)
	case o.AgentTimeoutMultiplier != nil && !agentLimit:
		return exitcode.Usagef("--agent-timeout-multiplier is not supported for cube %q: %s", c.Name, why)
	case o.VerifierTimeoutMultiplier != nil && !verifierLimit:
		return exitcode.Usagef("--verifier-timeout-multiplier is not supported for cube %q: %s", c.Name, why)
	}
	oracle := slices.ContainsFunc(cfg.Agents, func(a jobdir.AgentConfig) bool { return a.Name != nil && *a.Name == "oracle" })
	if oracle && !c.Solved {
		return exitcode.WithHint(exitcode.Usagef("cube %q has no debug agent, which agent oracle plays", c.Name), "choose another agent with -a")
	}
	return nil
}

func (p *Program) parseAgent(s string) (string, error) {
	if _, known := p.Agents.Find(s); known {
		return s, nil
	}
	return flags.OneOf(s, "an agent", p.Agents.Names(), p.Agents.HarborOnly())
}

func (p *Program) parseEnvironment(s string) (string, error) {
	return flags.OneOf(s, "an environment", append([]string{Auto}, p.Environments...), jobdir.HarborEnvironments())
}

func (p *Program) environmentsUsage() string {
	if p.EnvironmentsUsage != "" {
		return p.EnvironmentsUsage
	}
	return strings.Join(slices.Concat([]string{Auto}, p.Environments), ", ")
}

// terminalWidth returns the width of w in columns, and whether w is a terminal
// that can redraw lines.
func (p *Program) terminalWidth(w io.Writer) (int, bool) {
	f, ok := w.(*os.File)
	if !ok || p.getenv("TERM") == "dumb" {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return width, err == nil && width > 0
}
