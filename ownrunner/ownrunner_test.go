package ownrunner_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

func rewardsOf(pairs ...any) *reward.Rewards {
	r := &reward.Rewards{}
	for i := 0; i < len(pairs); i += 2 {
		r.Set(pairs[i].(string), value.Float(pairs[i+1].(float64)))
	}
	return r
}

func TestSummary(t *testing.T) {
	t.Parallel()
	model := "m"
	trials := []ownrunner.Trial{
		{TaskName: "a", AgentName: "x", Rewards: rewardsOf("reward", 1.0)},
		{TaskName: "b", AgentName: "x", Errored: true, Rewards: rewardsOf("reward", 1.0)}, // counts as 0
		{TaskName: "a", AgentName: "x", ModelName: &model, Rewards: rewardsOf("reward", 1.0)},
	}
	o, err := ownrunner.Summary(trials)
	if err != nil {
		t.Fatal(err)
	}
	line, err := outcome.Emit(o.Object())
	want := `BASE_BENCHMARK_RESULT={"reason_code": null, "resolved": 2, "score": 0.75, "status": "failed", "total": 3}`
	if err != nil || line != want {
		t.Errorf("got %s, %v\nwant %s", line, err, want)
	}
	if o, err := ownrunner.Summary(nil); err != nil || o.Status != outcome.Completed || o.Score != 0 {
		t.Errorf("without trials: %+v, %v", o, err)
	}
	infinite, err := value.ParseFloat("inf")
	if err != nil {
		t.Fatal(err)
	}
	if o, err := ownrunner.Summary([]ownrunner.Trial{{Rewards: rewardsOf("reward", float64(infinite))}}); err == nil {
		t.Errorf("an infinite reward gives %+v", o)
	}
}

func TestRedactProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.StringMatching("[abc]{0,3}").Draw(t, "token")
		values := rapid.SliceOf(rapid.StringMatching("[abc]{0,3}")).Draw(t, "values")
		text := rapid.StringMatching("[abcd]{0,30}").Draw(t, "text")
		out := ownrunner.Redact(text, token, values)
		rest := strings.NewReplacer("[REDACTED_GATEWAY_TOKEN]", "\n", "[REDACTED_MINER_ENV]", "\n").Replace(out)
		for _, secret := range append(values, token) {
			if secret != "" && strings.Contains(rest, secret) {
				t.Fatalf("%q of %q shows %q", out, text, secret)
			}
		}
	})
}

// TestSocketAncestors checks that neither engine's socket can be seen through a
// directory above it.
func TestSocketAncestors(t *testing.T) {
	t.Parallel()
	for spec, exposed := range map[string]bool{
		"/var/run/dstack.sock:/x": true, "/var/run/../run:/x": true, "/:/x": true, "//:/x": true, "x:/var": true,
		"/var/run/docker.sock.bak:/x": false, "/var/runner:/x": false, "var/run:/x": false, "/x:/y:/var": false,
	} {
		if got := ownrunner.ExposedSockets([]string{"-v", spec}); (len(got) > 0) != exposed {
			t.Errorf("%s: got %q", spec, got)
		}
	}
	for spec, exposed := range map[string]bool{
		"type=bind,source=/var,target=/x": true, "type=bind, destination=/var/run": true, "type=tmpfs,dst=/tmp": false,
	} {
		if got := ownrunner.ExposedSockets([]string{"--mount=" + spec}); (len(got) > 0) != exposed {
			t.Errorf("%s: got %q", spec, got)
		}
	}
}

func ExamplePlanTrials() {
	for _, p := range ownrunner.PlanTrials([]string{"fix-git", "caffe/cifar 10"}, 2) {
		fmt.Println(p.TrialName)
	}
	// Output:
	// fix-git__attempt-0
	// caffe_cifar_10__attempt-0
	// fix-git__attempt-1
	// caffe_cifar_10__attempt-1
}

func ExampleTrial() {
	t := ownrunner.Trial{
		TaskName: "fix-git", TrialName: "fix-git__attempt-0", Status: outcome.Completed, AgentName: "agent",
		Rewards: rewardsOf("reward", 0.5),
	}
	data, err := t.ResultJSON()
	fmt.Println(string(data), err)
	// Output: {"agent_name": "agent", "errored": false, "model_name": null, "reason_code": null, "rewards": {"reward": 0.5}, "score": 0.5, "source": null, "status": "completed", "task_name": "fix-git", "trial_name": "fix-git__attempt-0"} <nil>
}

func ExampleConcurrency() {
	limit := 3
	m := ownrunner.Machine{CPUs: 8, TotalKiB: 32 << 20}
	fmt.Println(ownrunner.Concurrency([]ownrunner.Cost{{CPUs: 2, MemoryMiB: 4096}}, m, nil))
	fmt.Println(ownrunner.Concurrency([]ownrunner.Cost{{}}, m, &limit))
	// Output:
	// 4
	// 3
}
