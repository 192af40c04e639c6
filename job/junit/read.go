package junit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// Read reads a job directory. The suites are in the order of the groups' names,
// the cases in that of tasks and of the times at which they started. A result
// that cannot be read is a case with an error; the error of Read is that of a
// directory which is no job's.
func Read(ctx context.Context, dir string, o Options) (*Report, error) {
	scanned, err := scan.Dir(ctx, dir)
	if err != nil {
		return nil, err
	}
	r := &reader{dir: dir, options: o, report: &Report{Name: filepath.Base(filepath.Clean(dir))}}
	if err := r.readJob(); err != nil {
		return nil, err
	}
	if len(scanned.Records) == 0 && len(scanned.Errors) == 0 && r.result == nil {
		return nil, fmt.Errorf("reading job directory %q: it holds neither a %s nor trials: %w", dir, scan.ResultFile, fs.ErrNotExist)
	}
	r.addTrials(scanned.Records)
	r.addUnreadable(scanned.Errors)
	r.addPending(&scanned)
	slices.SortStableFunc(r.report.Suites, func(a, b Suite) int { return cmp.Compare(a.Name, b.Name) })
	return r.report, nil
}

type reader struct {
	dir     string
	options Options
	report  *Report
	result  *jobdir.Result // nil without a readable one
	lock    *jobdir.Lock
}

// readJob reads what the job says of itself; not being able to is no error,
// its trials count.
func (r *reader) readJob() error {
	data, err := jobdir.ReadJobFile(r.dir, scan.ResultFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading job result: %w", err)
	}
	if err == nil {
		if result, err := jobdir.ParseResult(data); err == nil {
			r.result = &result
		}
	}
	if data, err := jobdir.ReadJobFile(r.dir, scan.LockFile); err == nil {
		if lock, err := jobdir.ParseLock(data); err == nil {
			r.lock = &lock
		}
	}
	return nil
}

// suite finds a suite by its name, or makes it.
func (r *reader) suite(name string) *Suite {
	for i := range r.report.Suites {
		if r.report.Suites[i].Name == name {
			return &r.report.Suites[i]
		}
	}
	r.report.Suites = append(r.report.Suites, Suite{Name: name})
	return &r.report.Suites[len(r.report.Suites)-1]
}

func (r *reader) addTrials(records []scan.FileRecord) {
	sorted := slices.Clone(records)
	slices.SortFunc(sorted, func(a, b scan.FileRecord) int {
		return cmp.Or(cmp.Compare(a.EvalsKey(), b.EvalsKey()), cmp.Compare(a.TaskName, b.TaskName), cmp.Compare(a.StartedAt, b.StartedAt), cmp.Compare(a.Dir, b.Dir))
	})
	type attempts struct{ group, task string }
	count, seen := map[attempts]int{}, map[attempts]int{}
	plain := make([]jobdir.Record, len(sorted))
	for i := range sorted {
		count[attempts{sorted[i].EvalsKey(), sorted[i].TaskName}]++
		plain[i] = sorted[i].Record
	}
	stats := score.NewStatistics(plain, len(plain))
	for i := range sorted {
		rec := &sorted[i]
		key := attempts{rec.EvalsKey(), rec.TaskName}
		seen[key]++
		c := Case{Name: rec.TaskName, Class: key.group}
		if count[key] > 1 {
			c.Name += fmt.Sprintf(" #%d", seen[key])
		}
		s := r.suite(key.group)
		if len(s.Cases) == 0 {
			s.Properties = r.properties(rec, &stats)
		}
		if rec.StartedAt != 0 {
			if at := time.UnixMicro(rec.StartedAt); s.Started.IsZero() || at.Before(s.Started) {
				s.Started = at
			}
		}
		if typ := rec.Exception(); typ != "" {
			s.Properties = append(s.Properties, Property{"reason_code." + rec.Dir, string(outcome.ReasonOfException(typ))})
		}
		r.fill(&c, rec)
		s.Cases = append(s.Cases, c)
	}
}

