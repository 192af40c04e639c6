package harbor

import (
	"math"
	"strings"

	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/value"
)

// rootKeys come first in a task.toml; tableKeys come last and are there even
// when they are empty. Between them stand [task] and [[steps]].
var (
	rootKeys  = [...]string{"schema_version", "source", "multi_step_reward_strategy", "artifacts"}
	tableKeys = [...]string{"task", "steps", "metadata", "verifier", "agent", "environment", "solution"}
)

// TOML writes the configuration as a task.toml (section 3.12): everything
// that is not null, in sections with a blank line between them. Reading it
// gives the same configuration, but that free metadata loses infinities and
// nan.
func (c *Config) TOML() []byte {
	doc := withoutNulls(c.JSON(), false).(*value.Object)
	if metadata, ok := doc.Get("metadata"); ok {
		doc.Set("metadata", withoutNulls(metadata, true))
	}
	root := &value.Object{}
	for _, key := range rootKeys {
		if v, ok := doc.Get(key); ok {
			root.Set(key, v)
		}
	}
	sections := []string{strings.TrimSpace(toml.Encode(root))}
	for _, key := range tableKeys {
		if v, ok := doc.Get(key); ok {
			table := &value.Object{}
			table.Set(key, v)
			sections = append(sections, strings.TrimSpace(toml.Encode(table)))
		}
	}
	return []byte(strings.Join(sections, "\n\n") + "\n")
}

// withoutNulls drops nulls at any depth. With finite, numbers that are not
// finite go too: in free data they count as null.
func withoutNulls(v value.Value, finite bool) value.Value {
	switch v := v.(type) {
	case value.Float:
		if finite && (math.IsInf(float64(v), 0) || math.IsNaN(float64(v))) {
			return nil
		}
	case value.List:
		out := value.List{}
		for _, item := range v {
			if item = withoutNulls(item, finite); !value.IsNull(item) {
				out = append(out, item)
			}
		}
		return out
	case *value.Object:
		out := value.NewObject(v.Len())
		for key, item := range v.All() {
			if item = withoutNulls(item, finite); !value.IsNull(item) {
				out.Set(key, item)
			}
		}
		return out
	}
	return v
}
