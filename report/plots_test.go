package report

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/internal/jobtest"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/value"
)

// rewarded is a job of trials with these values of one reward.
func rewarded(name string, values ...value.Number) *Job {
	j := &Job{}
	for _, v := range values {
		r := &reward.Rewards{}
		r.Set(name, v)
		j.records = append(j.records, scan.FileRecord{Record: jobdir.Record{Rewards: r, AgentName: "a"}})
	}
	return j
}

// TestHistograms: every value is counted where it lies, and nothing else is.
func TestHistograms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 0, 40).Draw(t, "values")
		numbers := []value.Number{value.Float(math.NaN()), value.Float(math.Inf(-1))}
		for _, x := range all {
			numbers = append(numbers, value.Float(x))
		}
		found := rewarded("speed", numbers...).Histograms()
		slices.Sort(all)
		if different := len(slices.Compact(slices.Clone(all))); different < 3 {
			if len(found) != 0 {
				t.Fatalf("%d different values are drawn: %+v", different, found)
			}
			return
		}
		if len(found) != 1 || found[0].Reward != "speed" || found[0].Trials != len(all) {
			t.Fatalf("got %+v", found)
		}
		h := found[0]
		if float64(h.Low) != all[0] || float64(h.High) != all[len(all)-1] {
			t.Fatalf("from %v to %v, and the values are %v", h.Low, h.High, all)
		}
		// A value at a bound may lie on either side by what doubles round.
		off := (all[len(all)-1] - all[0]) * 1e-12
		for i, n := range h.Counts {
			from, to := h.Bounds(i)
			least, most := 0, 0
			for _, x := range all {
				if x > from+off && x < to-off {
					least++
				}
				if x >= from-off && x <= to+off {
					most++
				}
			}
			if n < least || n > most {
				t.Fatalf("%d values from %v to %v; of %v", n, from, to, all)
			}
		}
	})
}

// TestHistogramsOf: each group and reward has its own, and numbers that no double is
// near have none.
func TestHistogramsOf(t *testing.T) {
	t.Parallel()
	one, err := value.ParseInt("1" + string(slices.Repeat([]byte("0"), 400)))
	if err != nil {
		t.Fatal(err)
	}
	j := rewarded("b", value.Float(0), value.Float(0.5), value.Float(1), one)
	for i := range j.records {
		j.records[i].Rewards.Set("a", value.NewInt(int64(i*i)))
	}
	far := rewarded("far", value.Float(-math.MaxFloat64), value.Float(0), value.Float(math.MaxFloat64))
	other := rewarded("a", value.Float(1), value.Float(2), value.Float(3))
	for i := range other.records {
		other.records[i].AgentName = "z"
	}
	j.records = append(append(j.records, far.records...), other.records...)
	var got []string
	for _, h := range j.Histograms() {
		got = append(got, h.Group+" "+h.Reward)
	}
	if want := []string{j.records[0].EvalsKey() + " a", j.records[0].EvalsKey() + " b", other.records[0].EvalsKey() + " a"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTimeline: the time of all phases is in the slots, none of it twice.
func TestTimeline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		j := &Job{}
		took := map[PhaseKind]float64{}
		for range rapid.IntRange(0, 12).Draw(t, "trials") {
			var r scan.FileRecord
			at := rapid.Int64Range(-1e15, 2e15).Draw(t, "began")
			for _, name := range []scan.PhaseName{scan.EnvironmentSetup, scan.AgentSetup, scan.AgentExecution, scan.Verifier} {
				end := at + rapid.Int64Range(-1e3, 1e12).Draw(t, "took")
				r.Phases = append(r.Phases, scan.Phase{Name: name, Started: at, Finished: end})
				took[kindOf[name]] += max(float64(end-at), 0) / 1e6
				at = end
			}
			j.records = append(j.records, r)
		}
		line := j.Timeline()
		all := 0.0
		for _, s := range took {
			all += s
		}
		if line == nil {
			if all > 0 {
				t.Fatalf("%v s are not shown", all)
			}
			return
		}
		most := line.Most()
		for _, p := range line.Phases {
			sum := 0.0
			for _, n := range p.Trials {
				sum += n * line.Seconds
			}
			if math.Abs(sum-took[p.Phase]) > 1e-4*line.Seconds*slots+1e-6 {
				t.Fatalf("%s has %v s, shown are %v", p.Phase, took[p.Phase], sum)
			}
			if longest := slices.Max(p.Trials); longest > most {
				t.Fatalf("%v at most, and %v in %s alone", most, longest, p.Phase)
			}
			delete(took, p.Phase)
		}
		for kind, s := range took {
			if s > 0 {
				t.Fatalf("%s is left out", kind)
			}
		}
	})
}

// TestTimelineOfHarbor: a job of Harbor's has one.
func TestTimelineOfHarbor(t *testing.T) {
	t.Parallel()
	j, err := ReadJob(context.Background(), jobtest.Fixture("mixed-oracle"), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	line := j.Timeline()
	if line == nil || len(line.Phases) != 4 || line.Started.Before(j.Started.Add(-time.Minute)) || line.Seconds <= 0 {
		t.Errorf("got %+v of a job that began at %v", line, j.Started)
	}
	if most := line.Most(); most < 1 {
		t.Errorf("%v trials at most", most)
	}
}
