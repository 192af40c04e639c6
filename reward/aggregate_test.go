package reward_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// TestAggregateIsTheRule compares with the rule as it is written down: a full row
// of values per name.
func TestAggregateIsTheRule(t *testing.T) {
	t.Parallel()
	numbers := rapid.SampledFrom([]value.Number{
		value.NewInt(0), value.NewInt(1), value.NewInt(-3), value.NewInt(math.MaxInt64), value.Float(0.1), value.Float(-0.1),
		value.Float(1e16), value.Float(math.Copysign(0, -1)), value.Float(math.NaN()), value.Float(math.Inf(1)), value.NewInt(1).Add(value.NewInt(math.MaxInt64)),
	})
	trial := rapid.Custom(func(t *rapid.T) *reward.Rewards {
		if rapid.IntRange(0, 4).Draw(t, "none") == 0 {
			return nil
		}
		r := &reward.Rewards{}
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"b", "a", "", "é"}), 0, 3).Draw(t, "names") {
			r.Set(name, numbers.Draw(t, "value"))
		}
		return r
	})
	rapid.Check(t, func(t *rapid.T) {
		trials := rapid.SliceOfN(trial, 1, 12).Draw(t, "trials")
		for metric, rule := range map[reward.Metric]func([]value.Number) (value.Number, error){
			reward.Sum: value.Sum, reward.Max: value.Max, reward.Min: value.Min,
			reward.Mean: func(row []value.Number) (value.Number, error) {
				total, err := value.Sum(row)
				if err != nil {
					return nil, err
				}
				return value.Div(total, value.NewInt(int64(len(row))))
			},
		} {
			want := &value.Object{}
			for name, row := range rows(trials, string(metric)) {
				x, err := rule(row)
				if err != nil {
					t.Fatal(err)
				}
				want.Set(name, x)
			}
			got, err := reward.Aggregate(metric, trials)
			if err != nil || value.Repr(got) != string(value.AppendRepr(nil, sorted(want))) {
				t.Fatalf("%s: got %s, error %v; want %s", metric, value.Repr(got), err, value.Repr(sorted(want)))
			}
		}
	})
}

func rows(trials []*reward.Rewards, metric string) map[string][]value.Number {
	names := map[string]bool{}
	for _, r := range trials {
		for name := range r.All() {
			names[name] = true
		}
	}
	if len(names) == 0 {
		names["unused"] = true
	}
	out := map[string][]value.Number{}
	for name := range names {
		as := name
		if len(names) == 1 {
			as = metric
		}
		for _, r := range trials {
			x, ok := r.Get(name)
			if !ok {
				x = value.NewInt(0)
			}
			out[as] = append(out[as], x)
		}
	}
	return out
}

func sorted(o *value.Object) *value.Object {
	out := &value.Object{}
	for _, name := range slices.Sorted(o.Keys()) {
		v, _ := o.Get(name)
		out.Set(name, v)
	}
	return out
}

func TestAggregateErrors(t *testing.T) {
	t.Parallel()
	for metric, want := range map[reward.Metric]string{
		reward.Mean: "division by zero", reward.Max: "max() iterable argument is empty", reward.Min: "min() iterable argument is empty",
		"median": `aggregating rewards: metric "median" is not one of mean, sum, max and min`,
	} {
		if got, err := reward.Aggregate(metric, nil); err == nil || err.Error() != want {
			t.Errorf("%s of nothing: got %v, error %v; want %s", metric, got, err, want)
		}
	}
	if got, err := reward.Aggregate(reward.Sum, nil); err != nil || value.Repr(got) != "{'sum': 0}" {
		t.Errorf("sum of nothing: got %s, error %v", value.Repr(got), err)
	}
}

// TestPassAtKSharesProducts compares with a product of its own for every k.
func TestPassAtKSharesProducts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		a := reward.Attempts{N: n, C: rapid.IntRange(0, n).Draw(t, "c")}
		values := reward.PassAtKOf([]reward.Attempts{a})
		if len(values) != len(reward.KValues(n)) {
			t.Fatalf("got %d values", len(values))
		}
		for _, v := range values {
			if want := a.PassAtK(v.K); v.Value != want {
				t.Fatalf("k = %d: got %v, want %v", v.K, v.Value, want)
			}
		}
	})
}

