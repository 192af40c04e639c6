package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/suggest"
)

// trajConvert are the flags of traj convert.
type trajConvert struct {
	agent, model, instruction, output string
}

func newTrajConvert(env *Env) *cobra.Command {
	c := &trajConvert{}
	cmd := &cobra.Command{
		Use:   "convert --agent NAME LOGDIR",
		Short: "Make a trajectory of what an agent logged",
		Long: `convert reads the session that an agent left in its log directory, or in the
directory agent of a trial, and writes it as a trajectory with tokens and, where
the agent says it, cost. Images go into the directory images beside the file.
Files of which something is missing are named on standard error.

Agents: ` + strings.Join(agents(env).LogNames(), ", ") + `.`,
		Example: `  proctor traj convert --agent claude-code jobs/2026-06-09__10-00-00/hello-world__AbCdEfG
  proctor traj convert --agent pi -o trajectory.json agent`,
		Args: oneDirectory("log"),
		RunE: func(_ *cobra.Command, args []string) error { return c.run(env, args[0]) },

		ValidArgsFunction: completionOf("convert LOGDIR"),
	}
	fs := cmd.Flags()
	fs.StringVarP(&c.agent, "agent", "a", "", "the `agent` that wrote the logs")
	fs.StringVarP(&c.model, "model", "m", "", "the `model` that was configured, with its provider")
	fs.StringVar(&c.instruction, "instruction", "", "`file` with what the agent was told, for logs that do not have it (opencode, kilo)")
	fs.StringVarP(&c.output, "output", "o", "-", "write to this `file`")
	register(cmd, "agent", completeWords(agents(env).LogNames()...))
	return cmd
}

func (c *trajConvert) run(env *Env, dir string) error {
	if c.agent == "" {
		return withHint(usageErrorf("missing --agent"), "choose from %s", strings.Join(agents(env).LogNames(), ", "))
	}
	if below := filepath.Join(dir, "agent"); isDirectory(below) {
		dir = below
	}
	in := logs.Input{Dir: dir, Model: c.model}
	if c.instruction != "" {
		data, err := bounded.ReadFile(c.instruction, maxInstruction)
		if err != nil {
			return usageErrorf("reading the instruction: %w", err)
		}
		in.Instruction = string(data)
	}
	made, err := agents(env).ReadLogs(c.agent, in)
	if bad, ok := errors.AsType[*agent.UnknownLogsError](err); ok {
		return withHint(usageErrorf("%w", err), "%s", suggest.DidYouMean("", suggest.Nearest(bad.Agent, bad.Known)))
	}
	if err != nil {
		return usageErrorf("%w", err)
	}
	for _, what := range made.Truncated {
		_, _ = fmt.Fprintf(env.Stderr, "warning: %s\n", clean(what))
	}
	if made.Failure != "" {
		_, _ = fmt.Fprintf(env.Stderr, "%s says that it failed: %s\n", clean(c.agent), clean(made.Failure))
	}
	t := made.Trajectory
	if t == nil {
		return usageErrorf("there is no session of %s in %q", c.agent, dir)
	}
	data := t.Append(nil, made.Style)
	if c.output == "-" {
		if _, err := env.Stdout.Write(append(data, '\n')); err != nil {
			return fmt.Errorf("writing the trajectory: %w", err)
		}
		if n := len(made.Images); n > 0 {
			_, _ = fmt.Fprintf(env.Stderr, "%s not written: -o FILE says where they belong\n", countIs(n, "image", "images"))
		}
	} else if err := made.WriteFile(c.output, nil); err != nil {
		return usageErrorf("writing the trajectory: %w", err)
	}
	_, _ = fmt.Fprintln(env.Stderr, convertedText(made))
	return nil
}

// maxInstruction is the size of the largest instruction.
const maxInstruction = 16 << 20

// convertedText sums a trajectory up.
func convertedText(made *logs.Converted) string {
	parts := append([]string{count(len(made.Trajectory.Steps), "step")}, tokensText(made.InputTokens, made.CachedTokens, made.OutputTokens)...)
	if made.CostUSD != nil {
		parts = append(parts, costText(*made.CostUSD))
	}
	return strings.Join(parts, ", ")
}
