// Package traces turns the trajectories of trials into conversations for
// training, one row per episode, as Harbor's trace export does.
//
// [Find] lists the trials below a directory and [Read] makes the rows of one. A
// trial's files are read within bounds and no link leads out of the trial.
//
// The rules are those of Harbor's agents and trajectories, section 7.2. Deviations:
// agents that Harbor does not know, and those of which it has no trajectory, are
// exported when their trial has one; chains of continued files end where they
// would begin again.
package traces

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/proctor-run/proctor/value"
)

// Options choose rows and what is in them.
type Options struct {
	// Last keeps only the last row of each trial.
	Last bool
	// Keep chooses trials; empty is all of them.
	Keep Filter
	// WithoutTools leaves the tool definitions out of the conversations.
	WithoutTools bool
	// ShareGPT adds each conversation in that form, too.
	ShareGPT bool
	// Subagents adds a row for each trajectory of a subagent, and to every row
	// where it comes from.
	Subagents bool
	// Instruction and VerifierOutput add these to every row.
	Instruction, VerifierOutput bool
	// TokenIDs adds prompt_token_ids, completion_token_ids and logprobs to rows
	// that have them: lists with one entry per turn of the assistant, null where
	// there is none. Harbor's rows have no such keys.
	TokenIDs bool
}

// Filter is a choice of trials.
type Filter string

// The filters. A trial is a success when its result is a number above 0.
const (
	All     Filter = "all"
	Success Filter = "success"
	Failure Filter = "failure"
)

// A Row is one line of the export: members in the order of the format.
type Row = *value.Object

// UnsupportedError is the error of a trial whose agent leaves no trajectory.
type UnsupportedError struct {
	Agent string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("agent %q leaves no trajectory that could be exported", e.Agent)
}

// ErrImages is the error of a trajectory with images, for which the rows have no
// place.
var ErrImages = errors.New("the trajectory has images, which rows of text cannot hold")

// agentDir is what makes a directory one of a trial.
const agentDir = "agent"

// Find lists the directories of trials at or below dir, sorted: dir alone if it is
// one. Without recursive nothing below it is searched. Hidden directories and
// earlier attempts of a trial are left out.
func Find(dir string, recursive bool) ([]string, error) {
	if isTrial(dir) {
		return []string{dir}, nil
	}
	var found []string
	if !recursive {
		return found, nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir() || path == dir:
			return nil
		case leftOut(d.Name()) || d.Name() == agentDir: // what an agent left holds no trials
			return fs.SkipDir
		case isTrial(path):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for trials: %w", err)
	}
	slices.Sort(found)
	return found, nil
}

func isTrial(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, agentDir))
	return err == nil && info.IsDir()
}

// Read makes the rows of one trial and hands each to do, whose error ends it. A
// trial without a trajectory, or of which nothing says who its agent was, has none.
// A trial is exported as a whole or, with an [*UnsupportedError] or [ErrImages], not
// at all.
func Read(dir string, o Options, do func(Row) error) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the trial: %w", err)
	}
	t := trial{dir: dir}
	if known, err := t.readMetadata(); err != nil || !known {
		return err
	}
	if err := t.supported(); err != nil {
		return err
	}
	success := t.isSuccess()
	if o.Keep == Success && !success || o.Keep == Failure && success {
		return nil
	}
	extra, err := t.extra(o)
	if err != nil {
		return err
	}
	w := writer{trial: t, Options: o, extra: extra, do: do}
	return w.write()
}
