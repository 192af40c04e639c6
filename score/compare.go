package score

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/value"
)

// CompareOptions say how two jobs are compared.
type CompareOptions struct {
	// Reward is the name of the reward to compare. Empty, it is the only one
	// of a trial, or "reward" among several.
	Reward string
	// Group restricts the comparison to the trials of one group of each job,
	// by the key in evals; empty takes all.
	GroupA, GroupB string
	// AllowDifferentTasks compares tasks even where their contents differ.
	AllowDifferentTasks bool
	// Confidence of the interval; 0 is 0.95.
	Confidence float64
}

// Comparison is job B against job A, paired by task: the attempts at a task
// are averaged, a trial without rewards counting as 0 as it does in means.
type Comparison struct {
	Reward string

	// Tasks that both jobs tried, and those that only one did.
	Tasks        []TaskPair
	OnlyA, OnlyB []string

	// Wins counts the tasks where B is better, Losses where A is.
	Wins, Losses, Ties int

	MeanA, MeanB float64 // over the tasks of both
	// Difference is MeanB - MeanA, and [Low, High] the interval in which it
	// lies with the given confidence, by Student's t over the differences per
	// task, cut at -1 and 1 where all scores are between 0 and 1. The ends are nan with
	// fewer than two tasks.
	Difference, Low, High float64
	Confidence            float64
	// SignP is the probability of at least so uneven wins and losses if both
	// jobs were equally good: the exact two-sided sign test.
	SignP float64

	// AgreementA and AgreementB compare the attempts of a job by the reward
	// that is compared; one without it counts as 0.
	AgreementA, AgreementB Agreement

	fractions bool // all scores are between 0 and 1
}

// TaskPair is one task in both jobs.
type TaskPair struct {
	Task             string // dataset and task name
	A, B             float64
	TrialsA          int
	TrialsB          int
	DifferentContent bool // the jobs ran different contents under this name
}

// Compare compares job B with job A by their trials. Its errors are a
// [SeveralRewardsError], a [NothingInCommonError], a [NoSuchRewardError] and, without AllowDifferentTasks for
// tasks whose checksums differ, a [DifferentTasksError].
func Compare(a, b []jobdir.Record, opts CompareOptions) (*Comparison, error) {
	tasksA, err := scoresOf(a, opts.GroupA, opts.Reward)
	if err != nil {
		return nil, err
	}
	tasksB, err := scoresOf(b, opts.GroupB, opts.Reward)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Reward: opts.Reward, Confidence: opts.Confidence, AgreementA: agreementOfScores(tasksA), AgreementB: agreementOfScores(tasksB)}
	if c.Confidence == 0 {
		c.Confidence = 0.95
	}
	c.pair(tasksA, tasksB)
	if len(c.Tasks) == 0 {
		return nil, &NothingInCommonError{A: c.OnlyA, B: c.OnlyB}
	}
	if err := checkReward(a, opts.GroupA, opts.Reward); err != nil {
		return nil, err
	}
	if err := checkReward(b, opts.GroupB, opts.Reward); err != nil {
		return nil, err
	}
	if different := c.different(); len(different) > 0 && !opts.AllowDifferentTasks {
		return nil, &DifferentTasksError{Tasks: different}
	}
	c.summarise()
	return c, nil
}

// scores is what one job's attempts at a task gave.
type scores struct {
	values    []float64
	checksums []string // sorted, without duplicates
}

// fractions reports whether all scores are between 0 and 1.
func (s *scores) fractions() bool {
	return !slices.ContainsFunc(s.values, func(x float64) bool { return !(x >= 0 && x <= 1) })
}

func (s *scores) mean() float64 {
	var sum value.Summation
	for _, x := range s.values {
		_ = sum.Add(value.Float(x)) // floats never fail
	}
	total, _ := value.ToFloat(sum.Total())
	return total / float64(len(s.values))
}

