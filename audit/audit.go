// Package audit holds a job's directory against itself: its result against the results of
// its trials, these against what the journal says was written, the rewards against the
// reward files, the trials against the plan that the lock pins, and tasks against the
// digests there. A [Manifest] says the same of a job to whoever has only its directory
// and a copy of the manifest, signed or not.
//
// What is found is that files disagree, not who changed them. Somebody who rewrites all
// of them, the journal included, is found by a manifest alone.
//
// It reads files and runs nothing. The directory may be a stranger's.
package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/journal"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
)

// Kind says what a finding is about.
type Kind string

// The kinds of findings.
const (
	Sum        Kind = "sum"       // the job's result is not what its trials give
	Result     Kind = "result"    // a result is not the one that was written
	Trial      Kind = "trial"     // a trial too many, too few, or twice
	Reward     Kind = "reward"    // rewards are not those of the reward files, or these changed
	Time       Kind = "time"      // times that cannot be
	Notes      Kind = "notes"     // a proctor.json is not the one that was written
	Suspicion  Kind = "suspicion" // what the run itself found conspicuous
	Journal    Kind = "journal"   // the journal was changed, cut or removed
	Lock       Kind = "lock"      // the lock, or what ran is not what it plans
	Config     Kind = "config"    // a configuration is not the one that ran
	Policy     Kind = "policy"    // the policy is not the one that was fixed
	Task       Kind = "task"      // a task is not the one that ran
	Manifested Kind = "manifest"  // the directory is not the one of the manifest
)

// Finding is one place where a job's files disagree.
type Finding struct {
	Kind Kind
	// Trial is empty where it is about the job.
	Trial string
	// File is a path below the job's directory with slashes; empty where it is about none.
	File string
	// Message says what is wrong, in words.
	Message string
}

