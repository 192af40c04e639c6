package main

import (
	"context"
	"fmt"
	"strconv"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/dataset"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/flags"
)

func newDataset(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "dataset",
		Aliases: []string{"datasets"},
		Short:   "List the datasets of a registry",
		Long: `dataset works on registry files. 'proctor run -d NAME --registry-path FILE' runs
a dataset of one.`,
		Example: `  proctor dataset list --registry-path registry.json`,
		Args:    noUnknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDatasetList(env))
	return cmd
}

func newDatasetList(env *Env) *cobra.Command {
	var path, url *string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the datasets of a registry file",
		Long: `list shows the datasets of a registry: a file here, or one that is read by HTTP.
Harbor's hosted registry is not asked.`,
		Example: `  proctor dataset list --registry-path registry.json
  proctor dataset list --registry-url https://example.org/registry.json --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listDatasets(cmd.Context(), env, path, url, asJSON)
		},
	}
	fs := cmd.Flags()
	flags.Optional(fs, &path, flags.String, "registry-path", "", "registry `file`")
	flags.Optional(fs, &url, flags.String, "registry-url", "", "`URL` of a registry file")
	fs.Bool("legacy", true, "has no effect")
	flags.Hide(fs, "legacy")
	fs.BoolVar(&asJSON, "json", false, "print one JSON object per dataset, nothing else")
	if err := cmd.MarkFlagFilename("registry-path", "json"); err != nil {
		panic(err) // the flag is defined a few lines above
	}
	return cmd
}

// jsonDataset is what dataset list --json prints per dataset.
type jsonDataset struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Tasks       int    `json:"n_tasks"`
	Description string `json:"description"`
}

func listDatasets(ctx context.Context, env *Env, path, url *string, asJSON bool) error {
	if path == nil && url == nil {
		return withHint(usageErrorf("no registry is given"), "proctor dataset list --registry-path FILE")
	}
	ctx, stop := interruptible(ctx, env)
	defer stop()
	registry, err := dataset.ReadRegistry(ctx, path, url, dataset.FetchOptions{Now: env.Now(), Home: env.Getenv("HOME")})
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return usageErrorf("%w", err)
	}
	t := console.NewTable("Name", "Version", "Tasks", "Description")
	tasks := 0
	for _, d := range registry.Datasets {
		if asJSON {
			if err := encodeJSON(env.Stdout, jsonDataset{d.Name, d.Version, len(d.Tasks), d.Description}); err != nil {
				return err
			}
			continue
		}
		t.Row(clean(d.Name), clean(d.Version), strconv.Itoa(len(d.Tasks)), clean(d.Description))
		tasks += len(d.Tasks)
	}
	if asJSON {
		return nil
	}
	_, _ = lipgloss.Fprintln(env.Stdout, t.Render())
	_, _ = fmt.Fprintf(env.Stdout, "%s with %s\n", count(len(registry.Datasets), "dataset"), count(tasks, "task"))
	return nil
}
