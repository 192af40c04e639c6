// Package runtimevalues holds what a runtime context is made of: values by key
// that are filled once and then only read, by any number of tasks (CUBE,
// section 4.6).
package runtimevalues

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// ErrFrozen is returned by [Values.Set] after Freeze.
var ErrFrozen = errors.New("the runtime context is read-only after setup")

// Values are guarded while they are filled, and read-only when frozen. The zero
// value is empty; nil may be read.
type Values struct {
	mu     sync.Mutex
	frozen bool
	late   []string // keys that something tried to set when it was frozen
	keys   []string
	values map[string]any
}

// FromObject returns frozen values that are a copy of an object.
func FromObject(o *value.Object) *Values {
	c := &Values{values: map[string]any{}, frozen: true}
	for key, item := range o.All() {
		c.keys = append(c.keys, key)
		c.values[key] = value.Clone(item)
	}
	return c
}

// Set puts a value under a key: data is copied as a [value.Value], live things
// are kept as they are. After Freeze it is [ErrFrozen], and the key is noted.
func (c *Values) Set(key string, item any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		c.late = append(c.late, key)
		return fmt.Errorf("setting %q: %w", key, ErrFrozen)
	}
	if isData(item) {
		v, err := typed.ValueOf(item)
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

// isData reports whether a thing is copied as a Value; live things are kept as
// they are.
func isData(v any) bool {
	switch v.(type) {
	case nil, value.Value:
		return true
	case typed.Typed:
		return false
	}
	switch reflect.TypeOf(v).Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false
	}
	return true
}

// Freeze ends the filling.
func (c *Values) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

// Get returns what was set: a copy of data, live things as they are.
func (c *Values) Get(key string) (any, bool) {
	if c == nil {
		return nil, false
	}
	v, ok := c.values[key]
	if data, isData := v.(value.Value); isData {
		v = value.Clone(data)
	}
	return v, ok
}

// Keys returns the keys in the order they were set.
func (c *Values) Keys() []string {
	if c == nil {
		return nil
	}
	return slices.Clone(c.keys)
}

// Violations returns the keys that something tried to set after Freeze.
func (c *Values) Violations() []string {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.late)
}

// Document returns the data and typed objects. There is none of values of which
// one is live.
func (c *Values) Document() (typed.Map[any], error) {
	var out typed.Map[any]
	for _, key := range c.keys {
		v := c.values[key]
		switch v.(type) {
		case value.Value, typed.Typed:
			out.Set(key, v)
		default:
			return out, exception.Errorf(exception.TypeError, "%s holds a live %T, which cannot be written", key, v)
		}
	}
	return out, nil
}
