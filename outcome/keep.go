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
	Kept   []float64 // the scores that count, in order
	KeptAt []int     // where they stand among all
	Score  float64   // 0 if none does
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
		s.KeptAt = []int{best(scores)}
	case DropLowest:
		s.KeptAt = dropLowest(scores, k.Drop)
	case KeepAboveBound:
		s.KeptAt = atLeast(scores, k.Threshold)
	default:
		s.KeptAt = upTo(len(scores))
	}
	for _, i := range s.KeptAt {
		s.Kept = append(s.Kept, scores[i])
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
func dropLowest(scores []float64, n int) []int {
	order := upTo(len(scores))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[a], scores[b]) })
	kept := order[min(n, len(scores)-1):]
	slices.Sort(kept)
	return kept
}

func atLeast(scores []float64, bound float64) []int {
	var kept []int
	for i, x := range scores {
		if x >= bound {
			kept = append(kept, i)
		}
	}
	return kept
}

// upTo lists the numbers below n.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
