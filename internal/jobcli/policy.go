package jobcli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// PolicyFlags ask for a score under a policy other than Harbor's mean.
type PolicyFlags struct {
	aggregate, keep, file string
	drop                  int
	threshold             float64
	// Instead: the score of the result line is the policy's, not Harbor's.
	Instead bool

	set   *pflag.FlagSet // that the flags are defined in; nil for a command without them
	asked *score.Policy
}

// policyParameters are flags that are for one policy alone.
var policyParameters = []struct {
	name   string
	policy outcome.KeepPolicy
}{{"drop-lowest", outcome.DropLowest}, {"threshold", outcome.KeepAboveBound}}

// Define defines the flags; file says what that of --policy is for.
func (f *PolicyFlags) Define(fs *pflag.FlagSet, file string) {
	f.set = fs
	fs.StringVar(&f.aggregate, "aggregate", string(outcome.MeanOfAttempts), "`how` the attempts at a task become one score: mean or best-of-k")
	fs.StringVar(&f.keep, "keep", string(outcome.KeepAll), "`which` tasks count: off (all), best-of-k (the best one), drop-lowest-n or threshold-band")
	fs.IntVar(&f.drop, "drop-lowest", 0, "`number` of tasks that --keep drop-lowest-n drops; one always stays")
	fs.Float64Var(&f.threshold, "threshold", 0, "least `score` that --keep threshold-band keeps, from 0 to 1")
	fs.StringVar(&f.file, "policy", "", file)
}

// DefineInstead defines what puts the policy's score in the place of Harbor's.
func (f *PolicyFlags) DefineInstead(fs *pflag.FlagSet) {
	fs.BoolVar(&f.Instead, "score-by-policy", false, "the result line's score and resolved are those of the policy, not Harbor's")
}

// Read makes the policy of the flags.
func (f *PolicyFlags) Read() error {
	if f.set == nil {
		return nil
	}
	byFile := f.set.Changed("policy")
	byFlags := false
	for _, name := range []string{"aggregate", "keep", "drop-lowest", "threshold"} {
		if byFile && f.set.Changed(name) {
			return exitcode.Usagef("--policy says all of the policy: it does not go with --%s", name)
		}
		byFlags = byFlags || f.set.Changed(name)
	}
	switch {
	case byFile:
		fixed, err := score.ReadPolicy(f.file)
		if err != nil {
			return exitcode.Usagef("%w", err)
		}
		f.asked = &score.Policy{Aggregation: fixed.Aggregation, Keep: fixed.Keep, Fixed: true}
		return nil
	case byFlags:
		return f.readFlags()
	}
	return nil
}

func (f *PolicyFlags) readFlags() (err error) {
	var p score.Policy
	if p.Aggregation, err = outcome.ParseAggregation(f.aggregate); err != nil {
		return exitcode.Usagef("--aggregate: %w", err)
	}
	if p.Keep.Policy, err = outcome.ParseKeepPolicy(f.keep); err != nil {
		return exitcode.Usagef("--keep: %w", err)
	}
	p.Keep.Drop, p.Keep.Threshold = f.drop, f.threshold
	for _, parameter := range policyParameters {
		if f.set.Changed(parameter.name) && p.Keep.Policy != parameter.policy {
			return exitcode.Usagef("--%s: it is for --keep %s", parameter.name, parameter.policy)
		}
	}
	if _, err := p.Keep.Of(nil); err != nil {
		return exitcode.Usagef("--keep: %w", err)
	}
	f.asked = &p
	return nil
}

// Asked is the policy that was asked for, nil for none. [PolicyFlags.Read] comes first.
func (f *PolicyFlags) Asked() *score.Policy { return f.asked }

// fixed is the policy that was asked for where it can be fixed before a job runs.
func (f *PolicyFlags) fixed() *outcome.Policy {
	if f.asked == nil || !f.asked.Fixed {
		return nil
	}
	return &outcome.Policy{Aggregation: f.asked.Aggregation, Keep: f.asked.Keep}
}

// WarnFixed says so when a job is scored under another policy than the one that was fixed
// before it ran.
func (p *Program) WarnFixed(dir string, asked *score.Policy) {
	if asked == nil {
		return
	}
	fixed, err := score.FixedPolicy(dir)
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(p.Stderr, "%s: warning: %s\n", p.Name, console.Clean(exception.PlainText(err)))
	case fixed != nil && !samePolicy(*asked, *fixed):
		_, _ = fmt.Fprintf(p.Stderr, "%s: warning: %s holds another policy, which was fixed before the job ran: %s\n",
			p.Name, console.Clean(filepath.Join(dir, score.PolicyFile)), policyText(score.Policy{Aggregation: fixed.Aggregation, Keep: fixed.Keep}))
	}
}

