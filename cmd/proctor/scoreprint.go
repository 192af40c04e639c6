package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/proctor-run/proctor/score"
)

// maxUnfinished is up to how many directories without result are named.
const maxUnfinished = 10

func printUnfinished(w io.Writer, r *score.Rescored) {
	n := len(r.Unfinished)
	if n == 0 {
		return
	}
	names := strings.Join(r.Unfinished[:min(n, maxUnfinished)], ", ")
	if n > maxUnfinished {
		names += ", …"
	}
	noun := "directories"
	if n == 1 {
		noun = "directory"
	}
	_, _ = fmt.Fprintf(w, "%d %s without a result, not counted: %s\n", n, noun, clean(names))
}

func printDifferences(w io.Writer, r *score.Rescored, differences []score.Difference) {
	for _, d := range differences {
		_, _ = fmt.Fprintln(w, clean(d.String()))
	}
	if len(differences) == 0 {
		_, _ = fmt.Fprintf(w, "equal: the stored result is what its %s\n", countGive(len(r.Records), "trial"))
		return
	}
	_, _ = fmt.Fprintf(w, "%s from what its %s\n", differText(len(differences)), countGive(len(r.Records), "trial"))
}

func differText(n int) string {
	if n == 1 {
		return "1 field of the stored result differs"
	}
	return fmt.Sprintf("%d fields of the stored result differ", n)
}

// jsonScore is what score --json prints per job.
type jsonScore struct {
	Job        string   `json:"job"`
	Trials     int      `json:"n_trials"`
	Unfinished []string `json:"unfinished"`
	Warnings   []string `json:"warnings"`
	// Statistics say how far the result can be trusted.
	Statistics *jsonStatistics `json:"statistics"`
	// Equal and Differences are there with --check.
	Equal       *bool            `json:"equal,omitempty"`
	Differences []jsonDifference `json:"differences,omitempty"`
	// Result is what the trials give, as result.json has it.
	Result json.RawMessage `json:"result"`
}

type jsonDifference struct {
	Group    string `json:"group,omitempty"`
	Trial    string `json:"trial,omitempty"`
	Field    string `json:"field"`
	Stored   string `json:"stored"`
	Computed string `json:"computed"`
}

func printScoreJSON(w io.Writer, f *scoreFlags, r *score.Rescored, differences []score.Difference) error {
	out := jsonScore{
		Job: r.Dir, Trials: len(r.Records), Unfinished: orEmpty(r.Unfinished), Warnings: orEmpty(r.Warnings),
		Result: r.Result.AppendJSON(nil),
	}
	stats := score.NewStatistics(recordsOf(r), r.Result.NTotalTrials)
	out.Statistics = newJSONStatistics(&stats)
	if f.check {
		equal := len(differences) == 0
		out.Equal = &equal
		for _, d := range differences {
			out.Differences = append(out.Differences, jsonDifference(d))
		}
	}
	return encodeJSON(w, out)
}

// encodeJSON writes one JSON object on a line.
func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return outputError(enc.Encode(v))
}

// outputError says what a failed write was for; nil stays nil.
func outputError(err error) error {
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// orEmpty makes an empty list of none, which JSON would have as null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
