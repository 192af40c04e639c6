package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/ownfiles"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
)

func newAgent(env *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "agent",
		Aliases: []string{"agents"},
		Short:   "List, show, check and install the agents that can be run by name",
		Long: `agent works on the agents that -a names. Those that are programs of their own are
described by files, which 'agent show NAME --file' prints; files of your own are used
with -a ./my-agent.toml, or by name when they lie in PROCTOR_AGENTS_DIR
(~/.config/proctor/agents).

The program of such an agent is installed once for each image, before the first job
that needs it, and kept in PROCTOR_CACHE_DIR. 'agent build' installs it once for all
images.`,
		Example: `  proctor agent list
  proctor agent show claude-code
  proctor agent build pi -e docker --image debian:12
  proctor agent show pi --file > my-pi.toml && proctor agent check my-pi.toml`,
		Args: noUnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAgentList(env), newAgentShow(env), newAgentCheck(env), newAgentBuild(env), newAgentRemove(env))
	return cmd
}

// jsonAgent is what list and show print of an agent.
type jsonAgent struct {
	Name    string  `json:"name"`
	Summary string  `json:"summary"`
	Version *string `json:"version"`
	// Kind is "built in", "program" or "file".
	Kind string   `json:"kind"`
	APIs []string `json:"apis"`
	// Tried is whether the program has been seen to work as it is described.
	Tried bool `json:"tried"`
	// Cubes is whether it plays the tasks of cubes.
	Cubes    bool          `json:"plays_cubes"`
	Settings []jsonSetting `json:"settings,omitempty"`
	Layers   []layer.Layer `json:"installed"`
}

type jsonSetting struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

const (
	builtIn      = "built in"
	ownProgram   = "program"
	fileOfAUsers = "file"
)

// known are the agents by name, those of the user's directory last.
func knownAgents(env *Env) ([]jsonAgent, error) {
	kept, err := keptLayers(env)
	if err != nil {
		return nil, err
	}
	programs := map[string]*installed.Definition{}
	kind := map[string]string{}
	for _, d := range installed.Definitions() {
		programs[d.Name], kind[d.Name] = d, ownProgram
	}
	own, err := installed.InDirectory(ownfiles.Agents(env.Lookup))
	if err != nil {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: warning: %s\n", clean(exception.PlainText(err)))
	}
	var all []jsonAgent
	for _, e := range agents(env).Entries() {
		if e.Sandboxed == nil && e.Stepped == nil {
			continue
		}
		all = append(all, describeAgent(e, programs[e.Name], cmp.Or(kind[e.Name], builtIn), kept))
	}
	for _, d := range own {
		if programs[d.Name] == nil {
			all = append(all, describeAgent(d.Entry(), d, fileOfAUsers, kept))
		}
	}
	return all, nil
}

func describeAgent(e agent.Entry, d *installed.Definition, kind string, kept []layer.Layer) jsonAgent {
	a := jsonAgent{Name: e.Name, Summary: e.Summary, Kind: kind, APIs: []string{}, Layers: []layer.Layer{}, Tried: kind == builtIn, Cubes: e.PlaysCubes()}
	for _, s := range e.Settings {
		a.Settings = append(a.Settings, jsonSetting{Name: s.Name, Summary: s.Summary})
	}
	if d == nil {
		return a
	}
	a.Tried = d.Tried
	if d.Version != "" {
		a.Version = &d.Version
	}
	for _, api := range d.Model.APIs {
		a.APIs = append(a.APIs, string(api))
	}
	for _, l := range kept {
		if l.Agent == d.Name {
			a.Layers = append(a.Layers, l)
		}
	}
	return a
}

func keptLayers(env *Env) ([]layer.Layer, error) {
	s := program(env).Layers()
	if s == nil {
		return nil, nil
	}
	return s.List()
}

