package view

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
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
	c, err := report.Compare(r.Context(), a.path, b.path, score.CompareOptions{AllowDifferentTasks: true})
	if err != nil {
		return &badRequestError{s.text(err)}
	}
	p := &comparePage{
		Frame: frame{Title: "Comparison", Crumbs: []crumb{{"Jobs", "/"}}},
		A:     link{plain(a.name), a.href()}, B: link{plain(b.name), b.href()},
		MeanA: decimals(float64(c.MeanA)), MeanB: decimals(float64(c.MeanB)), Difference: signed(float64(c.Difference)),
		Low: signed(float64(c.Low)), High: signed(float64(c.High)), Confidence: percent(c.Confidence),
		Wins: c.Wins, Losses: c.Losses, Ties: c.Ties, SignP: decimals(float64(c.SignP)),
		Sort: cmp.Or(q.Get("sort"), "difference"),
	}
	p.Better, p.Worse = float64(c.Low) > 0, float64(c.High) < 0
	p.Equal = !p.Better && !p.Worse
	for _, t := range c.Tasks {
		p.add(a, b, t)
	}
	p.OnlyA, p.OnlyB = plainAll(c.OnlyA), plainAll(c.OnlyB)
	p.order(q.Get("a"), q.Get("b"))
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
		Task: plain(t.Task), A: decimals(float64(t.A)), B: decimals(float64(t.B)), Difference: signed(difference), TrialsA: t.TrialsA, TrialsB: t.TrialsB,
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

func (p *comparePage) order(a, b string) {
	slices.SortStableFunc(p.Tasks, func(x, y pairRow) int { return cmp.Compare(x.Task, y.Task) })
	if p.Sort == "difference" {
		slices.SortStableFunc(p.Tasks, func(x, y pairRow) int { return cmp.Compare(math.Abs(y.by), math.Abs(x.by)) })
	}
	for _, by := range []string{"difference", "task"} {
		p.Sorts = append(p.Sorts, choice{Text: by, Href: query("/compare", "a", a, "b", b, "sort", by), Chosen: by == p.Sort})
	}
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
		out[i] = plain(s)
	}
	return out
}
