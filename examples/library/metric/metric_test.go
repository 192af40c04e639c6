package metric

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

func parse(texts ...string) []*reward.Rewards {
	var trials []*reward.Rewards
	for _, text := range texts {
		r, err := reward.ParseJSON([]byte(text), reward.JSONFile)
		if err != nil {
			panic(err)
		}
		trials = append(trials, r)
	}
	return trials
}

func ExampleMedian() {
	trials := parse(`{"speed": 0.5, "tests": 3}`, `{"speed": "0.25"}`, `null`)
	out, err := Median(trials)
	fmt.Println(value.Repr(out), err)
	// Output: {'median_speed': 0.25, 'median_tests': 0.0} <nil>
}

func TestRunner(t *testing.T) {
	t.Parallel()
	if out, err := Runner("median")(parse(`{"a": 1}`)); err != nil || value.Repr(out) != "{'median_a': 1.0}" {
		t.Errorf("median: %s, %v", value.Repr(out), err)
	}
	_, err := Runner("other")(nil)
	var typed exception.Typed
	if !errors.As(err, &typed) {
		t.Errorf("another script: %v, want an error with the name of an exception", err)
	}
}

func TestRescore(t *testing.T) {
	t.Parallel()
	r, err := Rescore(t.Context(), filepath.Join("..", "readjobs", "testdata", "mixed-oracle"))
	if err != nil {
		t.Fatal(err)
	}
	for group, e := range r.Stats.Evals.All() {
		if len(e.Metrics) != 2 {
			t.Fatalf("%s has the metrics %v, want two", group, e.Metrics)
		}
		if _, ok := e.Metrics[1].Get("median_reward"); !ok {
			t.Errorf("%s: the second metric is %s", group, value.Repr(e.Metrics[1]))
		}
	}
}

func TestRescoreWithScripts(t *testing.T) {
	t.Parallel()
	// This job names no script; its own metrics are computed.
	r, err := RescoreWithScripts(t.Context(), filepath.Join("..", "readjobs", "testdata", "mixed-oracle"))
	if err != nil || r.Stats.Evals.Len() == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestBestAndWorst(t *testing.T) {
	t.Parallel()
	trials := parse(`{"a": 1}`, `{"a": 3}`)
	best, err := Best(trials)
	if err != nil || value.Repr(best) != "{'max': 3}" {
		t.Errorf("best %s, %v", value.Repr(best), err)
	}
	worst, err := Worst(trials)
	if err != nil || value.Repr(worst) != "{'min': 1}" {
		t.Errorf("worst %s, %v", value.Repr(worst), err)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": "x"}`: "each value must be a number: rewards.a.float", `{`: "write a number, or JSON in reward.json", ``: "the tests opened the reward file and wrote nothing",
	} {
		_, err := reward.ParseJSON([]byte(text), reward.JSONFile)
		if text == "" {
			err = &reward.Error{Kind: reward.Empty}
		}
		if err == nil || !strings.HasPrefix(Why(err), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
