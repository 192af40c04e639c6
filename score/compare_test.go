package score_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/score"
	"github.com/proctor-run/proctor/value"
)

// attempts returns one trial per number.
func attempts(task, checksum string, values ...float64) []jobdir.Record {
	var out []jobdir.Record
	for i, x := range values {
		r := jobdir.Record{
			TrialName: fmt.Sprintf("%s__%d", task, i), TaskName: task, TaskChecksum: checksum, AgentName: "a", Rewards: &reward.Rewards{},
		}
		r.Rewards.Set("reward", value.Float(x))
		out = append(out, r)
	}
	return out
}

func records(lists ...[]jobdir.Record) []jobdir.Record {
	var out []jobdir.Record
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9 }

func TestCompare(t *testing.T) {
	t.Parallel()
	a := records(attempts("t1", "c", 0, 1), attempts("t2", "c", 0), attempts("t3", "c", 1), attempts("t4", "c", 0.5), attempts("only a", "c", 1))
	b := records(attempts("t1", "c", 1, 1), attempts("t2", "c", 1), attempts("t3", "c", 0), attempts("t4", "c", 0.5), attempts("only b", "c", 1))
	b = append(b, jobdir.Record{TrialName: "t2__x", TaskName: "t2", TaskChecksum: "c", AgentName: "a", ExceptionType: "ValueError"})
	c, err := score.Compare(a, b, score.CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Wins != 2 || c.Losses != 1 || c.Ties != 1 || len(c.Tasks) != 4 {
		t.Errorf("got %d wins, %d losses, %d ties of %d tasks", c.Wins, c.Losses, c.Ties, len(c.Tasks))
	}
	if strings.Join(c.OnlyA, ",") != "adhoc/only a" || strings.Join(c.OnlyB, ",") != "adhoc/only b" {
		t.Errorf("got only in A %q, only in B %q", c.OnlyA, c.OnlyB)
	}
	// Differences 0.5, 0.5, -1 and 0: mean 0, deviation sqrt(0.5), t(3, 97.5 %) 3.182446.
	// Half the width is 1.125, and rewards between 0 and 1 differ by 1 at most.
	half := 1.0
	if !near(c.MeanA, 0.5) || !near(c.MeanB, 0.5) || !near(c.Difference, 0) || !near(c.Low, -half) || !near(c.High, half) {
		t.Errorf("got means %v and %v, difference %v in [%v, %v], want ends at %v", c.MeanA, c.MeanB, c.Difference, c.Low, c.High, half)
	}
	if !near(c.SignP, 1) {
		t.Errorf("got sign test %v", c.SignP)
	}
	if a := c.AgreementA; a.Flaky() != 1 || a.Repeated != 1 || a.FlakeRate != 1 {
		t.Errorf("job A agrees with itself as %+v", a)
	}
	if b := c.AgreementB; b.Flaky() != 1 || b.Repeated != 2 || b.Share() != 0.5 {
		t.Errorf("job B agrees with itself as %+v", b)
	}
}

func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	a, b := attempts("t", "c1", 1, 1), attempts("t", "c2", 1)
	_, err := score.Compare(a, b, score.CompareOptions{})
	var different *score.DifferentTasksError
	if !errors.As(err, &different) || !strings.Contains(err.Error(), "adhoc/t") {
		t.Errorf("got %v, want the tasks that differ", err)
	}
	c, err := score.Compare(a, b, score.CompareOptions{AllowDifferentTasks: true})
	if err != nil || !c.Tasks[0].DifferentContent {
		t.Errorf("allowed: got %+v, %v", c, err)
	}
	if !math.IsNaN(c.Low) || !math.IsNaN(c.High) {
		t.Errorf("one task gives the interval [%v, %v]", c.Low, c.High)
	}
	_, err = score.Compare(a, attempts("u", "c1", 1), score.CompareOptions{})
	if !errors.Is(err, score.ErrNothingInCommon) || !strings.HasSuffix(err.Error(), ": A has adhoc/t; B has adhoc/u") {
		t.Errorf("nothing in common: got %v", err)
	}
	_, err = score.Compare(a, nil, score.CompareOptions{})
	if !errors.Is(err, score.ErrNothingInCommon) || !strings.HasSuffix(err.Error(), ": A has adhoc/t; B has none") {
		t.Errorf("nothing at all: got %v", err)
	}
}

