package score

import (
	"fmt"
	"strconv"

	"github.com/proctor-run/proctor/jobdir/scan"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Difference is one field in which a stored result and its trials disagree.
type Difference struct {
	// Group is the key in evals, "" for fields of the whole job.
	Group string
	// Trial is the trial that differs, "" for aggregated fields.
	Trial string
	// Field is the place: of a trial, in its result.json, like
	// "verifier_result.rewards.reward"; else in the job's, like
	// "stats.evals.oracle__adhoc.metrics[0].mean".
	Field string
	// Stored is what the job's result.json says, Computed what the trials
	// give, as JSON; "" is nothing.
	Stored, Computed string
}

// String says it in one line.
func (d Difference) String() string {
	stored, computed := orNothing(d.Stored), orNothing(d.Computed)
	if d.Trial == "" {
		return fmt.Sprintf("%s: stored %s, computed %s", d.Field, stored, computed)
	}
	return fmt.Sprintf("trial %q: %s: stored %s, computed %s", d.Trial, d.Field, stored, computed)
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// Check compares the stored result of the directory with what its trials
// give, field by field and trial by trial. Nil means that they agree.
//
// Numbers must be equal and of the same kind; how a number is spelled does not
// count. For a job that has not finished, entries that a retry left empty do
// not count either.
func (r *Rescored) Check() []Difference {
	if r.stored == nil {
		return []Difference{{Field: scan.ResultFile, Computed: strconv.Quote(scan.ResultFile)}}
	}
	// The computed document takes the way through a file that the stored one
	// took: of a name that comes twice only one remains.
	v, err := value.Decode(r.Result.AppendJSON(nil))
	computed, ok := v.(*value.Object)
	if err != nil || !ok {
		return []Difference{{Field: scan.ResultFile, Stored: strconv.Quote(scan.ResultFile)}}
	}
	c := checker{live: r.live}
	stats, want := at(r.stored, "stats"), at(computed, "stats")
	for key, x := range want.All() {
		switch {
		case key == "evals":
			c.evals(at(stats, key), at(want, key))
		case r.live && (key == "n_running_trials" || key == "n_pending_trials" || key == "n_cancelled_trials"):
			// What ran when the job stopped is not in its trials' results.
		default:
			c.field(Difference{Field: "stats." + key}, stats, key, x)
		}
	}
	return c.found
}

type checker struct {
	live  bool
	found []Difference
}

// field compares one member of a stored object with what was computed.
func (c *checker) field(d Difference, stored *value.Object, key string, computed value.Value) {
	was, there := stored.Get(key)
	if !there && isEmpty(computed) {
		return // older files lack fields that have a default
	}
	if c.live && isEmpty(was) && isEmpty(computed) {
		return // retries turn null into zero
	}
	c.value(d, was, computed)
}

func isEmpty(v value.Value) bool {
	switch v := v.(type) {
	case value.Int:
		return v.Sign() == 0
	case value.Float:
		return v == 0
	case *value.Object:
		return v.Len() == 0
	case value.List:
		return len(v) == 0
	}
	return value.IsNull(v)
}

// value compares two values of any kind, down to their leaves.
func (c *checker) value(d Difference, stored, computed value.Value) {
	switch want := computed.(type) {
	case *value.Object:
		if was, ok := stored.(*value.Object); ok {
			c.object(d, was, want)
			return
		}
	case value.List:
		if was, ok := stored.(value.List); ok {
			c.list(d, was, want)
			return
		}
	}
	if !sameLeaf(stored, computed) {
		d.Stored, d.Computed = jsonText(stored), jsonText(computed)
		c.found = append(c.found, d)
	}
}

func (c *checker) object(d Difference, stored, computed *value.Object) {
	for key, x := range computed.All() {
		sub := d
		sub.Field += "." + key
		was, _ := stored.Get(key)
		c.value(sub, was, x)
	}
	for key, was := range stored.All() {
		if !computed.Has(key) {
			sub := d
			sub.Field += "." + key
			c.value(sub, was, nil)
		}
	}
}

func (c *checker) list(d Difference, stored, computed value.List) {
	for i := range max(len(stored), len(computed)) {
		sub := d
		sub.Field += "[" + strconv.Itoa(i) + "]"
		c.value(sub, item(stored, i), item(computed, i))
	}
}

func item(list value.List, i int) value.Value {
	if i >= len(list) {
		return nil
	}
	return list[i]
}

// sameLeaf reports whether two values without members are equal. A value that is
// not there is null here.
func sameLeaf(a, b value.Value) bool {
	if value.IsNull(a) || value.IsNull(b) {
		return value.IsNull(a) && value.IsNull(b)
	}
	switch x := a.(type) {
	case value.Int:
		y, ok := b.(value.Int)
		return ok && x.Cmp(y) == 0
	case value.Float:
		y, ok := b.(value.Float)
		return ok && (x == y || isNaN(x) && isNaN(y))
	case value.Str:
		return a == b
	case value.Bool:
		return a == b
	}
	return false
}

func jsonText(v value.Value) string {
	if v == nil {
		return ""
	}
	return string(value.AppendDumps(nil, v, value.DumpsOptions{Unicode: true}))
}

// evals compares the groups.
func (c *checker) evals(stored, computed *value.Object) {
	for key := range computed.All() {
		c.group(key, at(stored, key), at(computed, key))
	}
	for key := range stored.All() {
		if !computed.Has(key) {
			c.group(key, at(stored, key), &value.Object{})
		}
	}
}

func (c *checker) group(key string, stored, computed *value.Object) {
	d := Difference{Group: key, Field: "stats.evals." + key}
	c.rewards(d, at(stored, "reward_stats"), at(computed, "reward_stats"))
	c.exceptions(d, at(stored, "exception_stats"), at(computed, "exception_stats"))
	for field, x := range computed.All() {
		if field == "reward_stats" || field == "exception_stats" {
			continue
		}
		sub := d
		sub.Field += "." + field
		c.field(sub, stored, field, x)
	}
	for field, was := range stored.All() {
		if !computed.Has(field) && field != "reward_stats" && field != "exception_stats" {
			sub := d
			sub.Field += "." + field
			c.value(sub, was, nil)
		}
	}
}

// rewards compares, per reward name, what each trial got.
func (c *checker) rewards(d Difference, stored, computed *value.Object) {
	var names schema.Map[bool]
	for _, obj := range []*value.Object{computed, stored} {
		for name := range obj.All() {
			names.Set(name, true)
		}
	}
	for name := range names.All() {
		was, want := at(stored, name), at(computed, name)
		before := len(c.found)
		c.trials(d, "verifier_result.rewards."+name, byTrial(was), byTrial(want), sameReward(was))
		if len(c.found) == before {
			c.order(d, "reward_stats."+name, was, want)
		}
	}
}

// exceptions compares which exception each trial ended with.
func (c *checker) exceptions(d Difference, stored, computed *value.Object) {
	before := len(c.found)
	same := func(a, b string) bool { return a == b }
	c.trials(d, "exception_info.exception_type", byTrial(stored), byTrial(computed), same)
	if len(c.found) == before {
		c.order(d, "exception_stats", stored, computed)
	}
}

// byTrial turns an object of lists of trials around.
func byTrial(obj *value.Object) *schema.Map[string] {
	var out schema.Map[string]
	for key, v := range obj.All() {
		list, _ := v.(value.List)
		for _, item := range list {
			name, _ := item.(value.Str)
			out.Set(string(name), key)
		}
	}
	return &out
}

// sameReward compares the keys of two values: as numbers of the same kind. A
// document holds the key "nan" once however many there were, so a trial that
// should be listed there may be missing.
func sameReward(stored *value.Object) func(a, b string) bool {
	return func(was, want string) bool {
		if want == "nan" && was == "" {
			return stored.Has("nan")
		}
		return was == want || sameLeaf(numberOf(was), numberOf(want))
	}
}

func numberOf(text string) value.Value {
	if n, err := value.ParseInt(text); err == nil {
		return n
	}
	if x, err := value.ParseFloat(text); err == nil {
		return x
	}
	return value.Str(text)
}

// trials compares one value per trial.
func (c *checker) trials(d Difference, field string, stored, computed *schema.Map[string], same func(was, want string) bool) {
	d.Field = field
	for name, want := range computed.All() {
		was, _ := stored.Get(name)
		if !same(was, want) {
			d.Trial, d.Stored, d.Computed = name, was, want
			c.found = append(c.found, d)
		}
	}
	for name, was := range stored.All() {
		if _, ok := computed.Get(name); !ok {
			d.Trial, d.Stored, d.Computed = name, was, ""
			c.found = append(c.found, d)
		}
	}
}

// order compares the order of trials and values, where the contents agree.
func (c *checker) order(d Difference, field string, stored, computed *value.Object) {
	was, want := jsonText(withoutEmpty(stored)), jsonText(withoutEmpty(computed))
	if was == want || hasNaN(stored) {
		return
	}
	d.Field += "." + field
	d.Stored, d.Computed = was, want
	c.found = append(c.found, d)
}

// withoutEmpty leaves out entries that a retry emptied.
func withoutEmpty(obj *value.Object) *value.Object {
	out := value.NewObject(obj.Len())
	for key, v := range obj.All() {
		if !isEmpty(v) {
			out.Set(key, v)
		}
	}
	return out
}

// hasNaN reports whether some entries may have got lost in reading, see
// sameReward.
func hasNaN(obj *value.Object) bool { return obj.Has("nan") }
