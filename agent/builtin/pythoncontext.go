package builtin

import (
	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/value"
)

// Bounds of what a Python agent reports of its work. Sums over any number of trials
// stay exact in a double.
const (
	maxContext = 1 << 20 // bytes
	maxTokens  = 1 << 40
	maxCostUSD = 1 << 30
	// maxMetadataDepth is less than what readers of results bear.
	maxMetadataDepth = 64
)

// parsePythonContext reads the JSON object that pythonAgent writes. The agent can have
// written anything: what cannot be so is left out, with a warning. An empty file is
// of an agent that was ended before it could report.
func parsePythonContext(data []byte, warn func(format string, args ...any)) agent.Result {
	if len(data) == 0 {
		return agent.Result{}
	}
	v, err := value.Decode(data)
	if err != nil {
		warn("what the agent reports of its work is left out: %v", err)
		return agent.Result{}
	}
	o, ok := v.(*value.Object)
	if !ok {
		warn("what the agent reports of its work is left out: it is not an object")
		return agent.Result{}
	}
	c := pythonReport{o, warn}
	return agent.Result{
		InputTokens: c.tokens("n_input_tokens"), CacheTokens: c.tokens("n_cache_tokens"), OutputTokens: c.tokens("n_output_tokens"),
		CostUSD: c.cost("cost_usd"), Metadata: c.metadata("metadata"),
	}
}

type pythonReport struct {
	fields *value.Object
	warn   func(format string, args ...any)
}

// get returns a field; nil for one that says nothing.
func (c pythonReport) get(name string) value.Value {
	v, _ := c.fields.Get(name)
	if value.IsNull(v) {
		return nil
	}
	return v
}

func (c pythonReport) refuse(name string, v value.Value, format string, args ...any) {
	args = append([]any{name, value.ShortRepr(value.Repr(v))}, args...)
	c.warn("the agent's context has %s %s and not "+format+"; it is left out", args...)
}

func (c pythonReport) tokens(name string) *int64 {
	v := c.get(name)
	if v == nil {
		return nil
	}
	if n, ok := v.(value.Int); ok {
		if i, small := n.Int64(); small && i >= 0 && i <= maxTokens {
			return &i
		}
	}
	c.refuse(name, v, "a whole number from 0 to %d", int64(maxTokens))
	return nil
}

func (c pythonReport) cost(name string) *float64 {
	v := c.get(name)
	if v == nil {
		return nil
	}
	if n, ok := v.(value.Number); ok {
		if f, err := value.ToFloat(n); err == nil && f >= 0 && f <= maxCostUSD { // NaN is neither
			return &f
		}
	}
	c.refuse(name, v, "a number from 0 to %d", int64(maxCostUSD))
	return nil
}

func (c pythonReport) metadata(name string) *value.Object {
	v := c.get(name)
	if v == nil {
		return nil
	}
	o, ok := v.(*value.Object)
	if ok && shallow(o, maxMetadataDepth) {
		return o
	}
	c.refuse(name, v, "an object of at most %d levels", maxMetadataDepth)
	return nil
}

// shallow reports whether lists and objects nest at most that deep.
func shallow(v value.Value, depth int) bool {
	switch v := v.(type) {
	case value.List:
		for _, item := range v {
			if depth == 0 || !shallow(item, depth-1) {
				return false
			}
		}
	case *value.Object:
		for _, item := range v.All() {
			if depth == 0 || !shallow(item, depth-1) {
				return false
			}
		}
	}
	return true
}
