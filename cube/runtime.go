package cube

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/value"
)

// infraKey is the reserved key of a runtime context.
const infraKey = "infra"

// ErrFrozen is returned by [Setup.Set] after the setup hook has returned.
var ErrFrozen = errors.New("the runtime context is read-only after setup")

// RuntimeContext is what a benchmark's setup left for all its tasks: server
// addresses, clients, the infra. It cannot be changed through this type; data
// that it hands out is a copy. The zero value is none at all.
type RuntimeContext struct{ c *contextValues }

// contextValues is guarded by mu while it is filled, and read-only when frozen.
type contextValues struct {
	mu     sync.Mutex
	frozen bool
	late   []string // keys that something tried to set when it was frozen
	keys   []string
	values map[string]any
}

// NewRuntimeContext returns a context with alternating keys and values, for
// tasks that are made without a benchmark.
func NewRuntimeContext(keysAndValues ...any) (RuntimeContext, error) {
	c := &contextValues{}
	for i := 0; i+1 < len(keysAndValues); i += 2 {
		key, ok := keysAndValues[i].(string)
		if !ok {
			return RuntimeContext{}, TypeErrorf("key %v of a runtime context is not a string", keysAndValues[i])
		}
		if err := c.set(key, keysAndValues[i+1]); err != nil {
			return RuntimeContext{}, err
		}
	}
	c.freeze()
	return RuntimeContext{c}, nil
}

func (c *contextValues) set(key string, item any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.late = append(c.late, key)
		return fmt.Errorf("setting %q: %w", key, ErrFrozen)
	}
	if isData(item) {
		v, err := ValueOf(item)
		if err != nil {
			return fmt.Errorf("setting %q: %w", key, err)
		}
		if err := typed.CheckNesting("the value", v); err != nil {
			return fmt.Errorf("setting %q: %w", key, err)
		}
		item = value.Clone(v)
	}
	if c.values == nil {
		c.values = map[string]any{}
	}
	if _, ok := c.values[key]; !ok {
		c.keys = append(c.keys, key)
	}
	c.values[key] = item
	return nil
}

// isData tells what is copied into a context, as a Value, from live things that
// are kept as they are.
func isData(v any) bool {
	switch v.(type) {
	case nil, Value:
		return true
	case Typed:
		return false
	}
	switch reflect.TypeOf(v).Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	}
	return true
}

func (c *contextValues) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

// IsZero reports whether there is no context at all.
func (rc RuntimeContext) IsZero() bool { return rc.c == nil }

// Get returns what was set: data as a [Value], live things as they are.
func (rc RuntimeContext) Get(key string) (any, bool) {
	if rc.c == nil {
		return nil, false
	}
	v, ok := rc.c.values[key]
	if data, isData := v.(Value); isData {
		v = value.Clone(data)
	}
	return v, ok
}

// String returns the text that was set under a key, "" when there is none.
func (rc RuntimeContext) String(key string) string {
	v, _ := rc.Get(key)
	s, _ := v.(Str)
	return string(s)
}

// Keys returns the keys in the order they were set.
func (rc RuntimeContext) Keys() []string {
	if rc.c == nil {
		return nil
	}
	return append([]string(nil), rc.c.keys...)
}

// Violations returns the keys that something tried to set after setup.
func (rc RuntimeContext) Violations() []string {
	if rc.c == nil {
		return nil
	}
	rc.c.mu.Lock()
	defer rc.c.mu.Unlock()
	return append([]string(nil), rc.c.late...)
}

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
		c := &contextValues{values: map[string]any{}, frozen: true}
		for key, item := range v.All() {
			c.keys = append(c.keys, key)
			c.values[key] = value.Clone(item)
		}
		*rc = RuntimeContext{c}
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
	var out Map[any]
	for _, key := range rc.c.keys {
		v := rc.c.values[key]
		switch v.(type) {
		case Value, Typed:
			out.Set(key, v)
		default:
			return nil, TypeErrorf("%s holds a live %T, which cannot be written", key, v)
		}
	}
	return out, nil
}
