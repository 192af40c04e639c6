package view

import (
	"cmp"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/report"
)

// jobsPage lists the jobs.
type jobsPage struct {
	Frame       frame
	Query, Sort string
	Sorts       []choice
	Rows        []jobRow
	All         int    // jobs, of which Rows are those that were searched for
	Given       []link // trials and trajectories
	Compared    string // where all jobs are, on a page that stays
	Problems    []string
}

// choice is one of several ways to look at a page.
type choice struct {
	Text, Href string
	Chosen     bool
}

type jobRow struct {
	Name, Href, Dir string
	State           report.State
	Started, Ago    string
	Done, Total     int
	Share           float64 // of the trials that are done, in percent
	Errored         int
	Headlines       []headline
	Spark           string // how far it had come when, of a job that runs
	Error           string
	at              int64
	result, compare string
	path            string
}

// headline is the first metric of a group. Tags are the agent, the model and the dataset
// that the group is of; each leads to the jobs with it.
type headline struct {
	Text    string
	NScored int
	Tags    []link
}

// Compare is what the job is called in the address of a comparison.
func (r jobRow) Compare() string { return r.compare }

// Sorts of the list.
const (
	sortNewest = "newest"
	sortName   = "name"
	sortErrors = "errors"
	sortTrials = "trials"
)

func (s *Server) serveJobs(w http.ResponseWriter, r *http.Request) error {
	p := &jobsPage{Frame: frame{Title: "Jobs"}, Query: r.URL.Query().Get("q"), Sort: cmp.Or(r.URL.Query().Get("sort"), sortNewest)}
	if !s.still && len(s.dirs) == 1 && (s.dirs[0].trial != "" || s.dirs[0].file != "") {
		http.Redirect(w, r, s.first(0), http.StatusSeeOther)
		return nil
	}
	for i, d := range s.dirs {
		if d.trial != "" || d.file != "" {
			p.Given = append(p.Given, link{label(cmp.Or(d.trial, d.file)), s.first(i)})
			continue
		}
		jobs, err := s.listJobs(d, toBeSure(r))
		if err != nil {
			p.Problems = append(p.Problems, s.text(err))
			continue
		}
		for _, j := range jobs {
			p.Rows = append(p.Rows, s.jobRow(i, &j))
		}
	}
	p.All = len(p.Rows)
	if words := strings.Fields(strings.ToLower(p.Query)); len(words) > 0 {
		p.Rows = slices.DeleteFunc(p.Rows, func(row jobRow) bool { return !row.matches(words) })
	}
	p.order()
	if s.still {
		p.compareAll()
	} else {
		s.sparks(r.Context(), p.Rows)
	}
	s.render(w, http.StatusOK, "jobs", p)
	return nil
}

// compareAll leads to a comparison of all jobs: where nobody can be asked, it is there.
func (p *jobsPage) compareAll() {
	if len(p.Rows) < 2 || len(p.Rows) > mostCompared {
		return
	}
	q := url.Values{}
	for i := range p.Rows {
		q.Add("job", p.Rows[i].compare)
	}
	p.Compared = "/compare?" + q.Encode()
}

// first is the page of a trial or a trajectory that was given by itself.
func (s *Server) first(i int) string {
	if s.dirs[i].file != "" {
		return s.dirs[i].href(i) + "/trajectory"
	}
	return s.dirs[i].href(i)
}

func (s *Server) jobRow(dir int, j *report.ListedJob) jobRow {
	at := place{index: dir, name: j.Name}
	row := jobRow{
		Name: label(j.Name), Href: at.href(), Dir: filepath.Base(s.dirs[dir].path), State: j.State, Started: moment(j.Started), Ago: s.ago(j.Started),
		Done: j.Completed, Total: j.Total, Errored: j.Errored, Error: label(j.Error), compare: at.compare(), path: j.Dir,
	}
	if j.Started != nil {
		row.at = j.Started.UnixNano()
	}
	if j.Total > 0 {
		row.Share = 100 * min(float64(j.Completed)/float64(j.Total), 1)
	}
	for _, h := range j.Headlines {
		line := headline{Text: label(h.Text), NScored: h.NScored}
		for tag := range strings.SplitSeq(label(h.Group), "__") {
			if tag != "" {
				line.Tags = append(line.Tags, link{tag, query("/", "q", tag)})
			}
		}
		row.Headlines = append(row.Headlines, line)
		row.result += " " + label(h.Group)
	}
	return row
}

// matches reports whether every word is in the row.
func (r *jobRow) matches(words []string) bool {
	text := strings.ToLower(r.Name + " " + r.Dir + " " + string(r.State) + r.result)
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) })
}

// order sorts the rows; those that are equal stay the newest first.
func (p *jobsPage) order() {
	slices.SortStableFunc(p.Rows, func(a, b jobRow) int { return cmp.Compare(b.at, a.at) })
	switch p.Sort {
	case sortName:
		slices.SortStableFunc(p.Rows, func(a, b jobRow) int { return cmp.Compare(a.Name, b.Name) })
	case sortErrors:
		slices.SortStableFunc(p.Rows, func(a, b jobRow) int { return cmp.Compare(b.Errored, a.Errored) })
	case sortTrials:
		slices.SortStableFunc(p.Rows, func(a, b jobRow) int { return cmp.Compare(b.Total, a.Total) })
	}
	for _, by := range []string{sortNewest, sortName, sortErrors, sortTrials} {
		p.Sorts = append(p.Sorts, choice{Text: by, Href: query("/", "q", p.Query, "sort", by), Chosen: by == p.Sort})
	}
}
