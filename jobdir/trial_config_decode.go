package jobdir

import (
	"fmt"
	"math"
	"strings"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// ParseConfig reads a trial's config.json. The error for an invalid document
// is a *schema.Errors holding every problem; unknown keys are in the report.
func ParseTrialConfig(data []byte) (TrialConfig, schema.Report, error) {
	v, err := value.Decode(data)
	if err != nil {
		return TrialConfig{}, schema.Report{}, fmt.Errorf("reading trial config: %w", err)
	}
	return schema.Validate(v, DecodeTrialConfig)
}

// DecodeConfig validates a trial configuration.
func DecodeTrialConfig(c *schema.Cursor, v value.Value) (TrialConfig, bool) {
	return schema.Model("TrialConfig", trialConfigFields)(c, v)
}

func trialConfigFields(f *schema.Fields) TrialConfig {
	return TrialConfig{
		Task:                              schema.Required(f, "task", decodeTask),
		TrialName:                         schema.Default(f, "trial_name", "", schema.Str),
		TrialsDir:                         schema.Default(f, "trials_dir", "trials", schema.Path),
		TimeoutMultiplier:                 schema.Default(f, "timeout_multiplier", 1, schema.Float),
		AgentTimeoutMultiplier:            schema.Optional(f, "agent_timeout_multiplier", schema.Float),
		VerifierTimeoutMultiplier:         schema.Optional(f, "verifier_timeout_multiplier", schema.Float),
		AgentSetupTimeoutMultiplier:       schema.Optional(f, "agent_setup_timeout_multiplier", schema.Float),
		EnvironmentBuildTimeoutMultiplier: schema.Optional(f, "environment_build_timeout_multiplier", schema.Float),
		Agent:                             schema.Nested(f, "agent", decodeAgent),
		Environment:                       schema.Nested(f, "environment", DecodeEnvironment),
		Verifier:                          schema.Nested(f, "verifier", decodeVerifier),
		Artifacts:                         schema.Default(f, "artifacts", nil, schema.List(harbor.DecodeArtifact)),
		ExtraInstructionPaths:             schema.Default(f, "extra_instruction_paths", nil, schema.List(schema.Path)),
		JobID:                             schema.Optional(f, "job_id", decodeUUID),
	}
}

// decodeTask validates the run side of a task.
func decodeTask(c *schema.Cursor, v value.Value) (TaskConfig, bool) {
	return schema.After(schema.Model("TaskConfig", taskFields), checkTask)(c, v)
}

func taskFields(f *schema.Fields) TaskConfig {
	return TaskConfig{
		Path:        schema.Optional(f, "path", schema.Path),
		GitURL:      schema.Optional(f, "git_url", schema.Str),
		GitCommitID: schema.Optional(f, "git_commit_id", schema.Str),
		Name:        schema.Optional(f, "name", schema.Str),
		Ref:         schema.Optional(f, "ref", schema.Str),
		Overwrite:   schema.Default(f, "overwrite", false, schema.Bool),
		DownloadDir: schema.Optional(f, "download_dir", schema.Path),
		Source:      schema.Optional(f, "source", schema.Str),
	}
}

// RuleError is the violation of a rule, in the words of the format: other
// programs show and match them, so they follow no style of ours.
type RuleError string

// Error returns the words.
func (e RuleError) Error() string { return string(e) }

// The rules between fields of tasks and datasets.
const (
	errNoSource         RuleError = "Either 'path' or 'name' must be set."
	errTwoSources       RuleError = "Cannot set both 'path' and 'name'."
	errRefWithoutName   RuleError = "'ref' requires 'name' to be set."
	ErrCommitWithoutURL RuleError = "'git_commit_id' requires 'git_url' to be set."
)

func checkTask(t TaskConfig) (TaskConfig, error) {
	switch {
	case t.Path == nil && t.Name == nil:
		return t, errNoSource
	case t.Path != nil && t.Name != nil:
		return t, errTwoSources
	case t.Ref != nil && t.Name == nil:
		return t, errRefWithoutName
	case t.GitCommitID != nil && t.GitURL == nil:
		return t, ErrCommitWithoutURL
	}
	return t, nil
}

// decodeAgent validates an agent configuration.
func decodeAgent(c *schema.Cursor, v value.Value) (AgentConfig, bool) {
	return schema.Model("AgentConfig", agentFields)(c, v)
}

func agentFields(f *schema.Fields) AgentConfig {
	a := AgentConfig{
		Name:                    schema.Optional(f, "name", schema.Str),
		ImportPath:              schema.Optional(f, "import_path", schema.Str),
		ModelName:               schema.Optional(f, "model_name", schema.Str),
		Skills:                  schema.Default(f, "skills", nil, schema.List(schema.Path)),
		OverrideTimeoutSec:      schema.Optional(f, "override_timeout_sec", schema.Float),
		OverrideSetupTimeoutSec: schema.Optional(f, "override_setup_timeout_sec", schema.Float),
		MaxTimeoutSec:           schema.Optional(f, "max_timeout_sec", schema.Float),
		ExtraAllowedHosts:       schema.Default(f, "extra_allowed_hosts", nil, harbor.DecodeHosts),
		Kwargs:                  schema.Default(f, "kwargs", nil, schema.Object),
		Env:                     schema.Default(f, "env", Env{}, decodeEnv),
		MCPServers:              schema.Default(f, "mcp_servers", nil, schema.List(harbor.DecodeMCPServer)),
	}
	if a.Name == nil && a.ImportPath == nil {
		a.Name = new(DefaultAgent)
	}
	return a
}

// decodeVerifier validates the run side of verification.
func decodeVerifier(c *schema.Cursor, v value.Value) (VerifierConfig, bool) {
	return schema.Model("VerifierConfig", verifierFields)(c, v)
}

func verifierFields(f *schema.Fields) VerifierConfig {
	return VerifierConfig{
		OverrideTimeoutSec: schema.Optional(f, "override_timeout_sec", schema.Float),
		MaxTimeoutSec:      schema.Optional(f, "max_timeout_sec", schema.Float),
		Env:                schema.Default(f, "env", Env{}, decodeEnv),
		ImportPath:         schema.Optional(f, "import_path", schema.Str),
		Kwargs:             schema.Default(f, "kwargs", nil, schema.Object),
		Disable:            schema.Default(f, "disable", false, schema.Bool),
	}
}

// decodeEnv validates a table of texts.
func decodeEnv(c *schema.Cursor, v value.Value) (Env, bool) {
	m, ok := schema.Dict(schema.Str)(c, v)
	return Env{m}, ok
}

// decodeUUID accepts the spellings of a UUID that Python accepts.
func decodeUUID(c *schema.Cursor, v value.Value) (uuid.UUID, bool) {
	s, ok := v.(value.Str)
	if !ok {
		c.Fail("uuid_type", "UUID input should be a string, bytes or UUID object", v)
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(strings.TrimSpace(string(s)))
	if err != nil {
		c.Fail("uuid_parsing", "Input should be a valid UUID, "+err.Error(), v)
		return uuid.UUID{}, false
	}
	return id, true
}

// decodeTime accepts the spellings of [ParseTime], and numbers as seconds (or
// milliseconds) since 1970.
func decodeTime(c *schema.Cursor, v value.Value) (Time, bool) {
	var t Time
	var err error
	switch v := v.(type) {
	case value.Str:
		t, err = ParseTime(string(v))
	case value.Int:
		x, overflow := v.Float64()
		if overflow != nil {
			x = math.Inf(v.Sign())
		}
		t, err = timeFromUnix(x)
	case value.Float:
		t, err = timeFromUnix(float64(v))
	default:
		c.Fail("datetime_type", "Input should be a valid datetime", v)
		return Time{}, false
	}
	if err != nil {
		c.Fail("datetime_from_date_parsing", "Input should be a valid datetime or date, "+err.Error(), v)
		return Time{}, false
	}
	return t, true
}
