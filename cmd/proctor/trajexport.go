package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir/traces"
	"github.com/proctor-run/proctor/value"
)

// trajExport are the flags of traj export.
type trajExport struct {
	traces.Options
	output           string
	episodes, filter string
	noRecursive      bool
	noSubagents      bool
	skip             bool
}

func newTrajExport(env *Env) *cobra.Command {
	e := &trajExport{}
	cmd := &cobra.Command{
		Use:   "export PATH...",
		Short: "Write trajectories as conversations for training, one JSON object per line",
		Long: `export writes a row for every episode of the trials at or below PATH: the
conversation up to a step of the agent, with the agent, the model, the task and
the result. The rows have the members of Harbor's trace export.

A trial whose agent leaves no trajectory, whose trajectory has images, or whose
result cannot be read ends the export; --skip-unsupported leaves it out.`,
		Example: `  proctor traj export jobs/2026-06-09__10-00-00 > rows.jsonl
  proctor traj export -o rows.jsonl --filter success --episodes last --token-ids jobs`,
		Args: somePaths("directory"),
		RunE: func(_ *cobra.Command, args []string) error { return e.run(env, args) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&e.output, "output", "o", "-", "write to this `file`")
	fs.StringVar(&e.episodes, "episodes", "all", "`which` episodes of a trial: all or last")
	fs.StringVar(&e.filter, "filter", string(traces.All), "`which` trials: all, success (a reward above 0) or failure")
	fs.BoolVar(&e.ShareGPT, "sharegpt", false, "add each conversation in the form of ShareGPT")
	fs.BoolVar(&e.TokenIDs, "token-ids", false, "add token ids and log probabilities, where the trajectory has them, per turn of the assistant")
	fs.BoolVar(&e.Instruction, "instruction-metadata", false, "add the task's instruction")
	fs.BoolVar(&e.VerifierOutput, "verifier-metadata", false, "add what the tests printed")
	fs.BoolVar(&e.noSubagents, "no-subagents", false, "leave the trajectories of subagents out")
	fs.BoolVar(&e.WithoutTools, "no-tools", false, "leave the definitions of tools out of the conversations")
	fs.BoolVar(&e.noRecursive, "no-recursive", false, "PATH is one trial; do not look for others below it")
	fs.BoolVar(&e.skip, "skip-unsupported", false, "leave out trials that cannot be exported, and name them")
	register(cmd, "episodes", completeWords("all", "last"))
	register(cmd, "filter", completeWords(string(traces.All), string(traces.Success), string(traces.Failure)))
	return cmd
}

func (e *trajExport) run(env *Env, paths []string) error {
	switch e.episodes {
	case "all", "last":
		e.Last = e.episodes == "last"
	default:
		return usageErrorf("--episodes must be one of: all, last")
	}
	switch e.Keep = traces.Filter(e.filter); e.Keep {
	case traces.All, traces.Success, traces.Failure:
	default:
		return usageErrorf("--filter must be one of: success, failure, all")
	}
	e.Subagents = !e.noSubagents
	var trials []string
	for _, p := range paths {
		found, err := traces.Find(p, !e.noRecursive)
		if err != nil {
			return usageErrorf("%w", err)
		}
		if len(found) == 0 {
			return withHint(usageErrorf("there is no trial in %q", p), "a trial's directory holds a directory called agent")
		}
		trials = append(trials, found...)
	}
	if e.output == "-" {
		return e.write(env, env.Stdout, trials)
	}
	return e.writeFile(env, trials)
}

// writeFile writes the file under another name first, so that no reader sees half
// of it and nothing is lost when a trial cannot be exported.
func (e *trajExport) writeFile(env *Env, trials []string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(e.output), ".proctor-export-*")
	if err != nil {
		return usageErrorf("writing the rows: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if err := e.write(env, f, trials); err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o644), f.Close(), os.Rename(f.Name(), e.output)); err != nil {
		return fmt.Errorf("writing the rows: %w", err)
	}
	return nil
}

func (e *trajExport) write(env *Env, out io.Writer, trials []string) error {
	w := bufio.NewWriter(out)
	rows, skipped := 0, 0
	var broken error // of out
	for _, dir := range trials {
		err := traces.Read(dir, e.Options, func(r traces.Row) error {
			rows++
			if _, err := w.Write(append(value.AppendPydantic(nil, r, 0), '\n')); err != nil {
				broken = fmt.Errorf("writing the rows: %w", err)
			}
			return broken
		})
		_, unsupported := errors.AsType[*traces.UnsupportedError](err)
		unsupported = unsupported || errors.Is(err, traces.ErrImages) || errors.Is(err, traces.ErrResult)
		switch {
		case unsupported && e.skip:
			skipped++
			_, _ = fmt.Fprintf(env.Stderr, "left out: %s: %s\n", clean(dir), clean(exception.PlainText(err)))
		case unsupported:
			return withHint(usageErrorf("%s: %w", dir, err), "--skip-unsupported leaves such trials out")
		case broken != nil:
			return broken
		case err != nil:
			return usageErrorf("%w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the rows: %w", err)
	}
	_, _ = fmt.Fprintf(env.Stderr, "%s of %s\n", count(rows, "row"), count(len(trials)-skipped, "trial"))
	return nil
}
