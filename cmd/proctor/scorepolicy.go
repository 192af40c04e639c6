package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// policyFlags ask for a score under a policy other than Harbor's mean.
type policyFlags struct {
	aggregate, keep, file string
	drop                  int
	threshold             float64

	asked  bool
	policy score.Policy
}

// policyNames are the flags that ask for a policy, the file aside, which says all that
// they say.
var policyNames = []string{"aggregate", "keep", "drop-lowest", "threshold"}

func (f *policyFlags) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.aggregate, "aggregate", string(outcome.MeanOfAttempts), "`how` the attempts at a task become one score: mean or best-of-k")
	fs.StringVar(&f.keep, "keep", string(outcome.KeepAll), "`which` tasks count: off (all), best-of-k (the best one), drop-lowest-n or threshold-band")
	fs.IntVar(&f.drop, "drop-lowest", 0, "`number` of tasks that --keep drop-lowest-n drops; one always stays")
	fs.Float64Var(&f.threshold, "threshold", 0, "least `score` that --keep threshold-band keeps, from 0 to 1")
	fs.StringVar(&f.file, "policy", "", "`file` with a policy that was fixed before the job ran, as JSON")
	register(cmd, "aggregate", completeWords(string(outcome.MeanOfAttempts), string(outcome.BestOfK)))
	register(cmd, "keep", completeWords(string(outcome.KeepAll), string(outcome.KeepBest), string(outcome.DropLowest), string(outcome.KeepAboveBound)))
}

// maxPolicy bounds a policy's file, in bytes.
const maxPolicy = 1 << 20

// read makes the policy of the flags.
func (f *policyFlags) read(fs *pflag.FlagSet) (err error) {
	f.asked = fs.Changed("policy")
	for _, name := range policyNames {
		if fs.Changed("policy") && fs.Changed(name) {
			return usageErrorf("--policy says all of the policy: it does not go with --%s", name)
		}
		f.asked = f.asked || fs.Changed(name)
	}
	if !f.asked {
		return nil
	}
	if fs.Changed("policy") {
		data, err := bounded.ReadFile(f.file, maxPolicy)
		if err != nil {
			return usageErrorf("%w", err)
		}
		fixed, err := outcome.ParsePolicy(data)
		if err != nil {
			return usageErrorf("%s: %w", f.file, err)
		}
		f.policy = score.Policy{Aggregation: fixed.Aggregation, Keep: fixed.Keep, Fixed: true}
		return nil
	}
	if f.policy.Aggregation, err = outcome.ParseAggregation(f.aggregate); err != nil {
		return usageErrorf("--aggregate: %w", err)
	}
	if f.policy.Keep.Policy, err = outcome.ParseKeepPolicy(f.keep); err != nil {
		return usageErrorf("--keep: %w", err)
	}
	f.policy.Keep.Drop, f.policy.Keep.Threshold = f.drop, f.threshold
	for name, policy := range map[string]outcome.KeepPolicy{"drop-lowest": outcome.DropLowest, "threshold": outcome.KeepAboveBound} {
		if fs.Changed(name) && f.policy.Keep.Policy != policy {
			return usageErrorf("--%s: it is for --keep %s", name, policy)
		}
	}
	if _, err := f.policy.Keep.Of(nil); err != nil {
		return usageErrorf("--keep: %w", err)
	}
	return nil
}

// of is the score of a job under the policy; nil where none was asked for.
func (f *policyFlags) of(r *score.Rescored) (*score.PolicyScore, error) {
	if !f.asked {
		return nil, nil
	}
	s, err := r.Policy(f.policy)
	if err != nil {
		return nil, usageErrorf("%s: %w", r.Dir, err)
	}
	return &s, nil
}

func printPolicy(w io.Writer, s *score.PolicyScore) {
	p := s.Policy
	_, _ = fmt.Fprintf(w, "\nPolicy: %s of the attempts at a task, keep %s", p.Aggregation, p.Keep.Policy)
	switch p.Keep.Policy {
	case outcome.DropLowest:
		_, _ = fmt.Fprintf(w, " (%d)", p.Keep.Drop)
	case outcome.KeepAboveBound:
		_, _ = fmt.Fprintf(w, " (%s)", value.FloatRepr(p.Keep.Threshold))
	}
	_, _ = fmt.Fprintf(w, "\nScore %s: %d of %s kept, %d passed\n", value.FloatRepr(s.Score), len(s.Kept), count(s.Total, "task"), s.Passed)
}
