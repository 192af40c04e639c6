package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/build"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

type imagePullFlags struct {
	run     *jobcli.Flags
	mirrors []string
	json    bool
	dryRun  bool
	refresh bool
}

func newImagePull(env *Env) *cobra.Command {
	f := &imagePullFlags{run: &jobcli.Flags{}}
	cmd := &cobra.Command{
		Use:   "pull [REF...]",
		Short: "Pull images, by name or for a set of tasks",
		Long: `pull gets images and unpacks them, so that trials need not. With the flags that
choose the tasks of 'proctor run' it gets what these need: docker_image of
task.toml, or what the Dockerfile begins with and copies from.

Nothing is fetched when what is missing would not fit on the disk.`,
		Example: `  proctor image pull debian:12 python:3.12
  proctor image pull -p my-tasks
  proctor image pull -d terminal-bench@2.0 --registry-path registry.json --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return pullImages(cmd.Context(), env, f, args)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	jobcli.DefineTaskChoice(fs, f.run)
	flags.List(fs, &f.mirrors, "mirror", "", "OCI layout `directory` that is asked before a registry; repeatable")
	fs.BoolVar(&f.refresh, "refresh", false, "ask the registry also for names that are there")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be fetched and how much it is, and fetch nothing")
	fs.BoolVar(&f.json, "json", false, "print one JSON object per image, nothing else")
	fs.BoolVarP(&f.run.Set.Quiet, "quiet", "q", false, "show no progress")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func pullImages(ctx context.Context, env *Env, f *imagePullFlags, refs []string) error {
	o := &f.run.Set
	if o.Path != nil || o.Dataset != nil || o.Task != nil {
		more, err := imagesOfTasks(ctx, env, f.run)
		if err != nil {
			return err
		}
		refs = append(slices.Clone(refs), more...)
	}
	if len(refs) == 0 {
		return withHint(usageErrorf("there is no image to pull"), "proctor image pull REF, or choose tasks with -p or -d")
	}
	slices.Sort(refs)
	refs = slices.Compact(refs)
	opts := image.Options{Mirrors: f.mirrors, Refresh: f.refresh}
	return withImages(ctx, env, opts, func(ctx context.Context, s *image.Store) error {
		e, err := s.Estimate(ctx, refs)
		if err != nil {
			return err
		}
		if f.dryRun {
			return printEstimate(env, f, e)
		}
		if err := s.CheckSpace(e); err != nil {
			return usageErrorf("%w", err)
		}
		if len(e.Missing) > len(e.Unknown) && !f.json && !o.Quiet {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: %s to get, %s to fetch, about %s on disk\n", count(len(e.Missing)-len(e.Unknown), "image"), megabytes(e.Download), megabytes(e.Disk))
		}
		return pullAll(ctx, env, f, s, refs)
	})
}

// jsonEstimate is what pull --dry-run --json prints.
type jsonEstimate struct {
	Missing       []string          `json:"missing"`
	Unknown       map[string]string `json:"unknown"`
	DownloadBytes int64             `json:"download_bytes"`
	DiskBytes     int64             `json:"disk_bytes"`
}

func printEstimate(env *Env, f *imagePullFlags, e image.Estimate) error {
	slices.Sort(e.Missing)
	if f.json {
		out := jsonEstimate{Missing: e.Missing, Unknown: map[string]string{}, DownloadBytes: e.Download, DiskBytes: e.Disk}
		if out.Missing == nil {
			out.Missing = []string{}
		}
		for ref, err := range e.Unknown {
			out.Unknown[ref] = err.Error()
		}
		if err := encodeJSON(env.Stdout, out); err != nil {
			return err
		}
		return wouldFail(e)
	}
	for _, ref := range e.Missing {
		if err := e.Unknown[ref]; err != nil {
			_, _ = fmt.Fprintf(env.Stdout, "would fail: %s\n", clean(err.Error()))
			continue
		}
		_, _ = fmt.Fprintf(env.Stdout, "would get %s\n", clean(ref))
	}
	_, _ = fmt.Fprintf(env.Stdout, "%s to get, %s to fetch, about %s on disk\n", count(len(e.Missing)-len(e.Unknown), "image"), megabytes(e.Download), megabytes(e.Disk))
	return wouldFail(e)
}

// wouldFail ends an estimate as the pull would end: that an image cannot be had is said
// already.
func wouldFail(e image.Estimate) error {
	if len(e.Unknown) > 0 {
		return errQuiet(exitFailed)
	}
	return nil
}

// pullsAtOnce images at a time; the store bounds the layers of all together.
const pullsAtOnce = 4

// jsonPulled is what pull --json prints per image.
type jsonPulled struct {
	Ref    string  `json:"ref"`
	ID     *string `json:"id"`
	Digest *string `json:"digest"`
	Layers int     `json:"layers"`
	Bytes  int64   `json:"bytes"`
	Error  *string `json:"error"`
}

func pullAll(ctx context.Context, env *Env, f *imagePullFlags, s *image.Store, refs []string) error {
	var mu sync.Mutex // guards the streams and what follows
	var errs []error
	var group errgroup.Group
	group.SetLimit(pullsAtOnce)
	for _, ref := range refs {
		group.Go(func() error {
			img, err := s.Pull(ctx, ref, func(message string) {
				mu.Lock()
				defer mu.Unlock()
				if !f.json && !f.run.Set.Quiet {
					_, _ = fmt.Fprintf(env.Stderr, "proctor: %s\n", clean(message))
				}
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			}
			return printPulled(env, f, ref, img, err)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return errors.Join(errs...)
}

func printPulled(env *Env, f *imagePullFlags, ref string, img image.Image, err error) error {
	var bytes int64
	for _, l := range img.Layers {
		bytes += l.Notes.Bytes
	}
	if !f.json {
		if err == nil {
			_, _ = fmt.Fprintf(env.Stdout, "%s %s (%s, %s)\n", clean(ref), shortID(img.ID), count(len(img.Layers), "layer"), megabytes(bytes))
		}
		return nil
	}
	out := jsonPulled{Ref: ref, Layers: len(img.Layers), Bytes: bytes}
	if err != nil {
		text := err.Error()
		out.Error = &text
		return encodeJSON(env.Stdout, out)
	}
	out.ID = &img.ID
	if img.Digest != "" {
		out.Digest = &img.Digest
	}
	return encodeJSON(env.Stdout, out)
}

// imagesOfTasks lists the images that the tasks of a command line need.
func imagesOfTasks(ctx context.Context, env *Env, f *jobcli.Flags) ([]string, error) {
	nop := "nop"
	f.Set.Agent = &nop
	cfg, _, err := program(env).Configure(f)
	if err != nil {
		return nil, err
	}
	takeFromGit(env, &f.Set, &cfg)
	options := program(env).PrepareOptions()
	options.Fetch = fetchTasks(ctx, env)
	prepared, err := job.Prepare(cfg, options)
	if err != nil {
		return nil, jobcli.PrepareError(err)
	}
	return imagesOf(prepared), nil
}

// imagesOf lists the images that the tasks of a job begin with. A task that
// cannot be read is left to its trial.
func imagesOf(p *job.Prepared) []string {
	var refs []string
	for _, dir := range p.TaskDirs() {
		t, err := harbor.Load(dir, harbor.LoadOptions{})
		if err != nil {
			continue
		}
		if ref := t.Config.Environment.DockerImage; ref != nil && *ref != "" {
			refs = append(refs, *ref)
			continue
		}
		bases, err := build.Bases(t.EnvironmentDir())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		refs = append(refs, bases...)
	}
	slices.Sort(refs)
	return slices.Compact(refs)
}

// lookLimit is how long registries may take to say how large images are before
// a job begins.
const lookLimit = 20 * time.Second

// checkImageSpace refuses a job whose images would not fit on the disk. What
// cannot be looked up is left to its trial.
func checkImageSpace(ctx context.Context, env *Env, opts backendOptions, p *job.Prepared) error {
	refs := imagesOf(p)
	if opts.name != sandbox.BackendSandbox || len(refs) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	store := image.Options{Mirrors: opts.Mirrors, Retries: []image.Retry{}}
	err := withImages(ctx, env, store, func(ctx context.Context, s *image.Store) error {
		e, err := s.Estimate(ctx, refs)
		if err != nil {
			return err
		}
		return s.CheckSpace(e)
	})
	if tooBig, ok := errors.AsType[*image.SpaceError](err); ok {
		return usageErrorf("%w", tooBig)
	}
	if errors.Is(err, errInterrupted) && ctx.Err() == nil {
		return err
	}
	return nil
}
