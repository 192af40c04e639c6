package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/sandbox/oci/build"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

// gcFlags are the flags of gc.
type gcFlags struct{ json, quiet, dryRun, kept, allowRemote bool }

func newGC(env *Env) *cobra.Command {
	f := &gcFlags{}
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove what killed runs left behind, and built images that nobody uses",
		Long: `gc removes the sandboxes, mounts, networks and directories of runs whose
process is gone, and built images that were not used for a week. What belongs to
a running proctor is never touched, and what 'proctor run --no-delete' has kept
only with --kept.

Every run removes what killed runs left of the backend it uses, before it starts.`,
		Example: `  proctor gc --dry-run
  proctor gc`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := interruptible(cmd.Context(), env)
			defer stop()
			g := garbage{DryRun: f.dryRun}
			var opts backendOptions
			opts.Cleaning, opts.AllowRemoteEngine, opts.CollectKept = true, f.allowRemote, f.kept
			var err error
			g.Removed, err = sandboxes.CollectAll(ctx, opts.in(env), f.dryRun)
			err = errors.Join(err, g.pruneImages(ctx, env))
			return errors.Join(err, printGarbage(env, f, g, err == nil))
		},
	}
	jobcli.DefineRemoteEngine(cmd.Flags(), &f.allowRemote)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	cmd.Flags().BoolVar(&f.kept, "kept", false, "also remove sandboxes that were kept with --no-delete")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only what was removed")
	return cmd
}

// garbage is what gc removed, or would.
type garbage struct {
	Removed []string `json:"removed"`
	// FreedBytes of built images of -e sandbox; an engine does not tell.
	FreedBytes int64 `json:"freed_bytes"`
	DryRun     bool  `json:"dry_run"`
}

func printGarbage(env *Env, f *gcFlags, g garbage, whole bool) error {
	if f.json {
		if g.Removed == nil {
			g.Removed = []string{}
		}
		return outputError(json.NewEncoder(env.Stdout).Encode(g))
	}
	for _, line := range g.Removed {
		if f.dryRun {
			line = "would remove " + line
		}
		_, _ = fmt.Fprintln(env.Stdout, clean(line))
	}
	if !f.quiet && len(g.Removed) == 0 && whole {
		_, _ = fmt.Fprintln(env.Stdout, "nothing to remove")
	}
	return nil
}

// imageTTL is how long a built image stays that nobody uses.
const imageTTL = 7 * 24 * time.Hour

// pruneImages removes the built images of -e sandbox that nobody uses.
func (g *garbage) pruneImages(ctx context.Context, env *Env) (err error) {
	dirs, err := findDirectories(env)
	if err != nil || !isDirectory(dirs.Images()) {
		return err
	}
	store, err := image.Open(dirs.Images(), image.Options{Offline: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	done, err := store.PruneUnused(ctx, image.Unused{Prefix: build.RefPrefix, Since: env.Now().Add(-imageTTL), Dry: g.DryRun})
	g.FreedBytes += done.Bytes
	if done.Images > 0 {
		g.Removed = append(g.Removed, fmt.Sprintf("%s and %s that nobody used for a week (%.1f MiB)",
			count(done.Images, "built image"), count(done.Layers, "layer"), float64(done.Bytes)/(1<<20)))
	}
	if err != nil {
		return fmt.Errorf("removing built images: %w", err)
	}
	return nil
}
