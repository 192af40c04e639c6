package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/proctor-run/proctor/sandbox"
)

// Subject is one backend with one way to make sandboxes.
type Subject struct {
	Name        string `json:"name"`
	Environment string `json:"environment"`
	Runtime     string `json:"runtime,omitempty"`
	// RestsOn says what the root file system is made of.
	RestsOn string `json:"rests_on"`

	Backend sandbox.Backend `json:"-"`
	// Spec of its sandboxes; the name is a prefix.
	Spec sandbox.Spec `json:"-"`
	// Trials runs so many trials of a small task, as many at a time; nil where
	// none can be run.
	Trials func(ctx context.Context, trials, atATime int) error `json:"-"`
}

// Options of a run. Runs, Now and Subjects are needed.
type Options struct {
	Subjects []Subject
	// Runs counts the rounds after the one that warms up.
	Runs int
	// Only names the operations to measure; empty means all.
	Only []string
	// Trials in each measurement of the trials per second.
	Trials int
	// AtATime is how many trials run at a time; 0 means the number of processors.
	AtATime int
	Now     func() time.Time
	// Progress receives a line for each subject in each round; nil for none.
	Progress func(line string)
}

// expensiveRounds bounds how often is measured what takes seconds.
const expensiveRounds = 3

// errUnable says that a subject cannot do an operation, which is no failure.
var errUnable = errors.New("the backend cannot do this")

// run is the state of a Run.
type run struct {
	Options
	wanted map[string]bool
	all    map[string]map[string][]float64 // samples by subject and operation
	notes  map[string]map[string]error     // why there are none
	host   []float64                       // of operation network without a sandbox
	names  int
	net    *server // nil where the network cannot be measured
	noNet  string  // why
}

// Run measures. The error is about what kept it from measuring at all, or the
// end of ctx; a subject that fails an operation has a note in the report, and is
// not asked for it again. No sandbox is left.
func Run(ctx context.Context, o Options) (*Report, error) {
	if len(o.Subjects) == 0 || o.Runs < 1 {
		return nil, fmt.Errorf("%d subjects, %d runs: nothing to measure", len(o.Subjects), o.Runs)
	}
	if o.AtATime <= 0 {
		o.AtATime = runtime.NumCPU()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	r := &run{Options: o, wanted: map[string]bool{}, all: map[string]map[string][]float64{}, notes: map[string]map[string]error{}}
	if err := r.choose(); err != nil {
		return nil, err
	}
	for _, s := range o.Subjects {
		r.all[s.Name], r.notes[s.Name] = map[string][]float64{}, map[string]error{}
	}
	if r.wanted[opNetwork] {
		net, err := serve(ctx)
		if err != nil {
			r.noNet = err.Error()
		} else {
			defer net.close()
			r.net = net
		}
	}
	started := o.Now()
	for round := range o.Runs + 1 {
		if err := r.round(ctx, round); err != nil {
			return nil, err
		}
	}
	return r.report(started), nil
}

// choose notes the wanted operations.
func (r *run) choose() error {
	names := r.Only
	for _, op := range operations {
		if len(r.Only) == 0 {
			names = append(names, op.Name)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(operations, func(op Operation) bool { return op.Name == name }) {
			return fmt.Errorf("operation %q: there is none of that name", name)
		}
		r.wanted[name] = true
	}
	return nil
}

// round asks every subject once. Round 0 warms up.
func (r *run) round(ctx context.Context, round int) error {
	if r.net != nil && round > 0 && round <= expensiveRounds {
		if rate := r.hostNetwork(ctx); rate > 0 {
			r.host = append(r.host, rate)
		}
	}
	for i := range r.Subjects {
		s := &r.Subjects[(i+round)%len(r.Subjects)]
		label := fmt.Sprintf("round %d of %d", round, r.Runs)
		if round == 0 {
			label = "warming up"
		}
		r.Progress(fmt.Sprintf("%s: %s", label, s.Name))
		r.subject(ctx, s, round)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// subject measures everything of one subject once.
func (r *run) subject(ctx context.Context, s *Subject, round int) {
	add := func(op string, sample float64) {
		if round > 0 {
			r.all[s.Name][op] = append(r.all[s.Name][op], sample)
		}
	}
	t := &turn{run: r, subject: s, add: add}
	lives := []string{opCreate, opFirst, opReady, opDestroy, opLife}
	for _, m := range []struct {
		ops []string
		do  func(context.Context) error
		max int // rounds, for what is expensive; 0 for no bound
	}{
		{slices.Concat(lives, r.comparedWith(lives)), t.life, 0},
		{[]string{opCommand, opParallel, opReset, opUpload1, opDownload1, opUpload100, opDownload100}, t.use, 0},
		{[]string{opFork}, t.fork, 0}, {[]string{opPool}, t.pool, 0},
		{[]string{opIdle}, t.idle, 1}, {[]string{opTrials}, t.trials, expensiveRounds}, {[]string{opNetwork}, t.network, expensiveRounds},
	} {
		warms := round == 0 && m.max != 1 // what is measured once needs no warmth
		if warms || round > 0 && (m.max == 0 || round <= m.max) {
			r.attempt(ctx, t, m.ops, m.do)
		}
	}
}

// comparedWith lists the operations whose ratios are to one of those given.
func (r *run) comparedWith(ops []string) []string {
	var list []string
	for _, op := range operations {
		if op.Against != op.Name && slices.Contains(ops, op.Against) {
			list = append(list, op.Name)
		}
	}
	return list
}

// attempt measures operations that belong together, unless none of them is
// wanted or one of them has failed before.
func (r *run) attempt(ctx context.Context, t *turn, ops []string, do func(context.Context) error) {
	notes := r.notes[t.subject.Name]
	if ctx.Err() != nil || notes[ops[0]] != nil || !slices.ContainsFunc(ops, func(op string) bool { return r.wanted[op] }) {
		return
	}
	if err := do(ctx); err != nil && ctx.Err() == nil {
		for _, op := range ops {
			if notes[op] == nil {
				notes[op] = err
			}
		}
	}
}

// spec returns the subject's Spec under a name that no other sandbox has.
func (r *run) spec(s *Subject) sandbox.Spec {
	spec := s.Spec
	r.names++
	spec.Name = fmt.Sprintf("%s-%d", spec.Name, r.names)
	return spec
}

// since is the seconds that have passed.
func (r *run) since(t time.Time) float64 { return r.Now().Sub(t).Seconds() }
