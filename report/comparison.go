package report

import "github.com/proctor-run/proctor/score"

// Comparison compares job B with job A on the tasks of both: what proctor compare
// --json prints. A difference above 0 is in favour of B.
type Comparison struct {
	A          string     `json:"a"`
	B          string     `json:"b"`
	MeanA      Number     `json:"mean_a"`
	MeanB      Number     `json:"mean_b"`
	Difference Number     `json:"difference"`
	Low        Number     `json:"low"`
	High       Number     `json:"high"`
	Confidence float64    `json:"confidence"`
	Wins       int        `json:"wins"`
	Losses     int        `json:"losses"`
	Ties       int        `json:"ties"`
	SignP      Number     `json:"sign_p"`
	FlakesA    Flakes     `json:"flakes_a"`
	FlakesB    Flakes     `json:"flakes_b"`
	Tasks      []TaskPair `json:"tasks"`
	OnlyA      []string   `json:"only_a"`
	OnlyB      []string   `json:"only_b"`
}

// TaskPair is a task of both jobs, with the mean of its attempts in each.
type TaskPair struct {
	Task             string `json:"task"`
	A                Number `json:"a"`
	B                Number `json:"b"`
	TrialsA          int    `json:"n_trials_a"`
	TrialsB          int    `json:"n_trials_b"`
	DifferentContent bool   `json:"different_content"`
}

// Flakes counts the tasks with several attempts, and those of them whose attempts
// differ; the rate is null without any.
type Flakes struct {
	Flaky    int    `json:"n_flaky"`
	Repeated int    `json:"n_repeated"`
	Rate     Number `json:"rate"`
}

// NewComparison gives a comparison of the jobs in two directories the form in which
// it is reported.
func NewComparison(dirA, dirB string, c *score.Comparison) Comparison {
	out := Comparison{
		A: dirA, B: dirB, MeanA: Number(c.MeanA), MeanB: Number(c.MeanB),
		Difference: Number(c.Difference), Low: Number(c.Low), High: Number(c.High), Confidence: c.Confidence,
		Wins: c.Wins, Losses: c.Losses, Ties: c.Ties, SignP: Number(c.SignP),
		FlakesA: newFlakes(c.AgreementA), FlakesB: newFlakes(c.AgreementB),
		Tasks: make([]TaskPair, len(c.Tasks)), OnlyA: orEmpty(c.OnlyA), OnlyB: orEmpty(c.OnlyB),
	}
	for i, p := range c.Tasks {
		out.Tasks[i] = TaskPair{p.Task, Number(p.A), Number(p.B), p.TrialsA, p.TrialsB, p.DifferentContent}
	}
	return out
}

func newFlakes(a score.Agreement) Flakes {
	return Flakes{a.Flaky(), a.Repeated, Number(float64(a.Flaky()) / float64(a.Repeated))}
}
