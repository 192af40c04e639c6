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
	}, p.install)
}

func (p *Program) uninstallCommand() *cobra.Command {
	return p.dataCommand(&cobra.Command{
		Use:   "uninstall CUBE",
		Short: "Remove what install downloaded",
		Long: `uninstall removes what 'install' did, of the whole cube, as the cube itself does
it. Doing it again changes nothing.`,
	}, p.uninstall)
}

// dataCommand is a command about what a cube has on this machine.
func (p *Program) dataCommand(cmd *cobra.Command, do func(context.Context, *Cube, *cube.Selection, bool) error) *cobra.Command {
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
		return do(ctx, c, sel, f.json)
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "write JSON to standard output")
	p.defineTasks(cmd, &f, false)
	return cmd
}

func (p *Program) install(ctx context.Context, c *Cube, sel *cube.Selection, asJSON bool) error {
	before, err := sel.Installed()
	if err != nil {
		return err
	}
	if err := sel.Install(ctx); err != nil {
		return fmt.Errorf("installing %s: %w", c.Name, err)
	}
	after, err := sel.Installed()
	if err != nil {
		return err
	}
	n, err := sel.NumTasks()
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		return p.printJSON(cube.Pairs("name", sel.Name(), "tasks", n, "installable", sel.Installable(),
			"with_data_before", before.Tasks, "with_data", after.Tasks, "data", texts(after.Dirs)))
	case !sel.Installable():
		_, _ = fmt.Fprintf(p.Stdout, "%s: nothing to install for %s\n", console.Clean(sel.Name()), console.Count(n, "task"))
	case after.Tasks == 0:
		_, _ = fmt.Fprintf(p.Stdout, "%s: installed, without data of single tasks\n", console.Clean(sel.Name()))
	case after.Tasks == before.Tasks:
		_, _ = fmt.Fprintf(p.Stdout, "%s: installed before; data %s\n", console.Clean(sel.Name()), describeData(after, n))
	default:
		_, _ = fmt.Fprintf(p.Stdout, "%s: installed; data %s\n", console.Clean(sel.Name()), describeData(after, n))
	}
	return nil
}

func (p *Program) uninstall(ctx context.Context, c *Cube, sel *cube.Selection, asJSON bool) error {
	before, err := sel.Installed()
	if err != nil {
		return err
	}
	if err := sel.Uninstall(ctx); err != nil {
		return fmt.Errorf("uninstalling %s: %w", c.Name, err)
	}
	after, err := sel.Installed()
	if err != nil {
		return err
	}
	n, err := sel.NumTasks()
	if err != nil {
		return err
	}
	switch removed := before.Tasks - after.Tasks; {
	case asJSON:
		return p.printJSON(cube.Pairs("name", sel.Name(), "tasks", n,
			"with_data_before", before.Tasks, "with_data", after.Tasks, "data", texts(after.Dirs)))
	case removed > 0:
		_, _ = fmt.Fprintf(p.Stdout, "%s: data of %s removed\n", console.Clean(sel.Name()), console.Count(removed, "task"))
	case after.Tasks > 0:
		_, _ = fmt.Fprintf(p.Stdout, "%s: the cube removes nothing; data %s stays\n", console.Clean(sel.Name()), describeData(after, n))
	default:
		_, _ = fmt.Fprintf(p.Stdout, "%s: no data of its tasks is installed\n", console.Clean(sel.Name()))
	}
	return nil
}
