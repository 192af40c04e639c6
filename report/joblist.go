package report

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
)

// ListedJob is what the result of a job says: what proctor job list --json prints
// per job.
type ListedJob struct {
	Name      string     `json:"name"`
	Dir       string     `json:"dir"`
	State     State      `json:"state"`
	ID        string     `json:"id,omitempty"`
	Started   *time.Time `json:"started_at"` // null without a result
	Completed int        `json:"n_completed"`
	Total     int        `json:"n_total"`
	Errored   int        `json:"n_errored"`
	// Headlines are the first metric of each group by its key.
	Headlines []Headline `json:"headlines"`
	// Error says why there is no result.
	Error string `json:"error,omitempty"`
}

// Headline is the first metric of a group in words.
type Headline struct {
	Group string `json:"group"`
	Text  string `json:"text"`
	// NScored trials of the group have a reward.
	NScored int `json:"n_scored"`
}

// ReadJobs lists the jobs in a directory, newest first. Times are shown in zone. It
// reads no trial. Names that begin with a dot, and directories without any file of
// a job, are left out.
func ReadJobs(dir string, zone *time.Location) ([]ListedJob, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var jobs []ListedJob
	for _, e := range entries {
		if listed, ok := ListJob(filepath.Join(dir, e.Name()), zone); ok {
			jobs = append(jobs, listed)
		}
	}
	slices.SortStableFunc(jobs, func(a, b ListedJob) int { return startOf(b).Compare(startOf(a)) })
	return jobs, nil
}

func startOf(j ListedJob) time.Time {
	if j.Started == nil {
		return time.Time{}
	}
	return *j.Started
}

// ListJob reads what a job says of itself; times are shown in zone. It is not ok for what
// is no job: a directory without any file of one, or that is hidden.
func ListJob(dir string, zone *time.Location) (j ListedJob, ok bool) {
	if !isDirectory(dir) || strings.HasPrefix(filepath.Base(dir), ".") {
		return j, false
	}
	j = ListedJob{Name: filepath.Base(dir), Dir: dir, State: Unreadable, Headlines: []Headline{}}
	data, err := jobdir.ReadJobFile(dir, scan.ResultFile)
	if errors.Is(err, fs.ErrNotExist) {
		j.State, j.Error = stateOf(dir), "no result yet"
		return j, isFile(filepath.Join(dir, scan.ConfigFile))
	}
	var result jobdir.Result
	if err == nil {
		result, err = jobdir.ParseResult(data)
	}
	if err != nil {
		j.Error = scan.ResultFile + " cannot be read"
		return j, true
	}
	started := result.StartedAt.In(zone)
	j.ID, j.Started, j.State = result.ID.String(), &started, Finished
	if result.FinishedAt == nil {
		j.State = stateOf(dir)
	}
	j.Completed, j.Total, j.Errored = result.Stats.NCompletedTrials, result.NTotalTrials, result.Stats.NErroredTrials
	for key, e := range result.Stats.Evals.All() {
		if text, err := score.Headline(e); err == nil {
			j.Headlines = append(j.Headlines, Headline{Group: key, Text: text, NScored: e.NTrials})
		}
	}
	return j, true
}
