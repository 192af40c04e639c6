package job_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/value"
)

// carried is a prepared job after a way through JSON.
func carried(t *testing.T, p *job.Prepared) *job.Prepared {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var out job.Prepared
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, again) {
		t.Errorf("JSON changes on a second way:\n%s\n%s", data, again)
	}
	return &out
}

// TestPreparedSurvivesJSON runs a job that came as JSON: its plan, its lock and
// its numbers are those of the one that was prepared.
func TestPreparedSurvivesJSON(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writeDataset(t, "a", "b"), fake.Config{Rules: []fake.Rule{grant("1")}})
	h.cfg.NAttempts = 2
	h.cfg.Metrics = []jobdir.MetricConfig{{Type: jobdir.MetricMax}}
	h.cfg.Agents[0].OverrideTimeoutSec = new(12.5)
	p := h.prepare(t)
	out, err := h.runner.Run(t.Context(), carried(t, p))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range out.Records {
		names = append(names, r.TrialName)
	}
	var planned []string
	for _, c := range p.Trials {
		planned = append(planned, c.TrialName)
	}
	if !slices.Equal(names, planned) || out.Result.ID != p.ID {
		t.Errorf("ran %q of job %v, planned %q of %v", names, out.Result.ID, planned, p.ID)
	}
	e, _ := out.Result.Stats.Evals.Get("oracle__set")
	if e == nil || len(e.Metrics) != 1 || !e.Metrics[0].Has("max") {
		t.Errorf("metrics %+v", e)
	}
	for file, want := range map[string][]byte{
		scan.ConfigFile: p.Config.AppendJSON(nil, nil), scan.LockFile: p.Lock.AppendJSON(nil, nil),
	} {
		if got, err := os.ReadFile(filepath.Join(h.dir(), file)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", file, err, got, want)
		}
	}
	checkWhole(t, h.dir(), 4)
}

// TestResumedSurvivesJSON resumes an interrupted job from JSON.
func TestResumedSurvivesJSON(t *testing.T) {
	t.Parallel()
	h, ctx := newInterrupted(t)
	if _, err := h.runner.Run(ctx, h.prepare(t)); err != nil {
		t.Fatal(err)
	}
	putFile(t, filepath.Join(h.dir(), "stray", "file"), "x")
	r, err := job.PrepareResume(h.dir(), resumeOptions())
	if err != nil {
		t.Fatal(err)
	}
	p := carried(t, r.Prepared)
	if len(p.Earlier) != 1 || !slices.Equal(p.Orphans, []string{"stray"}) || !p.Begun {
		t.Errorf("earlier %v, orphans %q, begun %v", p.Earlier, p.Orphans, p.Begun)
	}
	if _, err := h.runner.Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, h.dir(), 3)
}

// TestPreparedHidesCredentials: what looks like a credential is not in the JSON
// and comes from the environment of the runner.
func TestPreparedHidesCredentials(t *testing.T) {
	t.Parallel()
	const secret = "sk-0123456789"
	h := newHarness(t, writeDataset(t, "a"), fake.Config{})
	h.cfg.Agents[0].Env = jobdir.EnvOf("API_KEY", secret)
	data, err := json.Marshal(h.prepare(t))
	if err != nil || strings.Contains(string(data), secret) {
		t.Errorf("%v\n%s", err, data)
	}
}

// TestRecordsSurviveJSON: numbers keep their kind, their value and their order.
func TestRecordsSurviveJSON(t *testing.T) {
	t.Parallel()
	rewards := &reward.Rewards{}
	big, err := value.ParseInt("123456789012345678901234567890")
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]value.Number{"b": big, "a": value.Float(1), "nan": value.Float(math.NaN()), "low": value.Float(math.Inf(-1))} {
		rewards.Set(name, x)
	}
	p := &job.Prepared{
		Config: jobdir.NewConfig(time.Date(2026, 6, 9, 8, 0, 0, 0, time.UTC)), Existing: []jobdir.Record{
			{TrialName: "t", Rewards: rewards, Usage: jobdir.Usage{NInputTokens: &big}}, {TrialName: "none"},
		},
	}
	got := carried(t, p).Existing
	if want, have := value.Repr(rewards.Object()), value.Repr(got[0].Rewards.Object()); want != have {
		t.Errorf("rewards %s, want %s", have, want)
	}
	if got[0].Usage.NInputTokens.Cmp(big) != 0 || got[1].Rewards != nil {
		t.Errorf("got %+v", got)
	}
}

func TestPreparedRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, `[]`, `{"config":"{}","remaining":[0]}`, `{"config":"{}","trials":["{"]}`, `{"config":"{}","lock":"{}"}`,
		`{"config":"{}","existing":[{"Rewards":{"a":"x"}}]}`,
	} {
		if err := json.Unmarshal([]byte(text), &job.Prepared{}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}