func scoresOf(records []jobdir.Record, group, rewardName string) (map[string]*scores, error) {
	tasks := map[string]*scores{}
	for i := range records {
		r := &records[i]
		if group != "" && r.EvalsKey() != group {
			continue
		}
		x, err := score(r, rewardName)
		if err != nil {
			return nil, err
		}
		key := r.Dataset() + "/" + r.TaskName
		s := tasks[key]
		if s == nil {
			s = &scores{}
			tasks[key] = s
		}
		s.values = append(s.values, x)
		if at, found := slices.BinarySearch(s.checksums, r.TaskChecksum); !found {
			s.checksums = slices.Insert(s.checksums, at, r.TaskChecksum)
		}
	}
	return tasks, nil
}

// score is the number by which a trial is compared.
func score(r *jobdir.Record, name string) (float64, error) {
	if r.Rewards.Len() == 0 {
		return 0, nil
	}
	var x value.Number
	switch {
	case name != "":
		x, _ = r.Rewards.Get(name)
	case r.Rewards.Len() == 1:
		for _, only := range r.Rewards.All() {
			x = only
		}
	default:
		var ok bool
		if x, ok = r.Rewards.Get("reward"); !ok {
			return 0, &SeveralRewardsError{Trial: r.TrialName, Names: rewardNames(r.Rewards)}
		}
	}
	if x == nil {
		return 0, nil
	}
	f, err := value.ToFloat(x)
	if err != nil {
		return 0, fmt.Errorf("comparing trial %q: %w", r.TrialName, err)
	}
	return f, nil
}

// agreementOfScores compares attempts by the number that stands for them.
func agreementOfScores(tasks map[string]*scores) Agreement {
	var all [][]string
	for _, s := range tasks {
		keys := make([]string, len(s.values))
		for i, x := range s.values {
			keys[i] = string(appendNumberKey(nil, value.Float(x)))
		}
		all = append(all, keys)
	}
	return agreementOf(all)
}

func (c *Comparison) pair(a, b map[string]*scores) {
	c.fractions = true
	for task, sa := range a {
		sb := b[task]
		if sb == nil {
			c.OnlyA = append(c.OnlyA, task)
			continue
		}
		c.fractions = c.fractions && sa.fractions() && sb.fractions()
		c.Tasks = append(c.Tasks, TaskPair{
			Task: task, A: sa.mean(), B: sb.mean(),
			TrialsA: len(sa.values), TrialsB: len(sb.values),
			DifferentContent: !slices.Equal(sa.checksums, sb.checksums),
		})
	}
	for task := range b {
		if a[task] == nil {
			c.OnlyB = append(c.OnlyB, task)
		}
	}
	slices.SortFunc(c.Tasks, func(x, y TaskPair) int { return strings.Compare(x.Task, y.Task) })
	slices.Sort(c.OnlyA)
	slices.Sort(c.OnlyB)
}

func (c *Comparison) different() []string {
	var names []string
	for _, p := range c.Tasks {
		if p.DifferentContent {
			names = append(names, p.Task)
		}
	}
	return names
}

func (c *Comparison) summarise() {
	n := float64(len(c.Tasks))
	var a, b, d value.Summation
	for _, p := range c.Tasks {
		_, _, _ = a.Add(value.Float(p.A)), b.Add(value.Float(p.B)), d.Add(value.Float(p.B-p.A))
		switch {
		case p.B > p.A:
			c.Wins++
		case p.B < p.A:
			c.Losses++
		default:
			c.Ties++
		}
	}
	c.MeanA, c.MeanB, c.Difference = total(&a)/n, total(&b)/n, total(&d)/n
	c.SignP = signTest(c.Wins, c.Losses)
	c.Low, c.High = math.NaN(), math.NaN()
	if len(c.Tasks) < 2 {
		return
	}
	squares := 0.0
	for _, p := range c.Tasks {
		dev := p.B - p.A - c.Difference
		squares += float64(dev * dev)
	}
	half := studentQuantile((1+c.Confidence)/2, n-1) * math.Sqrt(squares/(n-1)/n)
	c.Low, c.High = c.Difference-half, c.Difference+half
	if c.fractions {
		c.Low, c.High = max(c.Low, -1), min(c.High, 1)
	}
}

func total(s *value.Summation) float64 {
	x, _ := value.ToFloat(s.Total())
	return x
}