// samePolicy compares what policies say. A parameter of another policy says nothing.
func samePolicy(asked score.Policy, fixed outcome.Policy) bool {
	text, err := outcome.Policy{Aggregation: asked.Aggregation, Keep: asked.Keep}.Text()
	other, _ := fixed.Text()
	return err == nil && text == other
}

// CheckPolicy reads the policy of the flags of a run, and refuses a bad one.
func (f *Flags) CheckPolicy() error {
	if err := f.Policy.Read(); err != nil {
		return err
	}
	if f.Policy.Instead && !f.OutcomeLine {
		return exitcode.Usagef("--score-by-policy is about the result line, which --outcome-line prints")
	}
	return nil
}

// policyOf is the policy under which a job is scored beside Harbor's mean; nil for none.
// One that was fixed before the job ran has no other beside it.
func (f *Flags) policyOf(prepared *job.Prepared) (*score.Policy, error) {
	p := f.Policy.Asked()
	if fixed := prepared.Policy; fixed != nil {
		if p != nil && !samePolicy(*p, *fixed) {
			return nil, exitcode.WithHint(exitcode.Usagef("the policy of this job is fixed by %s: %s", score.PolicyFile,
				policyText(score.Policy{Aggregation: fixed.Aggregation, Keep: fixed.Keep})), "'proctor score' scores a finished job under any policy")
		}
		p = &score.Policy{Aggregation: fixed.Aggregation, Keep: fixed.Keep, Fixed: true}
	}
	switch {
	case p == nil && f.Policy.Instead:
		return nil, exitcode.WithHint(exitcode.Usagef("--score-by-policy: there is no policy"), "--aggregate, --keep and --policy say one")
	case p != nil && len(prepared.Config.Agents) > 1:
		return nil, exitcode.Usagef("a policy makes one score of one agent's trials, and the job has %d agents or models", len(prepared.Config.Agents))
	}
	return p, nil
}

// ScoreUnder scores records under a policy; nil where there is none.
func ScoreUnder(p *score.Policy, records []jobdir.Record) (*score.PolicyScore, error) {
	if p == nil {
		return nil, nil
	}
	s, err := p.Of(records)
	if err != nil {
		return nil, fmt.Errorf("scoring under the policy: %w", err)
	}
	return &s, nil
}

// PolicyLine is the result line of a job with the score of a policy as a further field,
// null where there is none. With instead it also takes the place of Harbor's score.
func PolicyLine(x outcome.Explanation, s *score.PolicyScore, instead bool) (line string, shown outcome.Explanation, err error) {
	const name = "policy_score"
	if s == nil {
		line, err = x.Outcome.LineWith(name, value.Null{})
		return line, x, err
	}
	field, err := report.NewPolicyScore(s).Value()
	if err == nil && instead {
		x, err = x.WithScore(s.Score)
	}
	if err != nil {
		return "", x, fmt.Errorf("the policy's score in a result line: %w", err)
	}
	line, err = x.Outcome.LineWith(name, field)
	return line, x, err
}

func policyText(p score.Policy) string {
	text := fmt.Sprintf("%s of the attempts at a task, keep %s", p.Aggregation, p.Keep.Policy)
	switch p.Keep.Policy {
	case outcome.DropLowest:
		text += fmt.Sprintf(" (%d)", p.Keep.Drop)
	case outcome.KeepAboveBound:
		text += fmt.Sprintf(" (%s)", value.FloatRepr(p.Keep.Threshold))
	}
	return text
}

// PolicyTexts say what the policy of a score is, and what it comes to.
func PolicyTexts(s *score.PolicyScore) (policy, result string) {
	return policyText(s.Policy), fmt.Sprintf("%d of %s kept, %d passed", len(s.Kept), console.Count(s.Total, "task"), s.Passed)
}

// PrintPolicy prints a score under a policy.
func PrintPolicy(w io.Writer, s *score.PolicyScore) {
	policy, result := PolicyTexts(s)
	_, _ = fmt.Fprintf(w, "Policy: %s\nScore %s: %s\n", policy, value.FloatRepr(s.Score), result)
}
