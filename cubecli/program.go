package cubecli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/internal/ownfiles"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/internal/secret"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// Program is a command line for cubes and what it takes from the outside world.
type Program struct {
	// Name is what the program is called in its own texts.
	Name  string
	Cubes []Cube
	// Find, when set, finds a cube that is not among Cubes; nil without one.
	Find func(name string) (*Cube, error)
	// Sandboxes opens what containers run in; nil means that cubes that need
	// containers cannot be run. The function that it returns closes it.
	Sandboxes func(context.Context, SandboxOptions) (sandbox.Backend, func() error, error)
	// Environments are the names that Sandboxes knows, for help.
	Environments []string
	// Agents that can play the tasks; nil means those that come with proctor.
	Agents agent.Registry
	// Own are further commands of the program, beside those of cubes.
	Own []*cobra.Command
	// CacheRoot is the directory for what cubes install; nil follows
	// CUBE_CACHE_DIR, ~/.cube where it exists, and then proctor's own cache.
	CacheRoot func() (string, error)

	// Args is the command line, with the program's name.
	Args           []string
	Stdout, Stderr io.Writer
	// Lookup finds a variable of the environment.
	Lookup func(name string) (string, bool)
	// Environ is the environment, KEY=VALUE: what is secret in it is written and printed
	// nowhere.
	Environ []string
	Now     func() time.Time
	// Signals ends what runs: the first in order, the second at once.
	Signals <-chan os.Signal

	farewell *jobcli.Farewell // of a program whose signals are this process's
}

// SandboxOptions are what the command line says of sandboxes.
type SandboxOptions struct {
	Environment string // empty or "auto" lets the program choose
	Runtime     string
	Mask        []string
	// Hardened and AllowRemoteEngine are as those of package sandboxes' Options.
	Hardened, AllowRemoteEngine bool
}

// Run runs the command of Args and returns its exit code.
func (p *Program) Run(ctx context.Context) int {
	out := console.NewOutput(console.Unchecked(p.Stdout)) // not that of an earlier run
	p.Stdout = out
	root := &cobra.Command{
		Use:           p.Name,
		Short:         "List, show, test and run cubes",
		Version:       programVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exitcode.WithHint(exitcode.Usagef("unknown command %q", args[0]), "'%s --help' lists the commands", p.Name)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flags.Error)
	root.AddCommand(p.Commands()...)                   //nolint:contextcheck // commands take the context of ExecuteContext
	root.AddCommand(p.runCommand(), p.resumeCommand()) //nolint:contextcheck // the same
	root.AddCommand(p.Own...)
	root.SetArgs(p.Args[1:])
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	err = exitcode.WithOutput(err, out.Err())
	if err != nil {
		w := p.secrets().Writer(p.Stderr)
		exitcode.Report(w, p.Name, err)
		_ = w.Close() // nothing could be said of it
	}
	return exitcode.Of(err)
}

// secrets are printed in no error.
func (p *Program) secrets() *redact.Set {
	own := secret.Source{Lookup: p.Lookup, Environ: p.Environ}
	return redact.New(slices.Concat(own.OfProcess(), own.OfTexts(p.Args)))
}

// Commands returns the commands list, show, test, install and uninstall.
func (p *Program) Commands() []*cobra.Command {
	return []*cobra.Command{p.listCommand(), p.showCommand(), p.testCommand(), p.installCommand(), p.uninstallCommand()}
}

// taskFlags are those of commands that work on a cube's tasks.
type taskFlags struct {
	json    bool
	choice  Choice
	sandbox SandboxOptions
}

