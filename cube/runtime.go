package cube

import (
	"github.com/proctor-run/proctor/cube/internal/runtimevalues"
	"github.com/proctor-run/proctor/cube/typed"
)

// infraKey is the reserved key of a runtime context.
const infraKey = "infra"

// ErrFrozen is returned by [Setup.Set] after the setup hook has returned.
var ErrFrozen = runtimevalues.ErrFrozen

// RuntimeContext is what a benchmark's setup left for all its tasks: server
// addresses, clients, the infra. It cannot be changed through this type; data
// that it hands out is a copy. The zero value is none at all.
type RuntimeContext struct{ c *runtimevalues.Values }

// NewRuntimeContext returns a context with alternating keys and values, for
// tasks that are made without a benchmark.
func NewRuntimeContext(keysAndValues ...any) (RuntimeContext, error) {
	c := &runtimevalues.Values{}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		key, ok := keysAndValues[i].(string)
		if !ok {
			return RuntimeContext{}, TypeErrorf("key %v of a runtime context is not a string", keysAndValues[i])
		}
		if err := c.Set(key, keysAndValues[i+1]); err != nil {
			return RuntimeContext{}, err
		}
	}
	c.Freeze()
	return RuntimeContext{c}, nil
}

// IsZero reports whether there is no context at all.
func (rc RuntimeContext) IsZero() bool { return rc.c == nil }

// Get returns what was set: data as a [Value], live things as they are.
func (rc RuntimeContext) Get(key string) (any, bool) { return rc.c.Get(key) }

// String returns the text that was set under a key, "" when there is none.
func (rc RuntimeContext) String(key string) string {
	v, _ := rc.Get(key)
	s, _ := v.(Str)
	return string(s)
}

// Keys returns the keys in the order they were set.
func (rc RuntimeContext) Keys() []string { return rc.c.Keys() }

// Violations returns the keys that something tried to set after setup.
func (rc RuntimeContext) Violations() []string { return rc.c.Violations() }

// Infra returns the infra under the reserved key "infra".
func (rc RuntimeContext) Infra() (Infra, bool) {
	v, _ := rc.Get(infraKey)
	i, ok := v.(Infra)
	return i, ok
}

// UnmarshalValue reads an object, or null for no context.
func (rc *RuntimeContext) UnmarshalValue(v Value) error {
	switch v := v.(type) {
	case nil, Null:
		*rc = RuntimeContext{}
	case *Object:
		*rc = RuntimeContext{runtimevalues.FromObject(v)}
	default:
		return &ValidationError{Errors: []typed.FieldError{{Type: "dict_type", Msg: "Input should be an object"}}}
	}
	return nil
}

// MarshalValue returns the data and typed objects of the context. One that holds
// anything live cannot be written.
func (rc *RuntimeContext) MarshalValue() (any, error) {
	if rc.c == nil {
		return nil, nil
	}
	return rc.c.Document()
}