func newAgentList(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the agents that can be run, and what is installed of them",
		Long: `list shows every agent that -a takes: what is installed of it, and in which
protocols it can speak to a model. "untried" are agents whose file follows their
documents, while nobody has seen it work.`,
		Example: `  proctor agent list`,
		Args:    noArguments,
		RunE:    func(*cobra.Command, []string) error { return listAgents(env, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per agent, nothing else")
	return cmd
}

func listAgents(env *Env, asJSON bool) error {
	all, err := knownAgents(env)
	if err != nil {
		return err
	}
	t := console.NewTable("Agent", "Version", "Protocols", "Installed", "What it is")
	for _, a := range all {
		if asJSON {
			a.Settings = nil
			if err := encodeJSON(env.Stdout, a); err != nil {
				return err
			}
			continue
		}
		version := "-"
		if a.Version != nil {
			version = *a.Version
		}
		if !a.Tried {
			version += " (untried)"
		}
		t.Row(clean(a.Name), clean(version), cmp.Or(strings.Join(a.APIs, ", "), "-"), installedText(a.Layers), clean(a.Summary))
	}
	if asJSON {
		return nil
	}
	_, _ = lipgloss.Fprintln(env.Stdout, t.Render())
	return nil
}

func installedText(all []layer.Layer) string {
	var bytes int64
	general, images := false, 0
	for _, l := range all {
		bytes += l.Bytes
		if l.General {
			general = true
		} else {
			images++
		}
	}
	switch {
	case len(all) == 0:
		return "-"
	case general && images > 0:
		return fmt.Sprintf("for all, and %s (%s)", count(images, "image"), megabytes(bytes))
	case general:
		return fmt.Sprintf("for all images (%s)", megabytes(bytes))
	}
	return fmt.Sprintf("for %s (%s)", count(images, "image"), megabytes(bytes))
}

// findDefinition finds the file of an agent by name or path.
func findDefinition(env *Env, name string) (*installed.Definition, error) {
	if installed.IsFile(name) {
		d, err := installed.Load(name)
		if err != nil {
			return nil, usageErrorf("%w", err)
		}
		return d, nil
	}
	own, err := installed.InDirectory(ownfiles.Agents(env.Lookup))
	all := append(installed.Definitions(), own...)
	names := make([]string, len(all))
	for i, d := range all {
		if d.Name == name {
			return d, nil
		}
		names[i] = d.Name
	}
	if e, ok := agents(env).Find(name); ok && e.Open == nil && e.Sandboxed != nil && !slices.Contains(names, name) {
		return nil, usageErrorf("agent %s is part of proctor, and has no file", name)
	}
	hint := cmp.Or(suggest.DidYouMean("", suggest.Nearest(name, names)), "choose from "+strings.Join(names, ", "))
	return nil, withHint(errors.Join(usageErrorf("there is no agent %q with a file", name), err), "%s", hint)
}

func newAgentShow(env *Env) *cobra.Command {
	var asJSON, file bool
	cmd := &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Show an agent: its settings, how it is installed and run",
		Long: `show tells of an agent what it is, which settings --ak sets, and what is installed
of it. With --file it prints the file that describes it, to make one of your own of.`,
		Example: `  proctor agent show pi
  proctor agent show pi --file > my-pi.toml`,
		Args: oneAgent,
		RunE: func(_ *cobra.Command, args []string) error { return showAgent(env, args[0], asJSON, file) },
	}
	cmd.Flags().BoolVar(&file, "file", false, "print the agent's file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.ValidArgsFunction = completeWords(agents(env).Names()...)
	return cmd
}

// oneAgent asks for the name of one agent.
func oneAgent(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return withHint(usageErrorf("'%s' takes one agent, and %d are given", cmd.CommandPath(), len(args)), "'proctor agent list' lists them")
}

func showAgent(env *Env, name string, asJSON, file bool) error {
	d, err := findDefinition(env, name)
	if err != nil && (file || installed.IsFile(name)) {
		return err
	}
	if file {
		if _, err := fmt.Fprint(env.Stdout, d.Source()); err != nil {
			return fmt.Errorf("printing the agent's file: %w", err)
		}
		return nil
	}
	e, ok := agents(env).Find(name)
	if !ok {
		return err
	}
	kept, err := keptLayers(env)
	if err != nil {
		return err
	}
	kind := builtIn
	if d != nil {
		kind = ownProgram
		if installed.IsFile(name) {
			kind = fileOfAUsers
		}
	}
	a := describeAgent(e, d, kind, kept)
	if asJSON {
		return encodeJSON(env.Stdout, a)
	}
	return printAgent(env, a, d)
}

func printAgent(env *Env, a jsonAgent, d *installed.Definition) error {
	w := &strings.Builder{}
	_, _ = fmt.Fprintf(w, "%s: %s\n", clean(a.Name), clean(a.Summary))
	if d != nil {
		_, _ = fmt.Fprintf(w, "version: %s\n", clean(cmp.Or(d.Version, "the newest")))
		if !d.Tried {
			_, _ = fmt.Fprintln(w, "untried: its file follows its documents, and nobody has seen it work")
		}
		_, _ = fmt.Fprintf(w, "speaks to models in: %s\n", cmp.Or(strings.Join(a.APIs, ", "), "no protocol of others; it finds its vendor by itself"))
		_, _ = fmt.Fprintf(w, "installed with: %s\n", clean(d.HowInstalled()))
		_, _ = fmt.Fprintf(w, "prints to: agent/%s\n", clean(d.Output))
		_, _ = fmt.Fprintf(w, "logs: %s\n", cmp.Or(map[bool]string{true: "read as a trajectory"}[d.Logs != ""], "not read"))
	}
	_, _ = fmt.Fprintf(w, "tasks of cubes: %s\n", cmp.Or(map[bool]string{true: "plays them"}[a.Cubes], "cannot play them"))
	for _, l := range a.Layers {
		where := "all images"
		if !l.General {
			where = "image " + l.Image
		}
		_, _ = fmt.Fprintf(w, "installed: %s for %s, %s\n", clean(l.Version), clean(where), megabytes(l.Bytes))
	}
	if _, err := fmt.Fprint(env.Stdout, w.String()); err != nil {
		return fmt.Errorf("printing the agent: %w", err)
	}
	if len(a.Settings) == 0 {
		return nil
	}
	t := console.NewTable("Setting (--ak)", "What it is")
	for _, s := range a.Settings {
		t.Row(clean(s.Name), clean(s.Summary))
	}
	_, err := lipgloss.Fprintln(env.Stdout, t.Render())
	return outputError(err)
}

func newAgentCheck(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Check files of agents",
		Long: `check reads files of agents, fills in their templates as for a run, and tells what
is wrong: the file, the place in it and what is expected there.`,
		Example: `  proctor agent check my-agent.toml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withHint(usageErrorf("'%s' needs files", cmd.CommandPath()), "'proctor agent show pi --file' prints one to begin with")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return checkAgents(env, args) },
	}
}

func checkAgents(env *Env, files []string) error {
	var errs []error
	for _, file := range files {
		d, err := findDefinition(env, file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, _ = fmt.Fprintf(env.Stdout, "%s: agent %s is valid\n", clean(file), clean(d.Name))
	}
	return errors.Join(errs...)
}

// installFirst installs the program of a trial's agent before it, unless it is there.
func installFirst(ctx context.Context, env *Env, r *trial.Runner, cfg jobdir.TrialConfig, quiet bool) error {
	i := r.Installer(cfg)
	if i == nil {
		return nil
	}
	if !quiet {
		_, _ = fmt.Fprintf(env.Stderr, "proctor: installing %s %s for %s, once for all trials\n", clean(i.Agent), clean(i.Version), clean(i.Image))
	}
	_, err := i.Install(ctx)
	return err
}
