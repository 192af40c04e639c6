package terminalbench

import (
	"fmt"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// settings is the content of a task.yaml, as far as it has a place in Harbor.
type settings struct {
	instruction     string
	metadata        *value.Object
	agentTimeout    float64 // seconds
	verifierTimeout float64 // seconds
}

func (t *task) readSettings() (settings, error) {
	text, err := t.read("task.yaml")
	if err != nil {
		return settings{}, err
	}
	doc, err := yaml11.Decode([]byte(text))
	if err != nil {
		return settings{}, fmt.Errorf("reading task.yaml: %w", err)
	}
	s, _, err := schema.Validate(doc, schema.Model("TerminalBenchTaskConfig", settingsFields))
	return s, err
}

// settingsFields reads the fields in the order in which errors list them; the
// metadata keeps that order.
func settingsFields(f *schema.Fields) settings {
	metadata := &value.Object{}
	text := func(key, missing string) {
		metadata.Set(key, value.Str(schema.Default(f, key, missing, schema.Str)))
	}
	s := settings{metadata: metadata, instruction: schema.Required(f, "instruction", schema.Str)}
	text("author_name", "unknown")
	text("author_email", "unknown")
	metadata.Set("difficulty", value.Str(schema.Default(f, "difficulty", "unknown", schema.Enum("easy", "medium", "hard", "unknown"))))
	text("category", "software_engineering")
	tags := value.List{}
	for _, tag := range schema.Default(f, "tags", nil, schema.List(schema.Str)) {
		tags = append(tags, value.Str(tag))
	}
	metadata.Set("tags", tags)
	for _, key := range [...]string{"estimated_duration_sec", "expert_time_estimate_min", "junior_time_estimate_min"} {
		if x := schema.Optional(f, key, schema.Float); x != nil {
			metadata.Set(key, value.Float(*x))
		}
	}
	s.agentTimeout = schema.Default(f, "max_agent_timeout_sec", 360, schema.Float)
	s.verifierTimeout = schema.Default(f, "max_test_timeout_sec", 60, schema.Float)
	return s
}

// config makes the task.toml.
func (s settings) config(o Options) *harbor.Config {
	cfg := harbor.DefaultConfig()
	cfg.Metadata = s.metadata
	cfg.Agent.TimeoutSec = &s.agentTimeout
	cfg.Verifier.TimeoutSec = s.verifierTimeout
	cfg.Environment.CPUs = number(o.CPUs)
	cfg.Environment.MemoryMB = number(o.MemoryMB)
	cfg.Environment.StorageMB = number(o.StorageMB)
	cfg.Environment.GPUs = number(o.GPUs)
	return &cfg
}

func number(n *int) *value.Int {
	if n == nil {
		return nil
	}
	return new(value.NewInt(int64(*n)))
}
