package jobdir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/proctor-run/proctor/internal/dump"
	"github.com/proctor-run/proctor/reward"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// AppendJSON appends the text of a job's result.json.
func (r *Result) AppendJSON(dst []byte) []byte {
	var o dump.Object
	o.Str("id", r.ID.String())
	o.Str("started_at", r.StartedAt.String())
	setTime(&o, "updated_at", r.UpdatedAt)
	setTime(&o, "finished_at", r.FinishedAt)
	o.Int("n_total_trials", r.NTotalTrials)
	o.Set("stats", r.Stats.value())
	return value.AppendPydantic(dst, o.Value(), Indent)
}

func setTime(o *dump.Object, key string, t *Time) {
	if t == nil {
		o.Set(key, nil)
		return
	}
	o.Str(key, t.String())
}

func (s *Stats) value() *value.Object {
	var o dump.Object
	o.Int("n_completed_trials", s.NCompletedTrials)
	o.Int("n_errored_trials", s.NErroredTrials)
	o.Int("n_running_trials", s.NRunningTrials)
	o.Int("n_pending_trials", s.NPendingTrials)
	o.Int("n_cancelled_trials", s.NCancelledTrials)
	o.Int("n_retries", s.NRetries)
	o.Set("evals", s.EvalsValue())
	setInt(&o, "n_input_tokens", s.Usage.NInputTokens)
	setInt(&o, "n_cache_tokens", s.Usage.NCacheTokens)
	setInt(&o, "n_output_tokens", s.Usage.NOutputTokens)
	o.OptFloat("cost_usd", s.Usage.CostUSD)
	return o.Value()
}

func setInt(o *dump.Object, key string, n *value.Int) {
	if n == nil {
		o.Set(key, nil)
		return
	}
	o.Set(key, *n)
}

// EvalsValue dumps the groups as the document that result files hold.
func (s *Stats) EvalsValue() *value.Object {
	evals := value.NewObject(s.Evals.Len())
	for key, e := range s.Evals.All() {
		evals.Set(key, e.value())
	}
	return evals
}

func (e *Eval) value() *value.Object {
	var o dump.Object
	o.Int("n_trials", e.NTrials)
	o.Int("n_errors", e.NErrors)
	o.Set("metrics", dump.List(e.Metrics, func(m *value.Object) value.Value { return m }))
	passAtK := value.NewObject(len(e.PassAtK))
	for _, p := range e.PassAtK {
		passAtK.Append(strconv.Itoa(p.K), value.Float(p.Value))
	}
	o.Set("pass_at_k", passAtK)
	o.Set("reward_stats", e.RewardStats.Object())
	exceptions := value.NewObject(e.ExceptionStats.Len())
	for kind, names := range e.ExceptionStats.All() {
		exceptions.Set(kind, dump.Strs(names))
	}
	o.Set("exception_stats", exceptions)
	return o.Value()
}

// ParseResult reads a job's result.json, in the present and in older forms
// (Harbor job format, section 5.7). The error for an invalid document is a
// *schema.Errors holding every problem.
func ParseResult(data []byte) (Result, error) {
	v, err := value.Decode(data)
	if err != nil {
		return Result{}, fmt.Errorf("reading job result: %w", err)
	}
	r, _, err := schema.Validate(v, schema.Before(LegacyResult, schema.Model("JobResult", resultFields)))
	return r, err
}

// legacyResult moves what older files keep elsewhere to its present place.
func LegacyResult(_ *schema.Cursor, v value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	out := clone(obj)
	status, _ := out.Get("status")
	block, hasBlock := status.(*value.Object)
	out.Delete("status")
	if at, _ := out.Get("updated_at"); value.IsNull(at) {
		out.Set("updated_at", legacyUpdate(out, block))
	}
	stats := &value.Object{}
	if given, ok := out.Get("stats"); ok {
		if given, ok := given.(*value.Object); ok {
			stats = clone(given)
		}
	}
	rename(stats, "n_trials", "n_completed_trials")
	rename(stats, "n_errors", "n_errored_trials")
	if hasBlock {
		for _, key := range []string{
			"n_completed_trials", "n_errored_trials", "n_running_trials",
			"n_pending_trials", "n_cancelled_trials", "n_retries",
		} {
			if x, ok := block.Get(key); ok && !stats.Has(key) {
				stats.Set(key, x)
			}
		}
	}
	if !stats.Has("n_pending_trials") {
		pending := count(out, "n_total_trials") - count(stats, "n_completed_trials") - count(stats, "n_running_trials")
		stats.Set("n_pending_trials", value.NewInt(max(pending, 0)))
	}
	out.Set("stats", stats)
	return out, nil
}

func clone(obj *value.Object) *value.Object {
	out := value.NewObject(obj.Len())
	for key, x := range obj.All() {
		out.Set(key, x)
	}
	return out
}

// legacyUpdate finds when a file without updated_at was last touched.
func legacyUpdate(obj, status *value.Object) value.Value {
	if status != nil {
		if at, _ := status.Get("updated_at"); truthy(at) {
			return at
		}
	}
	if at, _ := obj.Get("finished_at"); truthy(at) {
		return at
	}
	at, _ := obj.Get("started_at")
	return at
}

