package cube

import "github.com/proctor-run/proctor/cube/typed"

// What the vectors fix and no other package needs.
var (
	RunHealthCheck = runHealthCheck
	BaseSeed       = baseSeed
)

// NewPresets keeps copies of the configs; their types must be registered.
func NewPresets[T Typed](r *Registry, configs map[string]T) (*typed.Presets[T], error) {
	return typed.NewPresets(r.types, configs)
}