func TestStatsRemove(t *testing.T) {
	t.Parallel()
	one := func(x value.Number) *reward.Rewards {
		r := &reward.Rewards{}
		r.Set("reward", x)
		return r
	}
	var s reward.Stats
	for _, c := range []struct {
		trial string
		x     value.Number
	}{
		{"a", value.NewInt(1)}, {"b", value.Float(1)}, {"c", value.Float(math.NaN())}, {"d", value.Float(math.NaN())},
		{"e", value.Float(0.5)}, {"f", value.Float(math.Copysign(0, -1))}, {"g", value.NewInt(0)}, {"a", value.NewInt(1)},
	} {
		s.Add(one(c.x), c.trial)
	}
	s.Add(nil, "none")
	s.Remove(one(value.NewInt(1)), "a")
	s.Remove(one(value.Float(math.NaN())), "c")
	s.Remove(one(value.Float(0.5)), "e")
	s.Remove(one(value.Float(7)), "absent")
	const want = `{"reward":{"1":["a","b"],"nan":[],"nan":["d"],"0.5":[],"-0.0":["f","g"]}}`
	if got := string(value.AppendPydantic(nil, s.Object(), 0)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.Names(); len(got) != 1 || len(s.Entries(got[0])) != 5 || s.Entries("absent") != nil {
		t.Errorf("got names %v", got)
	}
}

func TestStopGivesItsReason(t *testing.T) {
	t.Parallel()
	m := reward.MinReward{{Name: reward.Name, Value: 0.5}}
	if stop, reason := reward.Stop(&reward.Result{}, false, m, false); !stop || reason != "reward=-inf below min_reward 0.5" {
		t.Errorf("got %v, %q", stop, reason)
	}
	if stop, reason := reward.Stop(nil, true, m, false); !stop || reason != "" {
		t.Errorf("exception: got %v, %q", stop, reason)
	}
}

func TestAggregateScript(t *testing.T) {
	t.Parallel()
	r := &reward.Rewards{}
	r.Set("é", value.Float(1e-5))
	r.Set("n", value.Float(math.NaN()))
	trials := []*reward.Rewards{r, nil, {}}
	files := map[string]string{}
	run := func(_ context.Context, script string, rewards []byte) ([]byte, error) {
		files[script] = string(rewards)
		switch script {
		case "fails.py":
			return nil, reward.NewScriptFailed("Traceback\n")
		case "list.py":
			return []byte("[1]"), nil
		case "empty.py":
			return nil, nil
		}
		return []byte(`{"b": 1, "a": 0.5}`), nil
	}
	got, err := reward.AggregateScript(t.Context(), run, "ok.py", trials)
	if err != nil || value.Repr(got) != "{'b': 1, 'a': 0.5}" {
		t.Errorf("got %s, error %v", value.Repr(got), err)
	}
	if want := `{"\u00e9": 1e-05, "n": NaN}` + "\nnull\n{}\n"; files["ok.py"] != want {
		t.Errorf("got input %q, want %q", files["ok.py"], want)
	}
	_, err = reward.AggregateScript(t.Context(), run, "fails.py", trials)
	if !errors.Is(err, reward.ScriptFailed) || err.Error() != "Failed to compute custom metric: Traceback\n" {
		t.Errorf("got error %v", err)
	}
	for _, script := range []string{"list.py", "empty.py"} {
		if _, err = reward.AggregateScript(t.Context(), run, script, trials); err == nil || !strings.Contains(err.Error(), script) {
			t.Errorf("%s: got error %v", script, err)
		}
	}
	if got := slices.Collect(maps.Keys(files)); len(got) != 4 {
		t.Errorf("ran %v", got)
	}
	if got := strings.Join(reward.ScriptCommand("s.py", "in", "out"), " "); got != "uv run s.py -i in -o out" {
		t.Errorf("got command %q", got)
	}
	if err := reward.NewScriptNotFound("s.py"); err.ErrorType() != "FileNotFoundError" || err.Error() != "Script file not found: s.py" {
		t.Errorf("got error %v", err)
	}
}
