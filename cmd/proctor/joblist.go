package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
	"github.com/spf13/cobra"
)

func newJobList(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the jobs of a directory, newest first",
		Long: `list shows what each job's result.json says: when it started, how many of its
trials are done, how many of these have an exception, and the first metric of
its first group. DIR is "jobs" unless given.`,
		Example: `  proctor job list
  proctor job list /data/jobs --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return withHint(usageErrorf("accepts one directory of jobs, got %d", len(args)), "proctor job %s", cmd.Use)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "jobs"
			if len(args) == 1 {
				dir = args[0]
			}
			return listJobs(env, dir, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per job, nothing else")
	return cmd
}

// States of a listed job.
const (
	stateFinished   = "finished"
	stateUnfinished = "unfinished"
	stateUnreadable = "unreadable"
)

// jsonListed is what job list --json prints per job.
type jsonListed struct {
	Name      string     `json:"name"`
	Dir       string     `json:"dir"`
	State     string     `json:"state"`
	ID        string     `json:"id,omitempty"`
	Started   *time.Time `json:"started_at"`
	Completed int        `json:"n_completed"`
	Total     int        `json:"n_total"`
	Errored   int        `json:"n_errored"`
	// Headlines are the first metric of each group by its key.
	Headlines []jsonHeadline `json:"headlines"`
	Error     string         `json:"error,omitempty"`
}

type jsonHeadline struct {
	Group string `json:"group"`
	Text  string `json:"text"`
	// NScored trials of the group have a reward.
	NScored int `json:"n_scored"`
}

func listJobs(env *Env, dir string, asJSON bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return withHint(usageErrorf("reading the jobs: %w", err), "name the directory that holds the jobs: proctor job list DIR")
	}
	var jobs []jsonListed
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !isDirectory(path) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if listed, ok := readListed(path, env.Now().Location()); ok {
			jobs = append(jobs, listed)
		}
	}
	slices.SortStableFunc(jobs, func(a, b jsonListed) int { return startOf(b).Compare(startOf(a)) })
	if asJSON {
		for _, j := range jobs {
			if err := encodeJSON(env.Stdout, j); err != nil {
				return err
			}
		}
		return nil
	}
	if len(jobs) == 0 {
		return noJobs(env, dir)
	}
	t := newTable("Job", "Started", "Trials", "Exceptions", "Result", "State")
	for _, j := range jobs {
		started := "-"
		if j.Started != nil {
			started = j.Started.Format("2006-01-02 15:04:05")
		}
		t.Row(clean(j.Name), started, fmt.Sprintf("%d/%d", j.Completed, j.Total), fmt.Sprint(j.Errored), clean(headlineText(j)), j.State)
	}
	_, _ = lipgloss.Fprintln(env.Stdout, t.Render())
	return nil
}

func noJobs(env *Env, dir string) error {
	if isFile(filepath.Join(dir, scan.ConfigFile)) {
		return withHint(usageErrorf("%q is a job, not a directory of jobs", dir), "proctor job show %s", dir)
	}
	_, _ = fmt.Fprintf(env.Stdout, "no jobs in %s\n", clean(dir))
	return nil
}

func startOf(j jsonListed) time.Time {
	if j.Started == nil {
		return time.Time{}
	}
	return *j.Started
}

func headlineText(j jsonListed) string {
	switch {
	case j.Error != "":
		return j.Error
	case len(j.Headlines) == 0:
		return "-"
	}
	first := fmt.Sprintf("%s (%d with a reward)", j.Headlines[0].Text, j.Headlines[0].NScored)
	if more := len(j.Headlines) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}

// readListed reads what a job says of itself. A directory without any file of
// a job is none.
func readListed(dir string, zone *time.Location) (j jsonListed, ok bool) {
	j = jsonListed{Name: filepath.Base(dir), Dir: dir, State: stateUnreadable, Headlines: []jsonHeadline{}}
	data, err := os.ReadFile(filepath.Join(dir, scan.ResultFile))
	if errors.Is(err, fs.ErrNotExist) {
		j.State, j.Error = stateUnfinished, "no result yet"
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
	j.ID, j.Started, j.State = result.ID.String(), &started, stateUnfinished
	if result.FinishedAt != nil {
		j.State = stateFinished
	}
	j.Completed, j.Total, j.Errored = result.Stats.NCompletedTrials, result.NTotalTrials, result.Stats.NErroredTrials
	for key, e := range result.Stats.Evals.All() {
		if text, err := score.Headline(e); err == nil {
			j.Headlines = append(j.Headlines, jsonHeadline{Group: key, Text: text, NScored: e.NTrials})
		}
	}
	return j, true
}
