package view

import (
	"cmp"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/report"
)

// jobPage is one job.
type jobPage struct {
	Frame               frame
	Name                string
	Href                string
	State               report.State
	Started, Ago, Took  string
	Planned, WithReward int
	Coverage            string
	Outcomes            []share
	Groups              []groupRow
	Errors              []errorRow
	Phases              []phaseRow
	Slowest             []slowRow
	Flaky               []flakyRow
	Usage               []figure // of models
	Suspicious          int      // trials
	Problems            []string
	Matrix              matrix
	Histograms          []histogram
	Timeline            *timeline
	Settings            []noteRow
	Filter              filter
	Trials              trialList
}

// share is how many trials have an outcome.
type share struct {
	look
	N       int
	Percent float64
	Href    string // the trials with it
	Chosen  bool
}

type groupRow struct {
	Name       string
	Trials     int
	WithReward int
	Means      []meanRow
	Flake      string
	Repeated   int
}

// meanRow is a mean with its interval, as text and as places on a line from 0 to 1, in
// percent.
type meanRow struct {
	Reward, Mean, Low, High, Method string
	Tasks                           int
	Drawn                           bool // the line holds the interval
	At, From, Width                 float64
}

type errorRow struct {
	Type, Reason string
	N            int
	Href         string
	Examples     []link
}

type link struct{ Text, Href string }

type phaseRow struct {
	Name                   string
	Trials                 int
	Total, Median, Longest string
	Percent                float64 // of the time of all phases
}

type slowRow struct {
	Took, Phase string
	Trial       link
	Percent     float64 // of the slowest
}

type flakyRow struct {
	Task, Group string
	Rewards     string
	Href        string
}

func (s *Server) serveJob(w http.ResponseWriter, r *http.Request) error {
	at, err := s.jobOf(r)
	if err != nil {
		return err
	}
	j, err := s.readJob(r.Context(), at.path, toBeSure(r))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	p := &jobPage{
		Frame: frame{Title: label(at.name), Crumbs: []crumb{{"Jobs", "/"}}}, Name: label(at.name), Href: at.href(),
		State: j.State, Started: moment(j.Started), Ago: s.ago(j.Started), Took: took(j, s.o.Now()),
		Planned: j.Planned, WithReward: j.WithReward, Coverage: percent(float64(j.Coverage)),
		Filter: filterOf(q),
	}
	if j.State == report.Running && !s.still {
		p.Frame.Changes = at.href() + "/changes"
	}
	from, err := placeOf(q)
	if err != nil {
		return err
	}
	p.Settings = settingsOf(at.path)
	rows := rowsOf(at, j)
	tasks := mostTasks
	if q.Get("tasks") == "all" {
		tasks = len(rows)
	}
	p.fill(at, j, rows, tasks)
	p.Matrix.All = query(p.Filter.address(at.href(), 0), "tasks", "all")
	p.Trials = s.listTrials(at, rows, p.Filter, from)
	s.render(w, http.StatusOK, "job", p)
	return nil
}

// took is how long a job took, or takes.
func took(j *report.Job, now time.Time) string {
	switch {
	case j.Started == nil:
		return none
	case j.Finished != nil:
		return seconds(j.Finished.Sub(*j.Started).Seconds())
	case j.State == report.Running:
		return seconds(now.Sub(*j.Started).Seconds()) + " so far"
	}
	return none
}

// fill has a matrix of as many tasks.
func (p *jobPage) fill(at place, j *report.Job, rows []trialRow, tasks int) {
	for _, problem := range j.Problems {
		p.Problems = append(p.Problems, prose(problem))
	}
	if j.Journal != nil {
		p.Suspicious = j.Journal.Suspicious
	}
	p.groups(j)
	p.errors(at, j)
	p.phases(at, j)
	d := j.Digest()
	p.digest(at, d)
	p.Histograms, p.Timeline = histograms(d), timelineOf(d.Timeline)
	p.outcomes(at, j, rows)
	p.Matrix = matrixOf(rows, tasks)
}

func (p *jobPage) groups(j *report.Job) {
	for _, g := range j.Groups {
		row := groupRow{Name: label(g.Group), Trials: g.Trials, WithReward: g.WithReward, Repeated: g.Attempts.Repeated}
		if g.Attempts.Repeated > 0 {
			row.Flake = percent(float64(g.Attempts.FlakeRate))
		}
		for _, m := range g.Means {
			row.Means = append(row.Means, newMeanRow(m))
		}
		p.Groups = append(p.Groups, row)
	}
}

func newMeanRow(m report.Mean) meanRow {
	mean, low, high := float64(m.Mean), float64(m.Low), float64(m.High)
	row := meanRow{
		Reward: label(m.Reward), Mean: decimals(mean), Low: decimals(low), High: decimals(high), Method: string(m.Method), Tasks: m.Tasks,
		Drawn: low >= 0 && high <= 1 && low <= high && mean >= 0 && mean <= 1,
	}
	if row.Drawn {
		row.At, row.From, row.Width = 100*mean, 100*low, 100*(high-low)
	}
	return row
}

