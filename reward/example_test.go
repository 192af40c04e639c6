package reward_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

func ExampleRead() {
	dir, err := os.MkdirTemp("", "verifier")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	_, err = reward.Read(dir)
	fmt.Println(errors.Is(err, reward.NotFound))

	if err = os.WriteFile(filepath.Join(dir, "reward.txt"), []byte(" 1_0.5\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	r, err := reward.Read(dir)
	fmt.Println(value.Repr(r.Object()), err)
	// Output:
	// true
	// {'reward': 10.5} <nil>
}

func ExampleParseJSON() {
	r, err := reward.ParseJSON([]byte(`{"tests": 3, "style": "0.5", "lint": true}`), "reward.json")
	fmt.Println(string(value.AppendPydantic(nil, r.Object(), 0)), err)
	// Output:
	// {"tests":3,"style":0.5,"lint":1.0} <nil>
}

func ExampleAggregate() {
	var trials []*reward.Rewards
	for _, text := range []string{"0.1", "0.2", "0.3"} {
		r, err := reward.ParseText([]byte(text), "reward.txt")
		if err != nil {
			fmt.Println(err)
			return
		}
		trials = append(trials, r)
	}
	trials = append(trials, nil) // a trial without rewards counts as 0
	for _, metric := range []reward.Metric{reward.Mean, reward.Sum, reward.Max, reward.Min} {
		out, err := reward.Aggregate(metric, trials)
		fmt.Println(value.Repr(out), err)
	}
	// Output:
	// {'mean': 0.15} <nil>
	// {'sum': 0.6} <nil>
	// {'max': 0.3} <nil>
	// {'min': 0} <nil>
}

func ExamplePassAtKOf() {
	for _, p := range reward.PassAtKOf([]reward.Attempts{{N: 5, C: 1}}) {
		fmt.Println(p.K, p.Value)
	}
	// Output:
	// 2 0.3999999999999999
	// 4 0.8
	// 5 1
}

func ExampleCombine() {
	step := func(text string) *reward.Result {
		r, _ := reward.ParseJSON([]byte(text), "reward.json")
		return &reward.Result{Rewards: r}
	}
	steps := []*reward.Result{step(`{"b": 1, "a": 1}`), nil, step(`{"b": 0}`)}
	out, err := reward.Combine(reward.StrategyMean, steps)
	fmt.Println(value.Repr(out.Rewards.Object()), err)
	// Output:
	// {'a': 0.5, 'b': 0.5} <nil>
}