func (p *Program) defineTasks(cmd *cobra.Command, f *taskFlags, sandboxes bool) {
	fs := cmd.Flags()
	f.choice.DefineSubset(fs)
	fs.StringArrayVarP(&f.choice.Include, "task", "t", nil, "only the tasks that match the `glob`; repeatable")
	if sandboxes && p.Sandboxes != nil {
		fs.StringVarP(&f.sandbox.Environment, "env", "e", "", "where containers run: "+strings.Join(append([]string{"auto"}, p.Environments...), ", ")+" (default auto)")
		fs.StringVar(&f.sandbox.Runtime, "runtime", "", "OCI runtime of -e sandbox and -e host: gvisor, native, runc, crun")
		jobcli.DefineHardening(fs, &f.sandbox.Hardened, &f.sandbox.AllowRemoteEngine)
	}
}

// cacheRoot is the directory for what cubes install.
func (p *Program) cacheRoot() (string, error) {
	if p.CacheRoot == nil {
		return ownfiles.Cubes(p.Lookup)
	}
	return p.CacheRoot()
}

// RootFor is the directory for what a cube installs; it is empty when there is no
// place for it and the cube installs nothing.
func (p *Program) RootFor(c *Cube) (string, error) {
	root, err := p.cacheRoot()
	if err == nil {
		return root, nil
	}
	sel, selectErr := c.Select(cube.NewRegistry(cube.Options{}), nil, Choice{})
	if selectErr != nil {
		return "", selectErr
	}
	if sel.Installable() {
		return "", err
	}
	return "", nil
}

// agents are those that can play the tasks.
func (p *Program) agents() agent.Registry {
	if p.Agents == nil {
		return agents.All()
	}
	return p.Agents
}

// cube finds the one that the arguments name; a program with a single cube
// needs no name.
func (p *Program) cube(args []string) (*Cube, error) {
	if len(args) == 0 && len(p.Cubes) == 1 && p.Find == nil {
		return &p.Cubes[0], nil
	}
	if len(args) != 1 {
		return nil, exitcode.WithHint(exitcode.Usagef("accepts one cube, by its name%s; got %d", p.orDirectory(" or as a directory of Harbor tasks"), len(args)),
			"'%s list' lists the names", p.Name)
	}
	return p.FindCube(args[0])
}

func (p *Program) orDirectory(text string) string {
	if p.Find == nil {
		return ""
	}
	return text
}

// FindCube finds a cube by its name.
func (p *Program) FindCube(name string) (*Cube, error) {
	var names []string
	for i := range p.Cubes {
		if p.Cubes[i].Name == name {
			return &p.Cubes[i], nil
		}
		names = append(names, p.Cubes[i].Name)
	}
	if p.Find != nil {
		if c, err := p.Find(name); c != nil || err != nil {
			return c, err
		}
	}
	return nil, exitcode.WithHint(exitcode.Usagef("there is no cube%s %q", p.orDirectory(" and no directory"), name), "cubes are: %s", strings.Join(names, ", "))
}

// errNoSandboxes refuses cubes that need what the program does not have.
var errNoSandboxes = exitcode.Usagef("the tasks run in containers, or the agent in a sandbox of its own, and this program opens none: begin it with sandboxes.Main of package cubecli/sandboxes, or set Program.Sandboxes")

// open opens the sandboxes that a cube needs; backend is nil when it needs
// none.
func (p *Program) open(ctx context.Context, c *Cube, o SandboxOptions) (backend sandbox.Backend, done func() error, err error) {
	if !c.NeedsContainer {
		return nil, func() error { return nil }, nil
	}
	if p.Sandboxes == nil {
		return nil, nil, errNoSandboxes
	}
	o.Mask = append(o.Mask, c.Mask...)
	return p.Sandboxes(ctx, o)
}

// interruptible ends its context at the first signal.
func (p *Program) interruptible(ctx context.Context) (context.Context, func()) {
	return interrupt.Context(ctx, p.Signals)
}

// printJSON writes one document to standard output.
func (p *Program) printJSON(v cube.Value) error {
	data := value.AppendDumps(nil, v, value.DumpsOptions{Indent: 2})
	_, err := fmt.Fprintf(p.Stdout, "%s\n", data)
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}
