package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/score"
	"github.com/spf13/cobra"
)

func newJobShow(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show JOBDIR",
		Short: "Show how the trials of a job ended, what it scored and where time went",
		Long: `show reads the trials of a job and counts how they ended, says how many of the
planned trials have a reward, gives the mean of each group with an interval,
lists the errors with their trials and the phases that took longest.

The mean is over tasks, each by the mean of its attempts, and trials without a
reward count as 0. The interval holds the mean of all tasks of the kind with a
confidence of 95%. Attempts at a task agree when they have the same rewards, or
none; the flake rate is the probability that two of them do not.`,
		Example: `  proctor job show jobs/2026-06-09__10-00-00
  proctor job show --json jobs/2026-06-09__10-00-00`,
		Args: oneDirectory("job"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readJobSummary(cmd.Context(), args[0], env.Now().Location())
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(env.Stdout, s)
			}
			printJobSummary(env.Stdout, s)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// oneDirectory wants one directory of a kind.
func oneDirectory(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return withHint(usageErrorf("accepts one %s directory, got %d", kind, len(args)), "'%s --help' shows an example", cmd.CommandPath())
		}
		return nil
	}
}

// Of a job directory it can be told why a trial is pending.
const (
	classUnreadable = "unreadable"
	classUnfinished = "unfinished"
	classNotRun     = "not_run"
)

// classTexts say the classes in words, in the order in which they are shown.
var classTexts = [][2]string{
	{string(jobdir.ClassScored), "scored"},
	{string(jobdir.ClassErroredWithReward), "errored, with a reward"},
	{string(jobdir.ClassErroredWithoutReward), "errored, without a reward"},
	{string(jobdir.ClassCancelled), "cancelled"},
	{string(jobdir.ClassUnscored), "no error and no reward"},
	{classUnreadable, "result cannot be read"},
	{classUnfinished, "never ended"},
	{classNotRun, "never began"},
}

// jobSummary is what job show --json prints.
type jobSummary struct {
	Dir      string         `json:"dir"`
	State    string         `json:"state"`
	Started  *time.Time     `json:"started_at"`
	Finished *time.Time     `json:"finished_at"`
	Planned  int            `json:"n_planned"`
	Outcomes map[string]int `json:"outcomes"`
	// WithReward of the planned trials have a reward; Coverage is their share.
	WithReward int                   `json:"n_with_reward"`
	Coverage   jsonNumber            `json:"coverage"`
	Groups     []jsonGroupStatistics `json:"groups"`
	Errors     []errorSummary        `json:"errors"`
	Phases     []phaseSummary        `json:"phases"`
	Slowest    []slowPhase           `json:"slowest"`
	Problems   []string              `json:"problems"`
	Unfinished []string              `json:"unfinished"`
	Journal    *journalSummary       `json:"journal"` // null without one
	records    []scan.FileRecord     // of the trials, by directory
	statistics score.Statistics
}

type errorSummary struct {
	Type   string   `json:"type"`
	Trials []string `json:"trials"`
}

type phaseSummary struct {
	Phase   string  `json:"phase"`
	Trials  int     `json:"n_trials"`
	Total   float64 `json:"total_seconds"`
	Median  float64 `json:"median_seconds"`
	Longest float64 `json:"longest_seconds"`
}

type slowPhase struct {
	Trial   string  `json:"trial"`
	Phase   string  `json:"phase"`
	Seconds float64 `json:"seconds"`
}

func readJobSummary(ctx context.Context, dir string, zone *time.Location) (*jobSummary, error) {
	scanned, err := scan.Dir(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, withHint(usageErrorf("%q is not a job directory: %w", dir, err), "'proctor job list' lists the jobs")
	}
	if err != nil {
		return nil, err
	}
	s := &jobSummary{
		Dir: dir, State: stateUnfinished, Outcomes: map[string]int{}, records: scanned.Records,
		Problems: []string{}, Unfinished: orEmpty(scanned.Unfinished),
	}
	if len(s.records) == 0 && !isFile(filepath.Join(dir, scan.ResultFile)) {
		return nil, withHint(usageErrorf("%q is not a job directory: it holds neither a %s nor trials", dir, scan.ResultFile), "'proctor job list' lists the jobs")
	}
	for _, err := range scanned.Errors {
		s.Problems = append(s.Problems, err.Error())
	}
	s.readResult(zone)
	s.countOutcomes(len(scanned.Errors))
	s.estimate()
	s.collectErrors()
	s.timePhases()
	s.Journal = readJournalSummary(dir)
	return s, nil
}

