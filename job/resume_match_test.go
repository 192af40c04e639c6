package job

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/proctor-run/proctor/jobdir"
)

func taskAt(path string) jobdir.Task { return jobdir.Task{Config: jobdir.TaskConfig{Path: &path}} }

func twoAgents() []jobdir.AgentConfig {
	return []jobdir.AgentConfig{{Name: new("x")}, {Name: new("y")}}
}

// TestMatchExisting reconciles a plan with any part of itself under other
// names: every existing trial is kept once, the rest remains.
func TestMatchExisting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := jobdir.NewConfig(time.Time{})
		c.NAttempts = rapid.IntRange(1, 3).Draw(t, "attempts")
		c.Agents = twoAgents()
		tasks := []jobdir.Task{taskAt("a"), taskAt("b")}
		random := rand.New(rand.NewPCG(1, 2)).IntN
		before, _ := Plan(c, uuid.UUID{1}, tasks, random)
		planned, _ := Plan(c, uuid.UUID{2}, tasks, random)
		existing := rapid.SliceOfNDistinct(rapid.SampledFrom(before), 0, len(before), func(c jobdir.TrialConfig) string {
			return c.TrialName
		}).Draw(t, "existing")
		m, err := matchExisting(slices.Clone(planned), existing, nil)
		if err != nil {
			t.Fatal(err)
		}
		var names, want []string
		for i, p := range m.Trials {
			if !slices.Contains(m.Remaining, i) {
				names = append(names, p.TrialName)
			}
			if !p.Equal(planned[i], nil) {
				t.Fatalf("trial %d is another one", i)
			}
		}
		for _, e := range existing {
			want = append(want, e.TrialName)
		}
		slices.Sort(names)
		slices.Sort(want)
		if !slices.Equal(names, want) || len(m.Remaining)+len(existing) != len(planned) {
			t.Fatalf("kept %v of %v, remaining %v", names, want, m.Remaining)
		}
	})
}

func TestMatchExistingForeign(t *testing.T) {
	t.Parallel()
	c := jobdir.NewConfig(time.Time{})
	planned, _ := Plan(c, uuid.UUID{1}, []jobdir.Task{taskAt("a")}, rand.New(rand.NewPCG(1, 2)).IntN)
	twice := []jobdir.TrialConfig{planned[0], planned[0]}
	m, err := matchExisting(slices.Clone(planned), twice, nil)
	if !errors.Is(err, ErrForeignTrial) || !slices.Equal(m.Unmatched, []int{1}) || len(m.Remaining) != 0 {
		t.Errorf("got %+v, %v", m, err)
	}
}
