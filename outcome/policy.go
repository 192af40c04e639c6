package outcome

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// Policy is a scoring policy that was fixed before a job ran (outcome mapping,
// section 10.1). It says the same as an [Aggregation] and a [Keep], but knows no
// defaults and is read strictly.
type Policy struct {
	Aggregation Aggregation
	Keep        Keep
}

// PolicyScore is a job's score under a [Policy].
type PolicyScore struct {
	JobScore
	Tasks        []TaskScore // sorted by task
	PassedTrials int         // trials that scored exactly 1
	PassedTasks  int         // tasks that scored exactly 1
}

// ParsePolicy reads a policy: a JSON object of exactly schema_version,
// per_task_aggregation, keep_policy, drop_lowest_n and threshold_f64be. Unlike
// elsewhere, names have underscores.
func ParsePolicy(data []byte) (Policy, error) {
	v, err := value.Decode(data)
	if err != nil {
		return Policy{}, fmt.Errorf("reading scoring policy: %w", err)
	}
	obj, ok := v.(*value.Object)
	if !ok {
		return Policy{}, fmt.Errorf("reading scoring policy: expected an object, got %s", value.TypeName(v))
	}
	p, err := policyOf(obj)
	if err != nil {
		return Policy{}, fmt.Errorf("reading scoring policy: %w", err)
	}
	return p, nil
}

// Text is the policy as [ParsePolicy] reads it, always the same for the same policy.
// The error is that of one that cannot be fixed before a job runs: the best task alone
// has no spelling, nor have parameters that are no scores or of another policy.
func (p Policy) Text() (string, error) {
	obj := value.NewObject(5)
	obj.Append("drop_lowest_n", value.NewInt(int64(p.Keep.Drop)))
	obj.Append("keep_policy", value.Str(underscored(string(cmp.Or(p.Keep.Policy, KeepAll)))))
	obj.Append("per_task_aggregation", value.Str(underscored(string(cmp.Or(p.Aggregation, MeanOfAttempts)))))
	obj.Append("schema_version", value.NewInt(1))
	obj.Append("threshold_f64be", value.Null{})
	if p.Keep.Policy == KeepAboveBound {
		var bits [8]byte
		binary.BigEndian.PutUint64(bits[:], math.Float64bits(p.Keep.Threshold))
		obj.Set("threshold_f64be", value.Str(hex.EncodeToString(bits[:])))
	}
	if _, err := policyOf(obj); err != nil {
		return "", fmt.Errorf("writing scoring policy: %w", err)
	}
	return string(value.AppendDumps(nil, obj, value.DumpsOptions{})), nil
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

func policyOf(obj *value.Object) (Policy, error) {
	fields := []string{"schema_version", "per_task_aggregation", "keep_policy", "drop_lowest_n", "threshold_f64be"}
	for key := range obj.Keys() {
		if !slices.Contains(fields, key) {
			return Policy{}, fmt.Errorf("there is no field %q", key)
		}
	}
	for _, key := range fields {
		if !obj.Has(key) {
			return Policy{}, fmt.Errorf("the field %q is missing", key)
		}
	}
	var p Policy
	if n, ok := intOf(obj, "schema_version"); !ok || n != 1 {
		return p, fmt.Errorf("schema_version is not 1")
	}
	switch name := textOf(obj, "per_task_aggregation"); name {
	case "mean":
		p.Aggregation = MeanOfAttempts
	case "best_of_k":
		p.Aggregation = BestOfK
	default:
		return p, fmt.Errorf("per_task_aggregation is not %q or %q", "mean", "best_of_k")
	}
	switch name := textOf(obj, "keep_policy"); name {
	case "off", "drop_lowest_n", "threshold_band":
		p.Keep.Policy = KeepPolicy(strings.ReplaceAll(name, "_", "-"))
	default:
		return p, fmt.Errorf("keep_policy is not %q, %q or %q", "off", "drop_lowest_n", "threshold_band")
	}
	return p, p.readParameters(obj)
}

// readParameters reads the parameters, which must not be set for other policies
// than theirs.
func (p *Policy) readParameters(obj *value.Object) error {
	n, ok := intOf(obj, "drop_lowest_n")
	if !ok || n < 0 || n != 0 && p.Keep.Policy != DropLowest {
		return fmt.Errorf("drop_lowest_n is not an int of at least 0, or not 0 although keep_policy does not use it")
	}
	p.Keep.Drop = n
	v, _ := obj.Get("threshold_f64be")
	if p.Keep.Policy != KeepAboveBound {
		if !value.IsNull(v) {
			return fmt.Errorf("threshold_f64be is not null although keep_policy does not use it")
		}
		return nil
	}
	text, _ := v.(value.Str)
	bits, err := hex.DecodeString(string(text))
	if err != nil || len(bits) != 8 || strings.ToLower(string(text)) != string(text) {
		return fmt.Errorf("threshold_f64be is not 16 lower-case hex digits")
	}
	p.Keep.Threshold = math.Float64frombits(binary.BigEndian.Uint64(bits))
	if !isScore(p.Keep.Threshold) {
		return fmt.Errorf("threshold_f64be is %s, not within 0 to 1", value.FloatRepr(p.Keep.Threshold))
	}
	return nil
}

func intOf(obj *value.Object, key string) (int, bool) {
	v, _ := obj.Get(key)
	n, ok := v.(value.Int)
	if !ok {
		return 0, false
	}
	i, fits := n.Int64()
	return int(i), fits && int64(int(i)) == i
}

// isScore tells finite scores within 0 to 1, minus 0 not being one.
func isScore(x float64) bool { return x >= 0 && x <= 1 && !math.Signbit(x) }

// Of scores the tasks of a job. Every task must have the same number of trials,
// and every score be within 0 to 1.
func (p Policy) Of(tasks []TaskScores) (PolicyScore, error) {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b TaskScores) int { return strings.Compare(a.Task, b.Task) })
	var s PolicyScore
	for i, t := range tasks {
		switch {
		case i > 0 && t.Task == tasks[i-1].Task:
			return PolicyScore{}, fmt.Errorf("scoring task %q: it comes twice", t.Task)
		case len(t.Scores) != len(tasks[0].Scores):
			return PolicyScore{}, fmt.Errorf("scoring task %q: it has %d trials where others have %d", t.Task, len(t.Scores), len(tasks[0].Scores))
		}
		for _, x := range t.Scores {
			if !isScore(x) {
				return PolicyScore{}, fmt.Errorf("scoring task %q: %s is not a score within 0 to 1", t.Task, value.FloatRepr(x))
			}
			if x == 1 {
				s.PassedTrials++
			}
		}
	}
	var err error
	if s.Tasks, err = p.Aggregation.PerTask(tasks); err != nil {
		return PolicyScore{}, fmt.Errorf("scoring tasks: %w", err)
	}
	scores := make([]float64, len(s.Tasks))
	for i, t := range s.Tasks {
		scores[i] = t.Score
		if t.Score == 1 {
			s.PassedTasks++
		}
	}
	s.JobScore, err = p.Keep.Of(scores)
	return s, err
}
