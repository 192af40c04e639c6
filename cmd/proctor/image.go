package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/oci/image"
)

func newImage(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "image",
		Aliases: []string{"images"},
		Short:   "Pull, list, export and remove the images of -e sandbox",
		Long: `image works on the images that -e sandbox keeps, in PROCTOR_CACHE_DIR. Docker's
images are not listed.

A reference is a name in a registry, oci:DIR[:TAG] for an OCI layout, or
docker-archive:FILE[:TAG] for what docker save wrote. Credentials are those of
docker login. With PROCTOR_CACHE_LIMIT=20GB images that were not used the longest
are removed when something is added beyond that.`,
		Example: `  proctor image pull debian:12
  proctor image pull -p my-tasks
  proctor image list
  proctor image prune --unused-for 720h`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImagePull(env), newImageList(env), newImageRemove(env), newImageExport(env), newImagePrune(env))
	return cmd
}

// withImages opens the store of images for as long as use takes. An interrupt
// ends that.
func withImages(ctx context.Context, env *Env, opts image.Options, use func(context.Context, *image.Store) error) (err error) {
	ctx, stop := interruptible(ctx, env)
	defer stop()
	dirs, err := findDirectories(env)
	if err != nil {
		return err
	}
	if opts.Limit, err = sandboxes.CacheLimit(env.Getenv); err != nil {
		return err
	}
	opts.Keychain, opts.Now = image.DockerKeychain(env.Getenv), env.Now
	store, err := image.Open(dirs.Images(), opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := use(ctx, store); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	return nil
}

func newImageList(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the images, the last used one first",
		Long: `list shows the images that are there. What several images share counts in the
size of each; "own" is what removing the image frees.`,
		Example: `  proctor image list
  proctor image list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withImages(cmd.Context(), env, image.Options{Offline: true}, func(ctx context.Context, s *image.Store) error {
				all, err := s.List(ctx)
				if err != nil {
					return err
				}
				return printImages(env, all, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image, nothing else")
	return cmd
}

func printImages(env *Env, all []image.Stored, asJSON bool) error {
	t := console.NewTable("Image", "ID", "Layers", "Size", "Own", "Last used")
	for _, one := range all {
		if asJSON {
			if err := encodeJSON(env.Stdout, one); err != nil {
				return err
			}
			continue
		}
		used := env.Now().Sub(one.Used).Round(time.Minute).String() + " ago"
		if one.InUse {
			used = "in use"
		}
		names := make([]string, len(one.Refs))
		for i, ref := range one.Refs {
			names[i] = shortRef(ref)
		}
		t.Row(clean(cmp.Or(strings.Join(names, "\n"), "-")), shortID(one.ID), strconv.Itoa(one.Layers), megabytes(one.Bytes), megabytes(one.OwnBytes), used)
	}
	if asJSON {
		return nil
	}
	if len(all) == 0 {
		_, _ = fmt.Fprintln(env.Stdout, "no images")
		return nil
	}
	_, _ = lipgloss.Fprintln(env.Stdout, t.Render())
	_, _ = fmt.Fprintf(env.Stdout, "%s\n", count(len(all), "image"))
	return nil
}

// shortRef leaves out what users leave out too.
func shortRef(ref string) string {
	ref = strings.TrimPrefix(ref, "index.docker.io/")
	return strings.TrimPrefix(ref, "library/")
}

func shortID(id string) string {
	hex := strings.TrimPrefix(id, "sha256:")
	return hex[:min(len(hex), 12)]
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func newImageRemove(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "rm REF|ID...",
		Aliases: []string{"remove"},
		Short:   "Remove images, and the layers that no other image has",
		Long: `rm removes images by name, or by the beginning of their ID. An image with several
names loses the one that is given. What a running proctor uses is not removed.`,
		Example: `  proctor image rm debian:12
  proctor image rm 0f2e6a4b1c3d`,
		Args: atLeastOne("no image is given", "proctor image rm REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withImages(cmd.Context(), env, image.Options{Offline: true}, func(ctx context.Context, s *image.Store) error {
				var errs []error
				for _, ref := range args {
					done, err := s.Remove(ctx, ref)
					if errors.Is(err, image.ErrInUse) || errors.Is(err, sandbox.ErrImageNotFound) {
						err = withHint(usageErrorf("%w", err), "'proctor image list' shows what is there and in use")
					}
					if err != nil {
						errs = append(errs, err)
						continue
					}
					if err := printPruned(env, done, asJSON, "removed "+ref); err != nil {
						return err
					}
				}
				return errors.Join(errs...)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per image, nothing else")
	return cmd
}

// atLeastOne refuses a command line without arguments.
func atLeastOne(problem, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return withHint(usageErrorf("%s", problem), "%s", hint)
		}
		return nil
	}
}

// jsonPruned is what rm and prune print with --json.
type jsonPruned struct {
	Images     int   `json:"images"`
	Layers     int   `json:"layers"`
	FreedBytes int64 `json:"freed_bytes"`
	DryRun     bool  `json:"dry_run"`
}

func printPruned(env *Env, done image.Pruned, asJSON bool, what string) error {
	if asJSON {
		return encodeJSON(env.Stdout, jsonPruned{done.Images, done.Layers, done.Bytes, false})
	}
	_, _ = fmt.Fprintf(env.Stdout, "%s (%s, %s)\n", clean(what), count(done.Layers, "layer"), megabytes(done.Bytes))
	return nil
}

type imagePruneFlags struct {
	json, dryRun, all bool
	unusedFor         time.Duration
	to                string
}

func newImagePrune(env *Env) *cobra.Command {
	f := &imagePruneFlags{}
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove unused images, or shrink the cache to a size",
		Long: `prune removes images that were not used for a week, or with --to the ones that
were not used the longest until the rest is no larger than that, and the caches of
builds with them. What a running proctor uses stays.`,
		Example: `  proctor image prune --dry-run
  proctor image prune --unused-for 24h
  proctor image prune --to 20GB
  proctor image prune --all`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.all && f.to != "" || (f.all || f.to != "") && cmd.Flags().Changed("unused-for") {
				return usageErrorf("give one of --unused-for, --to and --all")
			}
			return withImages(cmd.Context(), env, image.Options{Offline: true}, func(ctx context.Context, s *image.Store) error {
				return pruneStore(ctx, env, f, s)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.DurationVar(&f.unusedFor, "unused-for", imageTTL, "remove what was not used for this `time`")
	fs.StringVar(&f.to, "to", "", "remove what was not used the longest until the rest has this `size`, such as 20GB")
	fs.BoolVar(&f.all, "all", false, "remove everything that is not in use")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func pruneStore(ctx context.Context, env *Env, f *imagePruneFlags, s *image.Store) error {
	var done image.Pruned
	var err error
	switch {
	case f.all:
		done, err = s.Shrink(ctx, 0, f.dryRun)
	case f.to != "":
		var size int64
		if size, err = sandboxes.ParseSize(f.to); err != nil {
			return usageErrorf("--to: %w", err)
		}
		done, err = s.Shrink(ctx, size, f.dryRun)
	default:
		done, err = s.RemoveUnused(ctx, env.Now().Add(-f.unusedFor), f.dryRun)
	}
	if err != nil {
		return err
	}
	if f.json {
		return encodeJSON(env.Stdout, jsonPruned{done.Images, done.Layers, done.Bytes, f.dryRun})
	}
	verb := "removed"
	if f.dryRun {
		verb = "would remove"
	}
	_, _ = fmt.Fprintf(env.Stdout, "%s %s (%s)\n", verb, count(done.Images, "image"), megabytes(done.Bytes))
	return nil
}

func newImageExport(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export REF FILE",
		Short: "Write an image that is there to a file",
		Long: `export writes an image as a tar that 'docker load', 'podman load' and
docker-archive:FILE read, and that is an OCI layout when it is unpacked. Its files
and settings are the image's; layers are packed anew, with digests of their own.
The file appears when all of it is written.`,
		Example: `  proctor image export debian:12 debian.tar`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return withHint(usageErrorf("want an image and a file, have %s", count(len(args), "argument")), "proctor image export REF FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withImages(cmd.Context(), env, image.Options{Offline: true}, func(ctx context.Context, s *image.Store) error {
				img, err := s.Find(ctx, args[0])
				if errors.Is(err, sandbox.ErrImageNotFound) {
					return withHint(usageErrorf("%w", err), "'proctor image list' shows what is there; 'proctor image pull' gets it")
				}
				if err != nil {
					return err
				}
				return exportImage(ctx, s, img, args[0], args[1])
			})
		},
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	return cmd
}

// exportImage writes the file under another name beside it first.
func exportImage(ctx context.Context, s *image.Store, img image.Image, ref, file string) (err error) {
	name := ref
	if strings.HasPrefix(ref, "sha256:") || img.ID == "sha256:"+ref || !strings.ContainsAny(ref, ":/@.") && len(ref) >= 12 {
		name = ""
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("exporting %q: %w", ref, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if err := errors.Join(s.Export(ctx, img, name, tmp), tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), file); err != nil {
		return fmt.Errorf("exporting %q: %w", ref, err)
	}
	return nil
}
