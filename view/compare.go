package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/report"
	"github.com/proctor-run/proctor/score"
)

// comparePage holds one job beside another, task by task.
type comparePage struct {
	Frame                frame
	A, B                 link
	MeanA, MeanB         string
	Difference           string
	Low, High            string
	Confidence           string
	Wins, Losses, Ties   int
	SignP                string
	Tasks                []pairRow
	Points               []point
	OnlyA, OnlyB         []string
	Reward               string   // by which they are compared, where one was chosen
	Rewards              []choice // of which one can be
	Sort                 string
	Sorts                []choice
	DifferentContent     int
	Equal, Better, Worse bool
}

type pairRow struct {
	Task, A, B, Difference string
	TrialsA, TrialsB       int
	HrefA, HrefB           string
	Style                  string
	Different              bool
	by                     float64
}

// Sorts of a comparison's tasks.
const (
	sortDifference = "difference"
	sortTask       = "task"
)

// point is a task at its means, of 100.
type point struct {
	X, Y  float64
	Title string
}

func (s *Server) serveCompare(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if chosen := q["job"]; len(chosen) > 0 { // in the list
		jobs := make([]place, len(chosen))
		for i, name := range chosen {
			job, err := s.jobNamed(name)
			if err != nil {
				return err
			}
			jobs[i] = job
		}
		s.oldestFirst(jobs)
		if len(jobs) != 2 {
			return s.serveSeveral(w, r, jobs)
		}
		q.Del("job")
		q.Set("a", jobs[0].compare())
		q.Set("b", jobs[1].compare())
	}
	a, err := s.jobNamed(q.Get("a"))
	if err != nil {
		return err
	}
	b, err := s.jobNamed(q.Get("b"))
	if err != nil {
		return err
	}
	jobs, err := s.readJobs(r.Context(), []place{a, b})
	if err != nil {
		return &badRequestError{s.text(err)}
	}
	c, by, err := compareJobs(jobs[0], jobs[1], q.Get("reward"))
	if err != nil {
		return &badRequestError{s.text(err)}
	}
	p := &comparePage{
		Frame: frame{Title: "Comparison", Crumbs: []crumb{{"Jobs", "/"}}},
		A:     link{label(a.name), a.href()}, B: link{label(b.name), b.href()},
		MeanA: decimals(float64(c.MeanA)), MeanB: decimals(float64(c.MeanB)), Difference: signed(float64(c.Difference)),
		Low: signed(float64(c.Low)), High: signed(float64(c.High)), Confidence: percent(c.Confidence),
		Wins: c.Wins, Losses: c.Losses, Ties: c.Ties, SignP: decimals(float64(c.SignP)),
		Sort: cmp.Or(q.Get("sort"), sortDifference),
	}
	p.Reward = label(by)
	p.Rewards = rewardChoices(by, jobs, q)
	p.Better, p.Worse = float64(c.Low) > 0, float64(c.High) < 0
	p.Equal = !p.Better && !p.Worse
	for _, t := range c.Tasks {
		p.add(a, b, t)
	}
	p.OnlyA, p.OnlyB = plainAll(c.OnlyA), plainAll(c.OnlyB)
	p.order(q)
	s.render(w, http.StatusOK, "compare", p)
	return nil
}

// jobNamed is the job that a parameter names as its pages' address does: "0/name".
func (s *Server) jobNamed(text string) (place, error) {
	dir, name, _ := strings.Cut(text, "/")
	index, err := strconv.Atoi(dir)
	if err != nil || index < 0 || index >= len(s.dirs) {
		return place{}, &badRequestError{"a comparison is of two jobs or more: choose them in the list"}
	}
	return s.jobIn(index, name)
}

func (p *comparePage) add(a, b place, t report.TaskPair) {
	difference := float64(t.B) - float64(t.A)
	row := pairRow{
		Task: label(t.Task), A: decimals(float64(t.A)), B: decimals(float64(t.B)), Difference: signed(difference), TrialsA: t.TrialsA, TrialsB: t.TrialsB,
		HrefA: query(a.href(), "task", t.Task) + "#trials", HrefB: query(b.href(), "task", t.Task) + "#trials",
		Different: t.DifferentContent, by: difference,
	}
	switch {
	case difference > 0:
		row.Style = "full"
	case difference < 0:
		row.Style = "zero"
	}
	if t.DifferentContent {
		p.DifferentContent++
	}
	p.Tasks = append(p.Tasks, row)
	if in(float64(t.A)) && in(float64(t.B)) {
		p.Points = append(p.Points, point{X: 100 * float64(t.A), Y: 100 - 100*float64(t.B), Title: row.Task + ": " + row.A + " → " + row.B})
	}
}

func in(x float64) bool { return x >= 0 && x <= 1 }

func (p *comparePage) order(q url.Values) {
	slices.SortStableFunc(p.Tasks, func(x, y pairRow) int { return cmp.Compare(x.Task, y.Task) })
	if p.Sort == sortDifference {
		slices.SortStableFunc(p.Tasks, func(x, y pairRow) int { return cmp.Compare(math.Abs(y.by), math.Abs(x.by)) })
	}
	for _, by := range []string{sortDifference, sortTask} {
		p.Sorts = append(p.Sorts, choice{Text: by, Href: "/compare?" + with(q, "sort", by), Chosen: by == p.Sort})
	}
}

// with is a query with another value of a parameter.
func with(q url.Values, name, v string) string {
	q = maps.Clone(q)
	q.Set(name, v)
	return q.Encode()
}

// readJobs reads jobs, or has done so.
func (s *Server) readJobs(ctx context.Context, places []place) ([]*report.Job, error) {
	jobs := make([]*report.Job, len(places))
	for i, at := range places {
		var err error
		if jobs[i], err = s.readJob(ctx, at.path, false); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// compareJobs compares jobs by a reward. Where none is chosen and one must be, it is the
// first by name of a trial that has several.
func compareJobs(a, b *report.Job, reward string) (c *report.Comparison, by string, err error) {
	o := score.CompareOptions{Reward: reward, AllowDifferentTasks: true}
	c, err = report.CompareJobs(a, b, o)
	if several, ok := errors.AsType[*score.SeveralRewardsError](err); ok {
		o.Reward = several.Names[0]
		c, err = report.CompareJobs(a, b, o)
	}
	return c, o.Reward, err
}

// rewardChoices are the rewards by which jobs can be compared; nil where there is one.
func rewardChoices(chosen string, jobs []*report.Job, q url.Values) []choice {
	var names []string
	for _, j := range jobs {
		for _, g := range j.Groups {
			for _, m := range g.Means {
				names = append(names, m.Reward)
			}
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) < 2 {
		return nil
	}
	var choices []choice
	for _, name := range names {
		choices = append(choices, choice{Text: label(name), Href: "/compare?" + with(q, "reward", name), Chosen: name == cmp.Or(chosen, "reward")})
	}
	return choices
}

// signed is a difference with its sign.
func signed(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return none
	}
	return fmt.Sprintf("%+.3f", x)
}

func plainAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = label(s)
	}
	return out
}
