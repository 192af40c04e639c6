package outcome

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// KeepPolicy names which tasks of a job count for its score.
type KeepPolicy string

// The keep policies (outcome mapping, section 10).
const (
	KeepAll        KeepPolicy = "off" // the default
	KeepBest       KeepPolicy = "best-of-k"
	DropLowest     KeepPolicy = "drop-lowest-n"
	KeepAboveBound KeepPolicy = "threshold-band"
)

// ParseKeepPolicy reads the name of a policy, in any case and with white space
// around. The empty text is no name.
func ParseKeepPolicy(text string) (KeepPolicy, error) {
	switch p := KeepPolicy(lower(value.Strip(text))); p {
	case KeepAll, KeepBest, DropLowest, KeepAboveBound:
		return p, nil
	}
	return "", exception.New(exception.InvalidKeepPolicyError, "unknown keep policy "+value.Repr(value.Str(text))+
		"; expected one of ['best-of-k', 'drop-lowest-n', 'off', 'threshold-band']")
}

// Keep is a policy with its parameters. Parameters of other policies than the
// selected one do not matter. The zero value keeps all.
type Keep struct {
	Policy    KeepPolicy
	Drop      int     // how many of the lowest [DropLowest] drops; one always stays
	Threshold float64 // the least score that [KeepAboveBound] keeps
}

// JobScore is the score of a job over its tasks.
type JobScore struct {
	Kept  []float64 // the scores that count, in order
	Score float64   // 0 if none does
	// Passed counts the tasks that scored 1 or more, Total all. No policy
	// changes either.
	Passed, Total int
}

// Eligible reports whether the job qualifies for being rewarded: it has as many
// tasks as required and at least one passed.
func (s JobScore) Eligible(required int) bool { return s.Total >= required && s.Passed >= 1 }

// Of scores the tasks of a job. Of the policy's name and then its parameter the
// first that is wrong is an InvalidKeepPolicyError, also without any tasks.
func (k Keep) Of(scores []float64) (JobScore, error) {
	policy, err := k.check()
	if err != nil {
		return JobScore{}, err
	}
	s := JobScore{Total: len(scores)}
	for _, x := range scores {
		if x >= 1 {
			s.Passed++
		}
	}
	if len(scores) == 0 {
		return s, nil
	}
	switch policy {
	case KeepBest:
		s.Kept = []float64{scores[best(scores)]}
	case DropLowest:
		s.Kept = dropLowest(scores, k.Drop)
	case KeepAboveBound:
		s.Kept = atLeast(scores, k.Threshold)
	default:
		s.Kept = slices.Clone(scores)
	}
	if len(s.Kept) > 0 {
		s.Score = mean(s.Kept)
	}
	return s, nil
}

func (k Keep) check() (KeepPolicy, error) {
	if k.Policy == "" {
		return KeepAll, nil
	}
	policy, err := ParseKeepPolicy(string(k.Policy))
	switch {
	case err != nil:
		return "", err
	case policy == DropLowest && k.Drop < 0:
		return "", exception.New(exception.InvalidKeepPolicyError, "drop-lowest-n requires N >= 0, got "+strconv.Itoa(k.Drop))
	case policy == KeepAboveBound && !(k.Threshold >= 0 && k.Threshold <= 1):
		return "", exception.New(exception.InvalidKeepPolicyError, "threshold-band requires a threshold in [0, 1], got "+value.FloatRepr(k.Threshold))
	}
	return policy, nil
}

// dropLowest drops the n lowest scores, among equals the earliest, but not all.
// A nan is as low as minus infinity.
func dropLowest(scores []float64, n int) []float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	dropped := make([]bool, len(scores))
	for _, i := range order[:min(n, len(scores)-1)] {
		dropped[i] = true
	}
	kept := make([]float64, 0, len(scores))
	for i, x := range scores {
		if !dropped[i] {
			kept = append(kept, x)
		}
	}
	return kept
}

func atLeast(scores []float64, bound float64) []float64 {
	var kept []float64
	for _, x := range scores {
		if x >= bound {
			kept = append(kept, x)
		}
	}
	return kept
}