// properties say of a group what its cases cannot.
func (r *reader) properties(rec *scan.FileRecord, stats *score.Statistics) []Property {
	var list []Property
	add := func(name, value string) {
		if value != "" {
			list = append(list, Property{name, value})
		}
	}
	if r.result != nil {
		add("job_id", r.result.ID.String())
	}
	add("agent", rec.AgentName)
	add("model", rec.ModelName)
	add("dataset", rec.Dataset())
	add("pass_at", value.FloatRepr(r.options.PassAt))
	add("reward", r.options.Reward)
	for _, g := range stats.Groups {
		if g.Group != rec.EvalsKey() {
			continue
		}
		add("n_trials", strconv.Itoa(g.Trials))
		add("n_with_reward", strconv.Itoa(g.WithReward))
		for _, m := range g.Means {
			add("mean."+m.Name, value.FloatRepr(m.Mean))
			add("mean."+m.Name+".n_tasks", strconv.Itoa(m.Tasks))
			if m.Method != score.MethodNone {
				add("mean."+m.Name+".interval", fmt.Sprintf("%s to %s (%s, %g%%)", value.FloatRepr(m.Low), value.FloatRepr(m.High), m.Method, 100*m.Confidence))
			}
		}
		if g.Agreement.Repeated > 0 {
			add("attempts.agreement", value.FloatRepr(g.Agreement.Share()))
			add("attempts.flake_rate", value.FloatRepr(g.Agreement.FlakeRate))
		}
	}
	return list
}

// fill writes the outcome of a trial.
func (r *reader) fill(c *Case, rec *scan.FileRecord) {
	result, err := r.readTrial(rec.Dir)
	if err != nil { // it could be read a moment ago
		c.State, c.Type, c.Message = Errored, "UnreadableResult", err.Error()
		return
	}
	if result.StartedAt != nil && result.FinishedAt != nil {
		c.Time = result.FinishedAt.In(time.UTC).Sub(result.StartedAt.In(time.UTC))
	}
	c.Output = outputOf(rec, result)
	x, step := result.Failure()
	switch {
	case rec.Rewards != nil && !unverified(result):
		c.State = Passed
		if why := r.below(rec); why != "" {
			c.State, c.Type, c.Message = Failed, "RewardBelowThreshold", why
		}
	case x != nil:
		c.State, c.Type, c.Message, c.Body = Errored, x.Type, cmp.Or(firstLine(x.Message), x.Type), x.Message
		if step != "" {
			c.Message = fmt.Sprintf("step %s: %s", step, c.Message)
		}
	case result.VerifierResult != nil:
		c.State, c.Type, c.Message = Failed, "NoReward", "the verifier's rewards are null, which counts as 0"
	default:
		c.State, c.Message = Skipped, "not verified"
	}
}

// unverified reports that a step ended with an exception and has no rewards: those of the
// trial come from its other steps alone, and do not say that it passed.
func unverified(result *jobdir.TrialResult) bool {
	return slices.ContainsFunc(result.StepResults, func(s jobdir.StepResult) bool {
		return s.ExceptionInfo != nil && (s.VerifierResult == nil || s.VerifierResult.Rewards == nil)
	})
}

func (r *reader) readTrial(name string) (*jobdir.TrialResult, error) {
	data, err := jobdir.ReadTrialFile(r.dir, filepath.Join(name, scan.ResultFile))
	if err != nil {
		return nil, err
	}
	result, err := jobdir.ParseTrialResult(data)
	return &result, err
}

// below says which rewards are below the threshold; empty for none.
func (r *reader) below(rec *scan.FileRecord) string {
	threshold := value.Float(r.options.PassAt)
	var low []string
	check := func(name string, x value.Number) {
		if c, ordered := value.Compare(x, threshold); !ordered || c < 0 {
			low = append(low, fmt.Sprintf("%s is %s, below %s", name, value.Repr(x), value.FloatRepr(r.options.PassAt)))
		}
	}
	name := r.options.Reward
	if name == "" && rec.Rewards.Len() > 1 {
		if _, ok := rec.Rewards.Get("reward"); ok {
			name = "reward"
		}
	}
	if name == "" {
		if rec.Rewards.Len() == 0 {
			return "there is no reward, which counts as 0"
		}
		for each, x := range rec.Rewards.All() {
			check(each, x)
		}
		return strings.Join(low, "; ")
	}
	x, ok := rec.Rewards.Get(name)
	if !ok {
		return fmt.Sprintf("there is no reward called %s, which counts as 0", name)
	}
	check(name, x)
	return strings.Join(low, "; ")
}

