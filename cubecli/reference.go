package cubecli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cube/cubetest"
	"github.com/proctor-run/proctor/internal/exitcode"
)

// baselineFile is the report file of --save-baseline (CUBE, section 10.4).
const baselineFile = "cube_stress_test_baseline.json"

// referenceFlags are those of the reference's command "test".
type referenceFlags struct {
	on, baseline, noReset, ci, noColor bool
	maxSteps                           int
	output                             string
}

func (r *referenceFlags) define(fs *pflag.FlagSet) {
	fs.BoolVar(&r.on, "reference", false, "run the checks of the reference, with its output and exit code; the flags below do so, too")
	fs.IntVar(&r.maxSteps, "max-steps", cubetest.DefaultMaxSteps, "steps that an episode may take")
	fs.StringVar(&r.output, "output", "", "write the report to this `file`")
	fs.BoolVar(&r.baseline, "save-baseline", false, "write the report to "+baselineFile)
	fs.BoolVar(&r.noReset, "no-reset-check", false, "do not check that a reset can be reproduced")
	fs.BoolVar(&r.ci, "ci", false, "plain lines, as they are anyway")
	fs.BoolVar(&r.noColor, "no-color", false, "no colours, as there are none anyway")
}

// asked reports whether the checks of the reference are wanted.
func (r *referenceFlags) asked(fs *pflag.FlagSet) bool {
	return r.on || r.baseline || r.noReset || r.ci || r.output != "" || fs.Changed("max-steps")
}

func (r *referenceFlags) file() string {
	if r.output == "" && r.baseline {
		return baselineFile
	}
	return r.output
}

// referenceTest is the reference's command "test".
func (p *Program) referenceTest(ctx context.Context, c *Cube, f *taskFlags, r referenceFlags) error {
	if r.maxSteps < 1 {
		return exitcode.Usagef("--max-steps must be at least 1")
	}
	return p.withTestOptions(ctx, c, f, func(o cube.Options) error {
		reg := cube.NewRegistry(o)
		sel, err := c.Select(reg, o.Sandbox, f.choice)
		if err != nil {
			return err
		}
		meta, err := sel.Metadata()
		if err != nil {
			return err
		}
		infra, err := c.infra(o.Sandbox)
		if err != nil {
			return err
		}
		out, err := cubetest.Debug(ctx, cubetest.Suite{
			Registry: reg, Config: sel.Config(), Agent: c.Agent, Infra: infra, MaxSteps: r.maxSteps, Now: p.Now,
		}, r.noReset)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return p.printReference(out, meta.Version, f.json, r.file())
	})
}

func (p *Program) printReference(out *cubetest.Outcome, version string, asJSON bool, file string) (err error) {
	if file != "" {
		if err := os.WriteFile(file, out.ReportFile(version, p.Now()), 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if asJSON {
		_, err = fmt.Fprintf(p.Stdout, "%s\n", cubetest.JSON(out.Benchmark, out.Reports))
	} else {
		err = out.WriteText(p.Stdout, file)
	}
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	if code := out.ExitCode(); code != exitcode.OK {
		return exitcode.Quiet(code)
	}
	return nil
}