// String says it in one line.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind) + ": ")
	if f.Trial != "" {
		fmt.Fprintf(&b, "trial %q: ", f.Trial)
	}
	if f.File != "" {
		b.WriteString(f.File + " ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// Options say what is looked at.
type Options struct {
	// Score is how the job is aggregated again.
	Score score.RescoreOptions
	// Rescored is the job aggregated again, where the caller has done so already.
	Rescored *score.Rescored
	// Manifest asks for a manifest of the directory. It reads every file of every trial.
	Manifest bool
	// Against is a manifest that the directory is held against; nil for none.
	Against *Manifest
}

// Report is what was found of a job.
type Report struct {
	Dir string
	// Trials is the number of results that were found.
	Trials int
	// Rescored is the job aggregated again; nil where its trials cannot be.
	Rescored *score.Rescored
	// Differences are those of the stored result from that; each is a finding too.
	Differences []score.Difference
	// Findings in order: the job's, then the trials', by their names. None means that
	// all that could be checked agrees.
	Findings []Finding
	// Unchecked says in words what could not be checked, and why.
	Unchecked []string
	// Manifest is nil unless it was asked for.
	Manifest *Manifest
}

// Check looks at a job's directory. The error says why it could not be read at all.
func Check(ctx context.Context, dir string, o Options) (*Report, error) {
	c := &check{Report: &Report{Dir: dir}, dir: dir, options: o, digests: map[string]jobdir.FileDigest{}}
	if err := c.readJob(); err != nil {
		return nil, err
	}
	if err := c.readTrials(ctx); err != nil {
		return nil, err
	}
	c.checkJournal()
	c.checkInputs()
	c.checkResult()
	c.checkNames()
	if err := c.checkTrials(ctx); err != nil {
		return nil, err
	}
	c.checkPlan()
	c.checkAgents()
	c.checkTasks()
	if o.Manifest || o.Against != nil {
		own, err := c.manifest(ctx)
		if err != nil {
			return nil, err
		}
		if o.Against != nil {
			c.against(o.Against, own)
		}
		if o.Manifest {
			c.Manifest = own
		}
	}
	slices.SortStableFunc(c.Findings, func(a, b Finding) int { return cmp.Compare(a.Trial, b.Trial) })
	return c.Report, nil
}

// check is a report in the making, and what was read for it.
type check struct {
	*Report
	dir     string
	options Options
	records []scan.FileRecord
	trials  []trialFiles // beside records

	config *jobdir.Config // nil where there is none, or none that can be read
	lock   *jobdir.Lock
	result *jobdir.Result
	// digests are of the job's files that were read, by name.
	digests map[string]jobdir.FileDigest
	// state is nil for a job without a journal, such as Harbor's.
	state *journal.State
}

// unreadable says of a file why it cannot be read, for people.
func unreadable(err error) string { return "cannot be read: " + exception.PlainText(err) }

func (c *check) find(f Finding) { c.Findings = append(c.Findings, f) }

func (c *check) unchecked(format string, args ...any) {
	c.Unchecked = append(c.Unchecked, fmt.Sprintf(format, args...))
}

// finished reports whether the stored result is that of a job that came to its end.
func (c *check) finished() bool { return c.result != nil && c.result.FinishedAt != nil }

// readJob reads the files of the job itself. One that cannot be read is a finding; that
// there is none is told by the checks that need it.
func (c *check) readJob() error {
	data, err := c.read(scan.ResultFile, Result)
	if err != nil {
		return err
	}
	if data != nil {
		if r, err := jobdir.ParseResult(data); err != nil {
			c.find(Finding{Kind: Result, File: scan.ResultFile, Message: unreadable(err)})
		} else {
			c.result = &r
		}
	}
	if data, err = c.read(scan.ConfigFile, Config); err != nil {
		return err
	}
	if data != nil {
		cfg, err := parseConfig(data)
		if err != nil {
			c.find(Finding{Kind: Config, File: scan.ConfigFile, Message: unreadable(err)})
		} else {
			c.config = &cfg
		}
	}
	if data, err = c.read(scan.LockFile, Lock); err != nil {
		return err
	}
	if data != nil {
		l, err := jobdir.ParseLock(data)
		if err != nil {
			c.find(Finding{Kind: Lock, File: scan.LockFile, Message: unreadable(err)})
		} else {
			c.lock = &l
		}
	}
	if _, err = c.read(score.PolicyFile, Policy); err != nil {
		return err
	}
	return c.readJournal()
}

// read returns nothing for a file that is not there. One that is no file, or leads out of
// the directory, is a finding.
func (c *check) read(name string, kind Kind) ([]byte, error) {
	data, err := jobdir.ReadJobFile(c.dir, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("reading the job to check: %w", err)
	case err != nil:
		c.find(Finding{Kind: kind, File: name, Message: unreadable(err)})
		return nil, nil
	}
	c.digests[name] = jobdir.DigestOf(data)
	return data, nil
}

// readTrials reads the trials and aggregates the job again. Of one that cannot be
// aggregated it reads what can be read.
func (c *check) readTrials(ctx context.Context) error {
	r, err := c.options.Rescored, error(nil)
	if r == nil {
		r, err = score.Rescore(ctx, c.dir, c.options.Score)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("checking %q: %w", c.dir, context.Cause(ctx))
	}
	if err == nil {
		c.Rescored, c.records, c.Trials = r, slices.Clone(r.Records), len(r.Records)
		slices.SortFunc(c.records, func(a, b scan.FileRecord) int { return cmp.Compare(a.Dir, b.Dir) })
		c.checkSum(r)
		return nil
	}
	c.unchecked("the sums: %s", exception.PlainText(err))
	scanned, err := scan.Dir(ctx, c.dir)
	if err != nil {
		return err
	}
	c.records, c.Trials = scanned.Records, len(scanned.Records)
	for _, err := range scanned.Errors {
		c.find(Finding{Kind: Result, Message: "of a trial " + unreadable(err)})
	}
	return nil
}

// checkSum holds the stored result against what the trials give.
func (c *check) checkSum(r *score.Rescored) {
	c.Differences = r.Check()
	if _, there := c.digests[scan.ResultFile]; !there && c.result == nil && len(r.Records) > 0 {
		c.find(Finding{Kind: Result, File: scan.ResultFile, Message: "is gone"})
		return
	}
	for _, d := range c.Differences {
		c.find(Finding{Kind: Sum, File: scan.ResultFile, Message: "is not what the trials give: " + d.String()})
	}
}

// slashed is a path below the job's directory as findings name it.
func slashed(parts ...string) string { return filepath.ToSlash(filepath.Join(parts...)) }