// outputOf are the facts about a trial that have no element.
func outputOf(rec *scan.FileRecord, result *jobdir.TrialResult) string {
	var b strings.Builder
	fmt.Fprintf(&b, "trial: %s\n", rec.Dir)
	if rec.Rewards != nil {
		fmt.Fprintf(&b, "rewards: %s\n", value.AppendPydantic(nil, rec.Rewards.Object(), 0))
	}
	if x := result.ExceptionInfo; x != nil {
		fmt.Fprintf(&b, "exception: %s: %s\n", x.Type, firstLine(x.Message))
	}
	if typ := rec.Exception(); typ != "" {
		fmt.Fprintf(&b, "reason_code: %s\n", outcome.ReasonOfException(typ))
	}
	for _, s := range result.StepResults {
		if x := s.ExceptionInfo; x != nil {
			fmt.Fprintf(&b, "step %s: %s: %s\n", s.StepName, x.Type, firstLine(x.Message))
		}
	}
	for _, p := range []struct {
		name string
		at   *jobdir.Timing
	}{{"environment", result.EnvironmentSetup}, {"agent setup", result.AgentSetup}, {"agent", result.AgentExecution}, {"verifier", result.Verifier}} {
		if t := p.at; t != nil && t.StartedAt != nil && t.FinishedAt != nil {
			fmt.Fprintf(&b, "%s: %s s\n", p.name, seconds(t.FinishedAt.In(time.UTC).Sub(t.StartedAt.In(time.UTC))))
		}
	}
	return b.String()
}

// unfinishedSuite holds what no group can be told of.
const unfinishedSuite = "unfinished"

func (r *reader) addUnreadable(errs []error) {
	for _, err := range errs {
		s := r.suite(unfinishedSuite)
		name := "unreadable result"
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			name = filepath.Base(filepath.Dir(path.Path))
		}
		s.Cases = append(s.Cases, Case{Name: name, Class: unfinishedSuite, State: Errored, Type: "UnreadableResult", Message: firstLine(err.Error()), Body: err.Error()})
	}
}

// addPending adds the planned trials that have no result.
func (r *reader) addPending(scanned *scan.Scanned) {
	missing := len(scanned.Unfinished)
	if r.result != nil {
		missing = max(r.result.NTotalTrials-len(scanned.Records)-len(scanned.Errors), 0)
	}
	if missing == 0 {
		return
	}
	pending := r.pendingByLock(scanned.Records)
	if len(pending) != missing {
		pending = nil
		for i := range missing {
			name := fmt.Sprintf("pending #%d", i+1)
			if i < len(scanned.Unfinished) {
				name = scanned.Unfinished[i]
			}
			pending = append(pending, Case{Name: name, Class: unfinishedSuite})
		}
	}
	for _, c := range pending {
		c.State, c.Message = Skipped, "pending: the trial has no result"
		s := r.suite(c.Class)
		s.Cases = append(s.Cases, c)
	}
}

// pendingByLock tells which trials of the plan have no record.
func (r *reader) pendingByLock(records []scan.FileRecord) []Case {
	if r.lock == nil {
		return nil
	}
	type key struct{ group, task string }
	done, planned := map[key]int{}, map[key]int{}
	for i := range records {
		done[key{records[i].EvalsKey(), records[i].TaskName}]++
	}
	var pending []Case
	for i := range r.lock.Trials {
		t := &r.lock.Trials[i]
		rec := jobdir.Record{TaskName: t.Task.Name}
		if t.Agent.Name != nil {
			rec.AgentName = *t.Agent.Name
		}
		if t.Agent.ModelName != nil {
			if model := jobdir.SplitModel(*t.Agent.ModelName); model != nil {
				rec.ModelName = model.Name
			}
		}
		if t.Task.Source != nil {
			rec.Source = *t.Task.Source
		}
		k := key{rec.EvalsKey(), rec.TaskName}
		planned[k]++
		if planned[k] > done[k] {
			name := k.task
			if planned[k] > 1 {
				name += fmt.Sprintf(" #%d", planned[k])
			}
			pending = append(pending, Case{Name: name, Class: k.group})
		}
	}
	return pending
}