func TestCompareRewards(t *testing.T) {
	t.Parallel()
	both := jobdir.Record{TrialName: "x", TaskName: "t", AgentName: "a", Rewards: &reward.Rewards{}}
	both.Rewards.Set("speed", value.Float(0.25))
	both.Rewards.Set("style", value.NewInt(1))
	if _, err := score.Compare([]jobdir.Record{both}, []jobdir.Record{both}, score.CompareOptions{}); err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.HasSuffix(err.Error(), ": speed, style") {
		t.Errorf("several rewards: got %v, want an error naming the trial and its rewards", err)
	}
	c, err := score.Compare([]jobdir.Record{both}, []jobdir.Record{both}, score.CompareOptions{Reward: "speed", GroupA: "a__adhoc", GroupB: "a__adhoc"})
	if err != nil || c.MeanA != 0.25 {
		t.Errorf("by name: got %+v, %v", c, err)
	}
	none := jobdir.Record{TrialName: "y", TaskName: "t", AgentName: "a"}
	for _, b := range []jobdir.Record{both, none} {
		_, err := score.Compare([]jobdir.Record{none, both}, []jobdir.Record{b}, score.CompareOptions{Reward: "spede"})
		if unknown := (*score.NoSuchRewardError)(nil); !errors.As(err, &unknown) || !strings.HasSuffix(err.Error(), `no trial of one of them has a reward "spede"; its rewards are: speed, style`) {
			t.Errorf("a reward that nobody has: got %v", err)
		}
	}
	if c, err := score.Compare([]jobdir.Record{both}, []jobdir.Record{none}, score.CompareOptions{Reward: "speed"}); err != nil || c.MeanB != 0 {
		t.Errorf("a job without rewards: got %+v, %v", c, err)
	}
	if _, err := score.Compare([]jobdir.Record{both}, []jobdir.Record{both}, score.CompareOptions{Reward: "speed", GroupA: "b__adhoc"}); !errors.Is(err, score.ErrNothingInCommon) {
		t.Errorf("another group: got %v", err)
	}
}

func TestNamesakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b  []string
		wantA string
		wantB string
	}{
		{[]string{"adhoc/x", "adhoc/y"}, []string{"runset/y", "runset/z"}, "adhoc/y", "runset/y"},
		{[]string{"adhoc/x"}, []string{"one/org/x", "two/x"}, "adhoc/x", "one/org/x"},
		{[]string{"adhoc/x"}, []string{"adhoc/y"}, "", ""},
		{nil, nil, "", ""},
	} {
		if a, b := (&score.NothingInCommonError{A: tt.a, B: tt.b}).Namesakes(); a != tt.wantA || b != tt.wantB {
			t.Errorf("of %q and %q: %q and %q, want %q and %q", tt.a, tt.b, a, b, tt.wantA, tt.wantB)
		}
	}
}

// TestCompareInterval checks half widths against tables of Student's t.
func TestCompareInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tasks      int
		confidence float64
		quantile   float64
	}{
		{2, 0.95, 12.706204736432095}, {3, 0.95, 4.302652729911275}, {11, 0.95, 2.2281388519649385},
		{31, 0.99, 2.7499956535672238}, {101, 0.9, 1.6602343260657506}, {1001, 0.95, 1.962339080792},
	} {
		var a, b []jobdir.Record
		squares, mean := 0.0, 0.0
		diff := func(i int) float64 { return float64(i%2) - 0.25 }
		for i := range tt.tasks {
			task := fmt.Sprint(i)
			a = append(a, attempts(task, "c", 0)...)
			b = append(b, attempts(task, "c", diff(i))...)
			mean += diff(i) / float64(tt.tasks)
		}
		for i := range tt.tasks {
			squares += (diff(i) - mean) * (diff(i) - mean)
		}
		n := float64(tt.tasks)
		want := tt.quantile * math.Sqrt(squares/(n-1)/n)
		c, err := score.Compare(a, b, score.CompareOptions{Confidence: tt.confidence})
		if err != nil {
			t.Fatal(err)
		}
		if got := (c.High - c.Low) / 2; math.Abs(got-want) > 1e-9*want {
			t.Errorf("%d tasks at %v: got half width %v, want %v", tt.tasks, tt.confidence, got, want)
		}
	}
}

func TestCompareSignTest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wins, losses int
		want         float64
	}{
		{0, 0, 1}, {1, 0, 1}, {5, 0, 0.0625}, {0, 5, 0.0625}, {8, 2, 0.109375}, {6, 4, 0.75390625},
	} {
		var a, b []jobdir.Record
		for i := range tt.wins + tt.losses {
			task := fmt.Sprint(i)
			won := 1.0
			if i >= tt.wins {
				won = 0
			}
			a = append(a, attempts(task, "c", 1-won)...)
			b = append(b, attempts(task, "c", won)...)
		}
		a, b = append(a, attempts("tie", "c", 1)...), append(b, attempts("tie", "c", 1)...)
		c, err := score.Compare(a, b, score.CompareOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(c.SignP-tt.want) > 1e-9 {
			t.Errorf("%d wins, %d losses: got %v, want %v", tt.wins, tt.losses, c.SignP, tt.want)
		}
	}
}
