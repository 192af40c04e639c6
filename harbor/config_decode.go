package harbor

import (
	"regexp"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// ParseConfig reads the text of a task.toml. Unknown keys and deprecated ones
// are in the report. The error is a *toml.Error for text that is no TOML, a
// *value.Error for text that is not UTF-8, or a *schema.Errors with every
// invalid value.
func ParseConfig(data []byte) (Config, schema.Report, error) {
	doc, _, err := decodeDocument(data)
	if err != nil {
		return Config{}, schema.Report{}, err
	}
	return schema.Validate[Config](doc, decodeConfig)
}

// decodeDocument reads what a task.toml says, and on which lines.
func decodeDocument(data []byte) (*value.Object, toml.Lines, error) {
	text, err := value.ReadText(data)
	if err != nil {
		return nil, toml.Lines{}, err
	}
	return toml.DecodeLines(text)
}

func decodeConfig(c *schema.Cursor, v value.Value) (Config, bool) {
	return schema.Before(renameVersion, schema.Model("TaskConfig", configFields))(c, v)
}

// renameVersion takes the legacy key version for schema_version.
func renameVersion(_ *schema.Cursor, v value.Value) (value.Value, error) {
	obj, ok := v.(*value.Object)
	if !ok {
		return v, nil
	}
	version, ok := obj.Get("version")
	if !ok {
		return v, nil
	}
	out := without(obj, "version")
	if !obj.Has("schema_version") {
		out.Set("schema_version", version)
	}
	return out, nil
}

// without returns a copy of a table that lacks a key.
func without(obj *value.Object, key string) *value.Object {
	out := value.NewObject(obj.Len())
	for k, v := range obj.All() {
		if k != key {
			out.Set(k, v)
		}
	}
	return out
}

func configFields(f *schema.Fields) Config {
	return Config{
		SchemaVersion:           schema.Default(f, "schema_version", SchemaVersion, schema.Str),
		Task:                    schema.Optional(f, "task", schema.Model("PackageInfo", packageFields)),
		Metadata:                schema.Default(f, "metadata", &value.Object{}, schema.Object),
		Verifier:                schema.Nested(f, "verifier", decodeVerifier),
		Agent:                   schema.Nested(f, "agent", decodeAgent),
		Environment:             schema.Nested(f, "environment", decodeEnvironment),
		Solution:                schema.Nested(f, "solution", schema.Model("SolutionConfig", solutionFields)),
		Source:                  schema.Optional(f, "source", schema.Str),
		MultiStepRewardStrategy: enumOrEmpty(f, "multi_step_reward_strategy", meanReward, finalReward),
		Steps:                   schema.OptionalList(f, "steps", schema.List(schema.Model("StepConfig", stepFields))),
		Artifacts:               schema.Default(f, "artifacts", []Artifact{}, schema.List(DecodeArtifact)),
	}
}

func enumOrEmpty[T ~string](f *schema.Fields, key string, words ...T) T {
	if word := schema.Optional(f, key, schema.Enum(words...)); word != nil {
		return *word
	}
	return ""
}

func packageFields(f *schema.Fields) PackageInfo {
	return PackageInfo{
		Name:        schema.Required(f, "name", schema.After(schema.Str, checkPackageName)),
		Description: schema.Default(f, "description", "", schema.Str),
		Authors:     schema.Default(f, "authors", []Author{}, schema.List(schema.Model("Author", authorFields))),
		Keywords:    schema.Default(f, "keywords", []string{}, schema.List(schema.Str)),
	}
}

// packageName tolerates one line end behind the name, as Harbor does.
var packageName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*\n?\z`)

func checkPackageName(name string) (string, error) {
	if !packageName.MatchString(name) || strings.Contains(name, "..") {
		return "", exception.Errorf(exception.ValueError, "Package name must be in 'org/name' format with alphanumeric characters, hyphens, "+
			"underscores, and dots. Cannot start with a dot or contain '..'. Got: %s", name)
	}
	return name, nil
}

func authorFields(f *schema.Fields) Author {
	return Author{
		Name:  schema.Required(f, "name", schema.Str),
		Email: schema.Optional(f, "email", schema.Str),
	}
}

func decodeAgent(c *schema.Cursor, v value.Value) (Agent, bool) {
	return schema.After(schema.Model("AgentConfig", agentFields), func(a Agent) (Agent, error) {
		return a, a.Network.check()
	})(c, v)
}

func agentFields(f *schema.Fields) Agent {
	return Agent{
		Network:    networkOverride(f),
		TimeoutSec: schema.Optional(f, "timeout_sec", schema.Float),
		User:       schema.Optional(f, "user", decodeUser),
	}
}

func decodeUser(c *schema.Cursor, v value.Value) (User, bool) {
	return schema.Union(
		schema.As("str", schema.Str, func(name string) User { return User{Name: name} }),
		schema.As("int", schema.Int, func(id value.Int) User { return User{ID: &id} }),
	)(c, v)
}

func decodeVerifier(c *schema.Cursor, v value.Value) (Verifier, bool) {
	return schema.After(schema.Model("VerifierConfig", verifierFields), checkVerifier)(c, v)
}

func verifierFields(f *schema.Fields) Verifier {
	return Verifier{
		Network:         networkOverride(f),
		TimeoutSec:      schema.Default(f, "timeout_sec", DefaultTimeoutSec, schema.Float),
		Env:             schema.Default(f, "env", Env{}, schema.Dict(schema.Str)),
		User:            schema.Optional(f, "user", decodeUser),
		EnvironmentMode: enumOrEmpty(f, "environment_mode", Shared, Separate),
		Environment:     schema.Optional(f, "environment", decodeEnvironment),
	}
}

var errSharedEnvironment = exception.Errorf(exception.ValueError, "[verifier].environment_mode='shared' is incompatible with [verifier.environment]; "+
	"either omit the environment or set environment_mode='separate'.")

func checkVerifier(v Verifier) (Verifier, error) {
	if err := v.Network.check(); err != nil {
		return v, err
	}
	if v.EnvironmentMode == Shared && v.Environment != nil {
		return v, errSharedEnvironment
	}
	return v, nil
}

func solutionFields(f *schema.Fields) Solution {
	return Solution{Env: schema.Default(f, "env", Env{}, schema.Dict(schema.Str))}
}

func stepFields(f *schema.Fields) Step {
	return Step{
		Name:        schema.Required(f, "name", schema.Str),
		Agent:       schema.Nested(f, "agent", decodeAgent),
		Verifier:    schema.Nested(f, "verifier", decodeVerifier),
		MinReward:   schema.Optional(f, "min_reward", decodeMinReward),
		Healthcheck: schema.Optional(f, "healthcheck", schema.Model("HealthcheckConfig", healthcheckFields)),
		Artifacts:   schema.Default(f, "artifacts", []Artifact{}, schema.List(DecodeArtifact)),
	}
}

func decodeMinReward(c *schema.Cursor, v value.Value) (MinReward, bool) {
	return schema.Union(
		schema.As("float", schema.Float, func(x float64) MinReward { return MinReward{Number: x} }),
		schema.As("dict[str,float]", schema.Dict(schema.Float), func(m schema.Map[float64]) MinReward { return MinReward{ByKey: &m} }),
	)(c, v)
}

func healthcheckFields(f *schema.Fields) Healthcheck {
	return Healthcheck{
		Command:          schema.Required(f, "command", schema.Str),
		IntervalSec:      schema.Default(f, "interval_sec", 5, schema.Float),
		TimeoutSec:       schema.Default(f, "timeout_sec", 30, schema.Float),
		StartPeriodSec:   schema.Default(f, "start_period_sec", 0, schema.Float),
		StartIntervalSec: schema.Default(f, "start_interval_sec", 5, schema.Float),
		Retries:          schema.Default(f, "retries", 3, schema.SmallInt),
	}
}

// DecodeArtifact validates an artifact: a bare path or a table.
func DecodeArtifact(c *schema.Cursor, v value.Value) (Artifact, bool) {
	return schema.Union(
		schema.As("str", schema.Str, func(s string) Artifact { return Artifact{Bare: true, Source: s, Exclude: []string{}} }),
		schema.As("ArtifactConfig", schema.Model("ArtifactConfig", artifactFields), func(a Artifact) Artifact { return a }),
	)(c, v)
}

func artifactFields(f *schema.Fields) Artifact {
	return Artifact{
		Source:      schema.Required(f, "source", schema.Str),
		Destination: schema.Optional(f, "destination", schema.Str),
		Exclude:     schema.Default(f, "exclude", []string{}, schema.List(schema.Str)),
	}
}
