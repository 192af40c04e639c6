package view

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/report"
)

// partRows is how many trials are a part of a list, and partsPerPage how many parts a page
// has at first. Its script asks for others when they come near; without it there are links.
// A page without a server has more, for nobody can be asked for the others.
const (
	partRows     = 100
	partsPerPage = 5
	mostStill    = 20_000
)

type trialRow struct {
	look
	Name, Href, Task, Group string
	Whole                   string // dataset and task, as comparisons name it
	Reward, Error           string
	Started                 string
	Cost                    string
	class                   jobdir.Class
	at                      int64
}

// trialList is a part of the trials that a filter lets through.
type trialList struct {
	Found   int // all of them
	To      int // behind the last that is shown
	Parts   []trialPart
	Address string // of a part, for the script; empty where all are shown
	Turns   turns
}

type trialPart struct {
	From int // the first is 0
	Rows []trialRow
}

// Rows is how many rows the table has with its head.
func (l trialList) Rows() int { return l.Found + 1 }

// Index is the place of a row of a part in the table, whose head is the first.
func (p trialPart) Index(row int) int { return p.From + row + 2 }

// filter is what the trials that are listed have in common; it is part of the address.
type filter struct{ Outcome, Error, Task string }

func (f filter) any() bool { return f != filter{} }

// Any reports whether something is filtered.
func (f filter) Any() bool { return f.any() }

func filterOf(q url.Values) filter {
	return filter{Outcome: q.Get("outcome"), Error: q.Get("error"), Task: q.Get("task")}
}

// address is one of a job with this filter.
func (f filter) address(path string, from int) string {
	text := ""
	if from > 0 {
		text = strconv.Itoa(from)
	}
	return query(path, "outcome", f.Outcome, "error", f.Error, "task", f.Task, "from", text)
}

// choose leaves the rows that the filter lets through.
func (f filter) choose(rows []trialRow) []trialRow {
	if !f.any() {
		return rows
	}
	var chosen []trialRow
	for _, row := range rows {
		if f.lets(&row) {
			chosen = append(chosen, row)
		}
	}
	return chosen
}

func (f filter) lets(row *trialRow) bool {
	return (f.Outcome == "" || f.Outcome == row.Key()) && (f.Error == "" || f.Error == row.Error) && (f.Task == "" || strings.Contains(row.Whole, f.Task))
}

// placeOf is the first trial that a request wants to see, at the beginning of a part.
func placeOf(q url.Values) (int, error) {
	text := q.Get("from")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, &badRequestError{"from: expected the number of a trial"}
	}
	return n / partRows * partRows, nil
}

func (s *Server) listTrials(at place, rows []trialRow, f filter, from int) trialList {
	rows = f.choose(rows)
	parts := partsPerPage
	if s.still {
		parts = mostStill / partRows
	}
	last := max(len(rows)-1, 0) / partRows * partRows
	from = min(from, last)
	list := trialList{Found: len(rows), To: min(from+parts*partRows, len(rows))}
	for i := from; i < list.To; i += partRows {
		list.Parts = append(list.Parts, trialPart{From: i, Rows: rows[i:min(i+partRows, list.To)]})
	}
	if s.still || from == 0 && list.To == len(rows) {
		return list
	}
	list.Address = f.address(at.href()+"/rows", 0)
	list.Turns = turns{What: "Trials", From: strconv.Itoa(from + 1), To: strconv.Itoa(list.To)}
	turn := func(text string, n int) *link { return &link{text, f.address(at.href(), n) + "#trials"} }
	if from > 0 {
		list.Turns.First, list.Turns.Before = turn("first", 0), turn("earlier", max(from-parts*partRows, 0))
	}
	if list.To < len(rows) {
		list.Turns.After, list.Turns.Last = turn("later", list.To), turn("last", last)
	}
	return list
}

// serveRows answers with one part of the trials, for a list that is there already.
func (s *Server) serveRows(w http.ResponseWriter, r *http.Request) error {
	at, err := s.jobOf(r)
	if err != nil {
		return err
	}
	from, err := placeOf(r.URL.Query())
	if err != nil {
		return err
	}
	j, err := s.readJob(r.Context(), at.path, false)
	if err != nil {
		return err
	}
	rows := filterOf(r.URL.Query()).choose(rowsOf(at, j))
	from = min(from, len(rows))
	s.renderPart(w, "job", "rows", trialPart{From: from, Rows: rows[from:min(from+partRows, len(rows))]})
	return nil
}

// rowsOf lists the trials with a result, those of a task together, and those without.
func rowsOf(at place, j *report.Job) []trialRow {
	var rows []trialRow
	for _, r := range j.Records() {
		rows = append(rows, newTrialRow(at, &r))
	}
	for _, dir := range j.Unfinished {
		task, _, _ := strings.Cut(dir, "__")
		row := trialRow{look: lookOf(report.ClassUnfinished, 0, false), Name: label(dir), Href: at.trialHref(dir), Task: label(task), Whole: label(task), Reward: none, Started: none, Cost: none, class: report.ClassUnfinished}
		if j.State == report.Running {
			row.Text = "running"
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b trialRow) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Task, b.Task), cmp.Compare(a.at, b.at))
	})
	return rows
}

func newTrialRow(at place, r *scan.FileRecord) trialRow {
	x, has := firstReward(r.Rewards)
	row := trialRow{
		look: lookOf(r.Class(), x, has), Name: label(r.Dir), Href: at.trialHref(r.Dir), Task: label(r.TaskName), Group: label(r.EvalsKey()),
		Whole:  label(r.Dataset() + "/" + r.TaskName),
		Reward: label(rewardsText(r.Rewards)), Error: label(r.Exception()), Started: none, Cost: dollars(r.Usage.CostUSD),
		class: r.Class(), at: r.StartedAt,
	}
	if r.StartedAt != 0 {
		row.Started = time.UnixMicro(r.StartedAt).UTC().Format("15:04:05")
	}
	return row
}