// readResult takes the plan and the times from the job's own result.
func (s *jobSummary) readResult(zone *time.Location) {
	s.Planned = len(s.records) + len(s.Unfinished) + len(s.Problems)
	data, err := os.ReadFile(filepath.Join(s.Dir, scan.ResultFile))
	var result jobdir.Result
	if err == nil {
		result, err = jobdir.ParseResult(data)
	}
	if err != nil {
		s.Problems = append(s.Problems, fmt.Sprintf("%s: %v; the planned number of trials is taken to be the number found", scan.ResultFile, err))
		return
	}
	s.Planned = max(result.NTotalTrials, len(s.records))
	started := result.StartedAt.In(zone)
	s.Started = &started
	if result.FinishedAt != nil {
		finished := result.FinishedAt.In(zone)
		s.Finished, s.State = &finished, stateFinished
	}
}

func (s *jobSummary) countOutcomes(unreadable int) {
	for _, c := range classTexts {
		s.Outcomes[c[0]] = 0
	}
	for i := range s.records {
		r := &s.records[i]
		s.Outcomes[string(r.Class())]++
		if r.Rewards != nil {
			s.WithReward++
		}
	}
	s.Outcomes[classUnreadable] = unreadable
	// Directories without a result can be more than the plan has place for.
	left := max(s.Planned-len(s.records)-unreadable, 0)
	s.Outcomes[classUnfinished] = min(left, len(s.Unfinished))
	s.Outcomes[classNotRun] = left - s.Outcomes[classUnfinished]
	s.Coverage = jsonNumber(math.NaN())
	if s.Planned > 0 {
		s.Coverage = jsonNumber(float64(s.WithReward) / float64(s.Planned))
	}
}

func (s *jobSummary) estimate() {
	records := make([]jobdir.Record, len(s.records))
	for i := range s.records {
		records[i] = s.records[i].Record
	}
	s.statistics = score.NewStatistics(records, s.Planned)
	slices.SortFunc(s.statistics.Groups, func(a, b score.GroupStatistics) int { return cmp.Compare(a.Group, b.Group) })
	s.Groups = newJSONStatistics(&s.statistics).Groups
}

func (s *jobSummary) collectErrors() {
	byType := map[string][]string{}
	for _, r := range s.records {
		if r.ExceptionType != "" {
			byType[r.ExceptionType] = append(byType[r.ExceptionType], r.Dir)
		}
	}
	s.Errors = []errorSummary{}
	for typ, names := range byType {
		s.Errors = append(s.Errors, errorSummary{typ, names})
	}
	slices.SortFunc(s.Errors, func(a, b errorSummary) int {
		return cmp.Or(cmp.Compare(len(b.Trials), len(a.Trials)), cmp.Compare(a.Type, b.Type))
	})
}

// slowestPhases is how many are listed.
const slowestPhases = 5

func (s *jobSummary) timePhases() {
	byPhase := map[string][]float64{}
	var all []slowPhase
	for _, r := range s.records {
		data, err := os.ReadFile(filepath.Join(s.Dir, r.Dir, scan.ResultFile))
		if err != nil {
			continue // it was there a moment ago; what is gone has no phases
		}
		result, err := jobdir.ParseTrialResult(data)
		if err != nil {
			s.Problems = append(s.Problems, fmt.Sprintf("%s: %v", r.Dir, err))
			continue
		}
		for _, p := range phasesOf(&result) {
			byPhase[p.Kind] = append(byPhase[p.Kind], p.Seconds)
			all = append(all, slowPhase{r.Dir, p.Name, p.Seconds})
		}
	}
	s.Phases = []phaseSummary{}
	for _, kind := range phaseKinds {
		if times := byPhase[kind]; len(times) > 0 {
			slices.Sort(times)
			p := phaseSummary{Phase: kind, Trials: len(times), Median: times[len(times)/2], Longest: times[len(times)-1]}
			for _, x := range times {
				p.Total += x
			}
			s.Phases = append(s.Phases, p)
		}
	}
	slices.SortStableFunc(all, func(a, b slowPhase) int { return cmp.Compare(b.Seconds, a.Seconds) })
	s.Slowest = append([]slowPhase{}, all[:min(len(all), slowestPhases)]...)
}
