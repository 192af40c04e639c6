package cubecli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/internal/console"
)

func (p *Program) installCommand() *cobra.Command {
	return p.dataCommand(&cobra.Command{
		Use:   "install CUBE",
		Short: "Download what a cube's tasks need",
		Long: `install prepares this machine for a cube's tasks, as 'run' does when it begins.
Doing it again changes nothing.`,
	}, (*cube.Selection).Install, (*Program).tellInstalled)
}

func (p *Program) uninstallCommand() *cobra.Command {
	return p.dataCommand(&cobra.Command{
		Use:   "uninstall CUBE",
		Short: "Remove what install downloaded",
		Long: `uninstall removes what 'install' did, of the whole cube, as the cube itself does
it. Doing it again changes nothing.`,
	}, (*cube.Selection).Uninstall, (*Program).tellUninstalled)
}

// dataCommand is a command about what a cube has on this machine.
func (p *Program) dataCommand(cmd *cobra.Command, change func(*cube.Selection, context.Context) error, tell func(*Program, dataChange)) *cobra.Command {
	var f taskFlags
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := p.cube(args)
		if err != nil {
			return err
		}
		root, err := p.RootFor(c)
		if err != nil {
			return err
		}
		sel, err := c.Select(cube.NewRegistry(cube.Options{CacheRoot: root}), nil, f.choice)
		if err != nil {
			return err
		}
		ctx, stop := p.interruptible(cmd.Context())
		defer stop()
		d, err := changeData(ctx, sel, change)
		if err != nil {
			return fmt.Errorf("%sing %s: %w", cmd.Name(), c.Name, err)
		}
		if f.json {
			return p.printJSON(d.object(sel.Name()))
		}
		tell(p, d)
		return nil
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON to standard output")
	p.defineTasks(cmd, &f, false)
	return cmd
}

// dataChange is what a command did to the data of a cube's tasks.
type dataChange struct {
	sel           *cube.Selection
	before, after cube.Installed
	tasks         int // that are selected
}

// changeData changes the data of the selected tasks.
func changeData(ctx context.Context, sel *cube.Selection, change func(*cube.Selection, context.Context) error) (d dataChange, err error) {
	d.sel = sel
	if d.before, err = sel.Installed(); err != nil {
		return d, err
	}
	if err = change(sel, ctx); err != nil {
		return d, err
	}
	if d.after, err = sel.Installed(); err != nil {
		return d, err
	}
	d.tasks, err = sel.NumTasks()
	return d, err
}

func (d dataChange) object(name string) *cube.Object {
	return cube.Pairs("name", name, "tasks", d.tasks, "installable", d.sel.Installable(),
		"with_data_before", d.before.Tasks, "with_data", d.after.Tasks, "data", texts(d.after.Dirs))
}

// say prints a sentence about the cube.
func (p *Program) say(d dataChange, format string, args ...any) {
	_, _ = fmt.Fprintf(p.Stdout, "%s: %s\n", console.Clean(d.sel.Name()), fmt.Sprintf(format, args...))
}

func (p *Program) tellInstalled(d dataChange) {
	switch {
	case !d.sel.Installable():
		p.say(d, "nothing to install for %s", console.Count(d.tasks, "task"))
	case d.after.Tasks == 0:
		p.say(d, "installed, without data of single tasks")
	case d.after.Tasks == d.before.Tasks:
		p.say(d, "installed before; data %s", describeData(d.after, d.tasks))
	default:
		p.say(d, "installed; data %s", describeData(d.after, d.tasks))
	}
}

func (p *Program) tellUninstalled(d dataChange) {
	switch removed := d.before.Tasks - d.after.Tasks; {
	case removed > 0:
		p.say(d, "data of %s removed", console.Count(removed, "task"))
	case d.after.Tasks > 0:
		p.say(d, "the cube removes nothing; data %s stays", describeData(d.after, d.tasks))
	default:
		p.say(d, "no data of its tasks is installed")
	}
}
