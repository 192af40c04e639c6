package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/cubecli/sandboxes"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/procid"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

type agentBuildFlags struct {
	environment, runtime, image, version string
	hardened, allowRemote                bool
	anew, json                           bool
}

func newAgentBuild(env *Env) *cobra.Command {
	f := &agentBuildFlags{}
	cmd := &cobra.Command{
		Use:   "build NAME|FILE",
		Short: "Install an agent once, for all images",
		Long: `build installs the program of an agent in a sandbox of an image, and keeps it for
the trials of every image; where it does not run in one, its trials install it there.
The image decides what the program is: choose one that you trust. With -e host it is
this machine, which needs no image.

Without build the first job installs the agent once for each image of its tasks.`,
		Example: `  proctor agent build pi -e host
  proctor agent build claude-code -e docker --image debian:12
  proctor agent build ./my-agent.toml -e sandbox --image docker-archive:debian.tar`,
		Args: oneAgent,
		RunE: func(cmd *cobra.Command, args []string) error { return buildAgent(cmd.Context(), env, f, args[0]) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.environment, "env", "e", sandboxes.Auto, "the `environment` that the sandbox is of")
	fs.StringVar(&f.runtime, "runtime", "", "how sandboxes are isolated: the `runtime` of -e sandbox and host")
	fs.StringVar(&f.image, "image", "", "the `image`; not needed with -e host")
	fs.StringVar(&f.version, "version", "", "install this `version` (default: the one of the agent's file)")
	fs.BoolVar(&f.anew, "force", false, "install it again where that has been done")
	jobcli.DefineHardening(fs, &f.hardened, &f.allowRemote)
	fs.BoolVar(&f.json, "json", false, "print one JSON object, nothing else")
	return cmd
}

func buildAgent(ctx context.Context, env *Env, f *agentBuildFlags, name string) error {
	d, err := findDefinition(env, name)
	if err != nil {
		return err
	}
	cfg := agent.Config{Name: d.Name, Lookup: env.Lookup}
	if f.version != "" {
		cfg.Settings = value.NewObject(1)
		cfg.Settings.Set("version", value.Str(f.version))
	}
	e := d.Entry()
	if e.Install == nil {
		return usageErrorf("the file of agent %s does not say how it is installed", d.Name)
	}
	in, err := e.Install(cfg)
	if err != nil {
		return usageErrorf("%w", err)
	}
	store := program(env).Layers()
	if store == nil {
		return withHint(usageErrorf("there is no place to keep the agent in"), "set HOME or PROCTOR_CACHE_DIR")
	}
	ctx, stop := interruptible(ctx, env)
	defer stop()
	l, err := f.build(ctx, env, store, in)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	if f.json {
		return encodeJSON(env.Stdout, l)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s %s is installed for all images: %s\n", clean(l.Agent), clean(l.Version), megabytes(l.Bytes))
	return outputError(err)
}

func (f *agentBuildFlags) build(ctx context.Context, env *Env, store *layer.Store, in *agent.Installation) (l layer.Layer, err error) {
	asked := backendOptions{Options: sandboxes.Options{Runtime: f.runtime, Hardened: f.hardened, AllowRemoteEngine: f.allowRemote}}
	if asked.name, err = sandboxes.Choose(ctx, f.environment, asked.in(env)); err != nil {
		return l, err
	}
	b, release, err := readyBackend(ctx, env, asked)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, release()) }()
	can := b.Capabilities()
	if f.image == "" && !can.OwnRoot {
		return l, withHint(usageErrorf("environment %s needs an image", asked.name), "give one that you trust with --image, or use -e host")
	}
	owner, err := procid.Self()
	if err != nil {
		return l, fmt.Errorf("identifying this process: %w", err)
	}
	say := func(message string) {
		if !f.json {
			_, _ = fmt.Fprintf(env.Stderr, "proctor: %s\n", clean(message))
		}
	}
	say(fmt.Sprintf("installing %s %s", in.Agent, in.Version))
	begun := env.Now()
	spec := sandbox.Spec{
		Name: "agent-" + in.Agent, Labels: sandbox.Labels{Owner: owner}, Image: sandbox.Image{Ref: f.image},
		Network: layer.Network(in, can), Progress: say,
	}
	l, err = store.Build(ctx, in, layer.Image{}, layer.Builder{
		Create: func(ctx context.Context) (sandbox.Sandbox, error) { return b.Create(ctx, spec) },
		Env:    agent.Env{Lookup: env.Lookup, OutputLimit: maxInstallOutput},
		Anew:   f.anew,
	})
	if err == nil {
		say(fmt.Sprintf("it took %s", env.Now().Sub(begun).Round(100*time.Millisecond)))
	}
	return l, err
}

// maxInstallOutput bounds what is kept of an installation's output, in bytes.
const maxInstallOutput = 16 << 20

func newAgentRemove(env *Env) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"remove"},
		Short:   "Remove what was installed of an agent",
		Long: `rm deletes the files of an agent that were kept, for all images. The next job that
needs them installs them again. Do not remove what a running job uses.`,
		Example: `  proctor agent rm pi
  proctor agent rm --all`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return noArguments(cmd, args)
			}
			return oneAgent(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if !all {
				name = args[0]
			}
			return removeLayers(env, name, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove what was installed of every agent")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each thing that is removed")
	cmd.ValidArgsFunction = completeWords(agents(env).Names()...)
	return cmd
}

func removeLayers(env *Env, name string, asJSON bool) error {
	s := program(env).Layers()
	if s == nil {
		return nil
	}
	gone, err := s.Remove(name)
	if err != nil {
		return err
	}
	for _, l := range gone {
		if asJSON {
			if err := encodeJSON(env.Stdout, l); err != nil {
				return err
			}
			continue
		}
		_, _ = fmt.Fprintf(env.Stdout, "removed %s %s, %s\n", clean(l.Agent), clean(l.Version), megabytes(l.Bytes))
	}
	if len(gone) == 0 && !asJSON {
		_, _ = fmt.Fprintln(env.Stdout, "nothing was installed")
	}
	return nil
}