func (p *jobPage) errors(at place, j *report.Job) {
	const examples = 3
	for _, e := range j.Exceptions {
		row := errorRow{Type: label(e.Type), Reason: string(e.ReasonCode), N: len(e.Trials), Href: query(at.href(), "error", e.Type) + "#trials"}
		for _, name := range e.Trials[:min(examples, len(e.Trials))] {
			row.Examples = append(row.Examples, link{label(name), at.trialHref(name)})
		}
		p.Errors = append(p.Errors, row)
	}
}

func (p *jobPage) phases(at place, j *report.Job) {
	all := 0.0
	for _, ph := range j.Phases {
		all += ph.Total
	}
	for _, ph := range j.Phases {
		p.Phases = append(p.Phases, phaseRow{
			Name: string(ph.Phase), Trials: ph.Trials, Total: seconds(ph.Total), Median: seconds(ph.Median), Longest: seconds(ph.Longest),
			Percent: ratio(ph.Total, all),
		})
	}
	for _, slow := range j.Slowest {
		p.Slowest = append(p.Slowest, slowRow{
			Took: seconds(slow.Seconds), Phase: label(slow.Phase), Trial: link{label(slow.Trial), at.trialHref(slow.Trial)},
			Percent: ratio(slow.Seconds, j.Slowest[0].Seconds),
		})
	}
}

// ratio is a share in percent, within what can be drawn.
func ratio(x, of float64) float64 {
	if !(of > 0) || !(x > 0) {
		return 0
	}
	return 100 * min(x/of, 1)
}

func (p *jobPage) digest(at place, d *report.Digest) {
	const most = 20
	for _, f := range d.Flaky[:min(most, len(d.Flaky))] {
		row := flakyRow{Task: label(f.Task), Group: label(f.Group), Href: query(at.href(), "task", f.Task) + "#trials"}
		var texts []string
		for _, r := range f.Values {
			texts = append(texts, prose(rewardsText(r)))
		}
		row.Rewards, _ = cut(strings.Join(texts, " · "), 200)
		p.Flaky = append(p.Flaky, row)
	}
	u := d.Usage
	p.Usage = usage(dollars(u.Cost), tokensJSON(u.Input), tokensJSON(u.Cache), tokensJSON(u.Output))
}

func (p *jobPage) outcomes(at place, j *report.Job, rows []trialRow) {
	byLook := map[look]int{}
	for _, row := range rows {
		byLook[row.look]++
	}
	for _, class := range []jobdir.Class{report.ClassUnreadable, report.ClassNotRun} {
		if n := j.Outcomes[class]; n > 0 {
			byLook[lookOf(class, 0, false)] += n
		}
	}
	all := max(j.Planned, len(rows))
	for l, n := range byLook {
		key := l.Key()
		p.Outcomes = append(p.Outcomes, share{look: l, N: n, Percent: ratio(float64(n), float64(all)), Href: query(at.href(), "outcome", key) + "#trials", Chosen: p.Filter.Outcome == key})
	}
	slices.SortFunc(p.Outcomes, func(a, b share) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.style()), slices.Index(order, b.style())), cmp.Compare(a.Text, b.Text))
	})
}

// order is that of outcomes, the best first.
var order = []string{"full", "part", "zero", "none", "error", "stopped", "open"}

func (l look) style() string { first, _, _ := strings.Cut(l.Style, " "); return first }

// Key is the look in an address.
func (l look) Key() string { return strings.ReplaceAll(l.Style, " ", "-") }

// matrix shows every attempt at every task.
type matrix struct {
	Groups []matrixGroup
	// More is how many tasks are left out, All the page that has them.
	More int
	All  string
}

type matrixGroup struct {
	Name string
	Rows []matrixRow
	// Narrow: its rows are so short that several fit beside each other.
	Narrow bool
}

// mostNarrow is how many attempts a narrow row has.
const mostNarrow = 6

type matrixRow struct {
	Task  string
	Cells []trialRow
}

// mostTasks is how many rows the matrix has, unless one asks for all.
const mostTasks = 400

func matrixOf(rows []trialRow, most int) matrix {
	var m matrix
	n := 0
	for _, row := range rows {
		if len(m.Groups) == 0 || m.Groups[len(m.Groups)-1].Name != row.Group {
			m.Groups = append(m.Groups, matrixGroup{Name: row.Group})
		}
		g := &m.Groups[len(m.Groups)-1]
		if len(g.Rows) == 0 || g.Rows[len(g.Rows)-1].Task != row.Task {
			if n++; n > most {
				m.More++
				g.Rows = append(g.Rows, matrixRow{Task: row.Task})
				continue
			}
			g.Rows = append(g.Rows, matrixRow{Task: row.Task})
		}
		if n <= most {
			last := &g.Rows[len(g.Rows)-1]
			last.Cells = append(last.Cells, row)
		}
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		g.Rows = slices.DeleteFunc(g.Rows, func(r matrixRow) bool { return len(r.Cells) == 0 })
		g.Narrow = !slices.ContainsFunc(g.Rows, func(r matrixRow) bool { return len(r.Cells) > mostNarrow })
	}
	m.Groups = slices.DeleteFunc(m.Groups, func(g matrixGroup) bool { return len(g.Rows) == 0 })
	return m
}

// jobCrumbs lead to a page of a job.
func (s *Server) jobCrumbs(at place) []crumb {
	return []crumb{{"Jobs", "/"}, {label(filepath.Base(at.path)), at.href()}}
}
