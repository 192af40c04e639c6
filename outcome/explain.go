package outcome

import (
	"fmt"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Explanation is an outcome and what it was made of.
type Explanation struct {
	Outcome Outcome

	// Samples are the numbers whose mean is the score, in order.
	Samples []Sample
	// Counted is n_total_trials, Completed and Errored are counters of stats.
	Counted, Completed, Errored value.Int
	// Fallback says that Counted is 0, so that the total is
	// Completed + Errored, while Resolved comes from Counted all the same.
	Fallback bool
	// Product is the score times Counted, before it is rounded to Resolved.
	Product float64

	// Err says why the result is missing or malformed: the place in the
	// document and the Python exception that the reference meets there. Nil if
	// it is neither.
	Err error
}

// Sample is one number of a job's metrics.
type Sample struct {
	Group  string // key in evals
	Metric int    // index in the group's metrics
	Key    string // of the metric's value
	Value  float64
	// Hidden are the other keys of the metric, which "mean" hides.
	Hidden []string
}

// Explain is [Of] with the way to it.
func Explain(resultJSON []byte) Explanation {
	v, err := value.Decode(resultJSON)
	if err != nil {
		return malformed(err)
	}
	if _, ok := v.(*value.Object); !ok {
		return malformed(noAttribute(v, "get"))
	}
	x, err := summarize(v)
	if err != nil {
		return malformed(err)
	}
	return x
}

// WithScore has another score than Harbor's, such as that of a policy, and what is
// resolved by it: the score times Counted, rounded half to even. Status, total and
// reason stay, and so does all of a result that cannot be used. The error is a
// [SchemaError] for a score that a result line cannot have, outside of 0 to 1.
func (x Explanation) WithScore(score float64) (Explanation, error) {
	if x.Outcome.Reason != "" {
		return x, nil
	}
	if !(score >= 0 && score <= 1) {
		return x, &SchemaError{"score", value.FloatRepr(score) + " is not within 0 to 1"}
	}
	x.Outcome.Score = score
	err := x.resolve()
	return x, err
}

// Partial is the outcome of a job of which other trials than those planned have finished,
// whatever its result says of these (outcome mapping, section 7.3): failed, without a
// score. Of one that cannot be used it is what it was.
func (x Explanation) Partial() Explanation {
	if x.Outcome.Reason == "" {
		x.Outcome = Outcome{Status: Failed, Total: x.Outcome.Total, Reason: ResultPartial}
	}
	return x
}

func malformed(err error) Explanation { return Explanation{Outcome: Malformed(), Err: err} }

// OfValue is the outcome of a result in memory. It differs from [Of] in two
// ways: what is not an object at all is a completed job without trials, and
// trouble is an error, under the name of the Python exception that the
// reference raises (outcome mapping, section 2.4). Hand on what it gives with
// [Emit], which refuses scores outside of 0 to 1.
func OfValue(result value.Value) (Outcome, error) {
	if _, ok := result.(*value.Object); !ok {
		result = &value.Object{}
	}
	x, err := summarize(result)
	return x.Outcome, err
}

// summarize maps a document that is an object (outcome mapping, section 2.2).
func summarize(doc value.Value) (Explanation, error) {
	var x Explanation
	stats, err := member(doc, "stats")
	if err != nil {
		return x, err
	}
	if x.Counted, err = intMember(doc, "n_total_trials"); err != nil {
		return x, at("n_total_trials", err)
	}
	if x.Completed, err = intMember(stats, "n_completed_trials"); err != nil {
		return x, at("stats.n_completed_trials", err)
	}
	if x.Errored, err = intMember(stats, "n_errored_trials"); err != nil {
		return x, at("stats.n_errored_trials", err)
	}
	if err = x.collect(stats); err != nil {
		return x, at("stats.evals", err)
	}
	return x, at("score × n_total_trials", x.conclude())
}

// at says where in a document an error is.
func at(place string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", place, err)
}

// collect gathers the samples of all groups.
func (x *Explanation) collect(stats value.Value) error {
	v, err := member(stats, "evals")
	if err != nil {
		return err
	}
	evals, ok := v.(*value.Object)
	if !ok {
		return noAttribute(v, "values")
	}
	for key, group := range evals.All() {
		metrics, err := memberOr(group, "metrics", value.List{})
		if err == nil {
			err = at("metrics", x.group(key, metrics))
		}
		if err != nil {
			return at(key, err)
		}
	}
	return nil
}

// group walks the metrics of a group. An empty object and empty text hold no
// elements, as in Python; their elements, if there were any, would be text.
func (x *Explanation) group(key string, metrics value.Value) error {
	switch metrics := metrics.(type) {
	case value.List:
		for i, element := range metrics {
			if err := x.metric(key, i, element); err != nil {
				return at(fmt.Sprintf("[%d]", i), err)
			}
		}
		return nil
	case *value.Object:
		for name := range metrics.All() {
			return badElement(value.Str(name))
		}
		return nil
	case value.Str:
		for _, r := range metrics {
			return badElement(value.Str(r))
		}
		return nil
	}
	return exception.Errorf(exception.TypeError, "'%s' object is not iterable", value.TypeName(metrics))
}

// metric takes the samples of one metric. The name "mean" hides all others.
func (x *Explanation) metric(group string, index int, element value.Value) error {
	obj, ok := element.(*value.Object)
	if !ok {
		return badElement(element)
	}
	mean, only := obj.Get("mean")
	if only {
		value, err := toFloat(mean)
		x.Samples = append(x.Samples, Sample{Group: group, Metric: index, Key: "mean", Value: value, Hidden: others(obj)})
		return at("mean", err)
	}
	for key, v := range obj.All() {
		value, err := toFloat(v)
		if err != nil {
			return at(key, err)
		}
		x.Samples = append(x.Samples, Sample{Group: group, Metric: index, Key: key, Value: value})
	}
	return nil
}

func others(obj *value.Object) []string {
	var keys []string
	for key := range obj.Keys() {
		if key != "mean" {
			keys = append(keys, key)
		}
	}
	return keys
}

// conclude makes the fields of the samples and counters.
func (x *Explanation) conclude() error {
	x.Outcome = Outcome{Status: Completed, Score: x.mean(), Total: x.Counted}
	if err := x.resolve(); err != nil {
		return err
	}
	if x.Errored.Sign() != 0 {
		x.Outcome.Status = Failed
	}
	if x.Counted.Sign() == 0 {
		x.Fallback = true
		x.Outcome.Total = x.Completed.Add(x.Errored)
	}
	return nil
}

// resolve makes the number of resolved trials of the score.
func (x *Explanation) resolve() error {
	counted, err := x.Counted.Float64()
	if err != nil {
		return err
	}
	x.Product = x.Outcome.Score * counted
	x.Outcome.Resolved, err = value.RoundHalfEven(x.Product)
	return err
}

func (x *Explanation) mean() float64 {
	if len(x.Samples) == 0 {
		return 0
	}
	values := make([]float64, len(x.Samples))
	for i, s := range x.Samples {
		values[i] = s.Value
	}
	return mean(values)
}

// mean is Python's sum(values) / len(values) of at least one float.
func mean(values []float64) float64 {
	var sum value.Summation
	for _, v := range values {
		_ = sum.Add(value.Float(v)) // only an int can fail to be added
	}
	total, _ := value.ToFloat(sum.Total()) // the sum of floats is one
	return total / float64(len(values))
}
