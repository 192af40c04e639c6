package view

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/proctor-run/proctor/report"
)

// mostCompared is how many jobs are compared with another one on a page.
const mostCompared = 20

// severalPage holds several jobs beside the oldest of them.
type severalPage struct {
	Frame   frame
	Base    comparedJob
	Jobs    []comparedJob // without the base
	Rewards []choice      // by which they can be compared
	Scale   string        // how far from 0 the intervals are drawn
	Tasks   []comparedTask
	Sort    string
	Sorts   []choice
}

// comparedJob is a job with its difference from the base over the tasks of both.
type comparedJob struct {
	link
	Mean, Base              string // of those tasks, and the base's
	Tasks                   int
	Difference              string
	Low, High               string
	Wins, Losses, Ties      int
	Better, Worse           bool
	By                      string // the reward, where one was chosen
	Pair                    string // where the two are compared
	Error                   string // why they cannot be
	Line                    meanRow
	difference, low, high   float64
	means                   map[string]report.TaskPair
	DifferentContent, Fewer int // tasks with other files; tasks of the base that are not there
	read                    *report.Job
}

// comparedTask is a task of the base in all jobs, the base's first.
type comparedTask struct {
	Task   string
	Cells  []comparedCell
	spread float64
}

type comparedCell struct {
	Text, Href, Style string
	Trials            int
}

// serveSeveral compares jobs, of which the first is the base.
func (s *Server) serveSeveral(w http.ResponseWriter, r *http.Request, jobs []place) error {
	if len(jobs) < 2 {
		return &badRequestError{"a comparison is of two jobs or more: choose them in the list"}
	}
	if len(jobs) > mostCompared {
		return &badRequestError{"a comparison has room for " + count(mostCompared, "job")}
	}
	base, q := jobs[0], url.Values{"reward": r.URL.Query()["reward"], "sort": r.URL.Query()["sort"]}
	for _, job := range jobs {
		q.Add("job", job.compare())
	}
	p := &severalPage{Frame: frame{Title: "Comparison", Crumbs: []crumb{{"Jobs", "/"}}}, Sort: cmp.Or(r.URL.Query().Get("sort"), sortDifference)}
	first, err := s.readJob(r.Context(), base.path, false)
	if err != nil {
		return &badRequestError{s.text(err)}
	}
	if p.Base = s.compared(r.Context(), base, first, base, q.Get("reward")); p.Base.Error != "" {
		return &badRequestError{p.Base.Error}
	}
	read := []*report.Job{first}
	for _, job := range jobs[1:] {
		c := s.compared(r.Context(), base, first, job, q.Get("reward"))
		p.Jobs = append(p.Jobs, c)
		if c.read != nil {
			read = append(read, c.read)
		}
	}
	p.draw()
	p.tasks(base, jobs[1:])
	p.Rewards = rewardChoices(cmp.Or(q.Get("reward"), p.Base.By), read, q)
	for _, by := range []string{sortDifference, sortTask} {
		p.Sorts = append(p.Sorts, choice{Text: by, Href: "/compare?" + with(q, "sort", by), Chosen: by == p.Sort})
	}
	s.render(w, http.StatusOK, "several", p)
	return nil
}

// compared holds a job beside the base, which has been read.
func (s *Server) compared(ctx context.Context, base place, first *report.Job, job place, reward string) comparedJob {
	out := comparedJob{
		link: link{label(job.name), job.href()}, Pair: query("/compare", "a", base.compare(), "b", job.compare(), "reward", reward),
		difference: math.NaN(), means: map[string]report.TaskPair{},
	}
	var err error
	if out.read, err = s.readJob(ctx, job.path, false); err != nil {
		out.Error = s.text(err)
		return out
	}
	c, by, err := compareJobs(first, out.read, reward)
	out.By = label(by)
	if err != nil {
		out.Error = s.text(err)
		return out
	}
	out.difference, out.low, out.high = float64(c.Difference), float64(c.Low), float64(c.High)
	out.Mean, out.Base, out.Tasks = decimals(float64(c.MeanB)), decimals(float64(c.MeanA)), len(c.Tasks)
	out.Difference, out.Low, out.High = signed(out.difference), signed(out.low), signed(out.high)
	out.Wins, out.Losses, out.Ties, out.Fewer = c.Wins, c.Losses, c.Ties, len(c.OnlyA)
	out.Better, out.Worse = out.low > 0, out.high < 0
	for _, t := range c.Tasks {
		out.means[t.Task] = t
		if t.DifferentContent {
			out.DifferentContent++
		}
	}
	return out
}

// draw puts all intervals on one line, with 0 in its middle.
func (p *severalPage) draw() {
	scale := 0.0
	for _, c := range p.Jobs {
		for _, x := range []float64{c.difference, c.low, c.high} {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				scale = max(scale, math.Abs(x))
			}
		}
	}
	p.Scale = decimals(scale)
	at := func(x float64) float64 { return 50 + 50*x/scale }
	for i := range p.Jobs {
		c := &p.Jobs[i]
		c.Line = meanRow{Mean: c.Difference, Low: c.Low, High: c.High, Drawn: scale > 0 && c.low <= c.difference && c.difference <= c.high}
		if c.Line.Drawn {
			c.Line.At, c.Line.From, c.Line.Width = at(c.difference), at(c.low), at(c.high)-at(c.low)
		}
	}
}

// tasks lists those of the base, the ones that differ most first.
func (p *severalPage) tasks(base place, jobs []place) {
	for name, own := range p.Base.means {
		task := comparedTask{Task: label(name)}
		cell := func(job place, t report.TaskPair, x report.Number) comparedCell {
			c := comparedCell{Text: decimals(float64(x)), Href: query(job.href(), "task", name) + "#trials", Trials: t.TrialsB}
			switch difference := float64(x - own.A); {
			case difference > 0:
				c.Style = "full"
			case difference < 0:
				c.Style = "zero"
			}
			task.spread = max(task.spread, math.Abs(float64(x-own.A)))
			return c
		}
		task.Cells = append(task.Cells, cell(base, own, own.A))
		for i, job := range jobs {
			if t, ok := p.Jobs[i].means[name]; ok {
				task.Cells = append(task.Cells, cell(job, t, t.B))
			} else {
				task.Cells = append(task.Cells, comparedCell{Text: none})
			}
		}
		p.Tasks = append(p.Tasks, task)
	}
	slices.SortFunc(p.Tasks, func(a, b comparedTask) int {
		if p.Sort == sortDifference && a.spread != b.spread {
			return cmp.Compare(b.spread, a.spread)
		}
		return cmp.Compare(a.Task, b.Task)
	})
}

// oldestFirst sorts jobs by when they began, those of which that is not known last.
func (s *Server) oldestFirst(jobs []place) {
	began := make(map[string]time.Time, len(jobs))
	for _, job := range jobs {
		if listed := s.listJob(job.path, false); listed.job.Started != nil {
			began[job.path] = *listed.job.Started
		}
	}
	slices.SortStableFunc(jobs, func(a, b place) int {
		at, other := began[a.path], began[b.path]
		if at.IsZero() || other.IsZero() {
			return cmp.Compare(other.Unix(), at.Unix())
		}
		return at.Compare(other)
	})
}
