package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubes"
	"github.com/proctor-run/proctor/value"
)

// printJSON writes one document to standard output.
func printJSON(env *Env, v cube.Value) error {
	data := value.AppendDumps(nil, v, value.DumpsOptions{Indent: 2})
	_, err := fmt.Fprintf(env.Stdout, "%s\n", data)
	return err
}

func newCubeList(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the registered cubes",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			r := cube.NewRegistry(cube.Options{})
			var rows cube.List
			w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
			for _, c := range cubes.All() {
				row, err := cubeRow(r, c, w, !asJSON)
				if err != nil {
					return err
				}
				rows = append(rows, row)
			}
			if asJSON {
				return printJSON(env, rows)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON to standard output")
	return cmd
}

func cubeRow(r *cube.Registry, c cubes.Cube, w *tabwriter.Writer, print bool) (*cube.Object, error) {
	cfg, err := shippedCube(c).register(r)
	if err != nil {
		return nil, err
	}
	sel, err := r.Select(cfg)
	if err != nil {
		return nil, err
	}
	meta, err := sel.Metadata()
	if err != nil {
		return nil, err
	}
	n, err := sel.NumTasks()
	if err != nil {
		return nil, err
	}
	if print {
		fmt.Fprintf(w, "%s\t%s\t%s\n", c.Name, count(n, "task"), meta.Description)
	}
	return cube.Pairs("name", c.Name, "version", meta.Version, "description", meta.Description,
		"num_tasks", n, "needs_container", c.NeedsContainer), nil
}

func newCubeShow(env *Env) *cobra.Command {
	var f cubeFlags
	cmd := &cobra.Command{
		Use:   "show CUBE",
		Short: "Show what a cube is and which tasks it has",
		Example: `  proctor cube show arithmetic-cube
  proctor cube show examples/tasks --json`,
		Args: oneCube,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := findCube(env, args[0])
			if err != nil {
				return err
			}
			sel, err := s.choose(cube.NewRegistry(cube.Options{}), cube.Options{}, &f)
			if err != nil {
				return err
			}
			return showCube(env, sel, f.json)
		},
	}
	f.define(cmd, false)
	return cmd
}

func showCube(env *Env, sel *cube.Selection, asJSON bool) error {
	meta, err := sel.Metadata()
	if err != nil {
		return err
	}
	tasks, err := sel.Tasks()
	if err != nil {
		return err
	}
	if asJSON {
		list := make(cube.List, len(tasks))
		for i, e := range tasks {
			m, err := cube.ValueOf(e.Metadata)
			if err != nil {
				return err
			}
			list[i] = cube.Pairs("task_id", e.ID, "metadata", m)
		}
		m, err := cube.ValueOf(meta)
		if err != nil {
			return err
		}
		return printJSON(env, cube.Pairs("benchmark", m, "tasks", list))
	}
	fmt.Fprintf(env.Stdout, "%s %s: %s\n", clean(meta.Name), clean(meta.Version), clean(meta.Description))
	if len(meta.Tags) > 0 {
		fmt.Fprintf(env.Stdout, "tags: %s\n", clean(strings.Join(meta.Tags, ", ")))
	}
	fmt.Fprintf(env.Stdout, "%s:\n", count(len(tasks), "task"))
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	for _, e := range tasks {
		fmt.Fprintf(w, "  %s\t%s\n", clean(e.ID), clean(e.Metadata.Base().AbstractDescription))
	}
	return w.Flush()
}