func truthy(v value.Value) bool {
	s, isText := v.(value.Str)
	return !value.IsNull(v) && (!isText || s != "")
}

func rename(obj *value.Object, from, to string) {
	if x, ok := obj.Get(from); ok && !obj.Has(to) {
		obj.Set(to, x)
	}
}

// count reads an int that is there and fits; anything else counts as 0, and is
// reported by the validation.
func count(obj *value.Object, key string) int64 {
	x, _ := obj.Get(key)
	n, ok := x.(value.Int)
	if !ok {
		return 0
	}
	small, _ := n.Int64()
	return small
}

func resultFields(f *schema.Fields) Result {
	f.Ignore("trial_results")
	return Result{
		ID:           schema.Required(f, "id", decodeUUID),
		StartedAt:    schema.Required(f, "started_at", decodeTime),
		UpdatedAt:    schema.Optional(f, "updated_at", decodeTime),
		FinishedAt:   schema.Optional(f, "finished_at", decodeTime),
		NTotalTrials: schema.Required(f, "n_total_trials", schema.SmallInt),
		Stats:        schema.Required(f, "stats", schema.Model("JobStats", statsFields)),
	}
}

func statsFields(f *schema.Fields) Stats {
	f.Ignore("n_trials", "n_errors")
	s := Stats{
		NCompletedTrials: schema.Default(f, "n_completed_trials", 0, schema.SmallInt),
		NErroredTrials:   schema.Default(f, "n_errored_trials", 0, schema.SmallInt),
		NRunningTrials:   schema.Default(f, "n_running_trials", 0, schema.SmallInt),
		NPendingTrials:   schema.Default(f, "n_pending_trials", 0, schema.SmallInt),
		NCancelledTrials: schema.Default(f, "n_cancelled_trials", 0, schema.SmallInt),
		NRetries:         schema.Default(f, "n_retries", 0, schema.SmallInt),
	}
	evals := schema.Default(f, "evals", schema.Map[Eval]{}, schema.Dict(schema.Model("AgentDatasetStats", evalFields)))
	for key, e := range evals.All() {
		s.Evals.Set(key, &e)
	}
	s.Usage = Usage{
		NInputTokens:  schema.Optional(f, "n_input_tokens", schema.Int),
		NCacheTokens:  schema.Optional(f, "n_cache_tokens", schema.Int),
		NOutputTokens: schema.Optional(f, "n_output_tokens", schema.Int),
		CostUSD:       schema.Optional(f, "cost_usd", schema.Float),
	}
	return s
}

func evalFields(f *schema.Fields) Eval {
	return Eval{
		NTrials:        schema.Default(f, "n_trials", 0, schema.SmallInt),
		NErrors:        schema.Default(f, "n_errors", 0, schema.SmallInt),
		Metrics:        schema.Default(f, "metrics", nil, schema.List(schema.Object)),
		PassAtK:        schema.Default(f, "pass_at_k", nil, decodePassAtK),
		RewardStats:    schema.Default(f, "reward_stats", reward.Stats{}, decodeRewardStats),
		ExceptionStats: schema.Default(f, "exception_stats", schema.Map[[]string]{}, schema.Dict(schema.List(schema.Str))),
	}
}

// decodePassAtK validates a table whose keys are ints as text.
func decodePassAtK(c *schema.Cursor, v value.Value) ([]reward.PassAtK, bool) {
	values, ok := schema.Dict(schema.Float)(c, v)
	if !ok {
		return nil, false
	}
	var out []reward.PassAtK
	for key, estimate := range values.All() {
		k, err := strconv.Atoi(strings.TrimSpace(key))
		if err != nil {
			c.Fail("int_parsing", "Input should be a valid integer, unable to parse string as an integer", value.Str(key))
			return nil, false
		}
		out = append(out, reward.PassAtK{K: k, Value: estimate})
	}
	return out, true
}

// decodeRewardStats validates the table of reward values. Its keys become
// floats, whatever they were; of keys that become the same one, the last
// counts.
func decodeRewardStats(c *schema.Cursor, v value.Value) (reward.Stats, bool) {
	var out reward.Stats
	names, ok := schema.Dict(schema.Dict(schema.List(schema.Str)))(c, v)
	if !ok {
		return out, false
	}
	for name, values := range names.All() {
		var numbers schema.Map[[]string]
		for key, trials := range values.All() {
			x, ok := value.FloatLiteral(strings.TrimSpace(key))
			if !ok {
				c.Fail("float_parsing", "Input should be a valid number, unable to parse string as a number", value.Str(key))
				return out, false
			}
			numbers.Set(value.FloatRepr(float64(x)), trials)
		}
		for key, trials := range numbers.All() {
			x, _ := value.FloatLiteral(key)
			addValue(&out, name, x, trials)
		}
	}
	return out, true
}

// addValue adds an entry, even one without trials, as live files have them.
func addValue(s *reward.Stats, name string, x value.Number, trials []string) {
	var r reward.Rewards
	r.Set(name, x)
	for _, trialName := range trials {
		s.Add(&r, trialName)
	}
	if len(trials) == 0 {
		s.Add(&r, "")
		s.Remove(&r, "")
	}
}
