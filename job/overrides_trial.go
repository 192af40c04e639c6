package job

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
)

// TrialOverrides are the settings of a command line for a single trial. Of the
// embedded ones those count that a trial has.
type TrialOverrides struct {
	Overrides
	AgentTimeoutSec, AgentSetupTimeoutSec, VerifierTimeoutSec *float64
	TrialsDir                                                 *string
}

// ErrNoTrialTask is the error of a command line that names no task.
const ErrNoTrialTask jobdir.RuleError = "Either --path or --config must be provided"

// Apply changes a trial's configuration (Harbor job format, section 7.2). The
// agent's settings go to the one agent there is, which is not replaced as a
// whole. All problems are reported at once.
func (o TrialOverrides) Apply(c *jobdir.TrialConfig) error {
	if o.Path != nil {
		c.Task = jobdir.TaskConfig{Path: new(schema.CleanPath(*o.Path)), GitURL: o.GitURL, GitCommitID: o.GitCommit}
	}
	if o.TrialsDir != nil {
		c.TrialsDir = schema.CleanPath(*o.TrialsDir)
	}
	set(&c.TimeoutMultiplier, o.TimeoutMultiplier)
	setPtr(&c.AgentTimeoutMultiplier, o.AgentTimeoutMultiplier)
	setPtr(&c.VerifierTimeoutMultiplier, o.VerifierTimeoutMultiplier)
	setPtr(&c.AgentSetupTimeoutMultiplier, o.AgentSetupTimeoutMultiplier)
	setPtr(&c.EnvironmentBuildTimeoutMultiplier, o.EnvironmentBuildTimeoutMultiplier)
	setPtr(&c.Agent.OverrideTimeoutSec, o.AgentTimeoutSec)
	setPtr(&c.Agent.OverrideSetupTimeoutSec, o.AgentSetupTimeoutSec)
	setPtr(&c.Verifier.OverrideTimeoutSec, o.VerifierTimeoutSec)
	return errors.Join(o.applyTask(), o.applyAgent(&c.Agent), o.applyEnvironment(&c.Environment), o.applyVerifier(&c.Verifier))
}

func (o TrialOverrides) applyTask() error {
	switch {
	case (o.GitURL != nil || o.GitCommit != nil) && o.Path == nil:
		return errGitWithoutPath
	case o.GitCommit != nil && o.GitURL == nil:
		return jobdir.ErrCommitWithoutURL
	}
	return nil
}

func (o TrialOverrides) applyAgent(a *jobdir.AgentConfig) error {
	switch {
	case o.AgentImportPath != nil:
		a.Name, a.ImportPath = nil, o.AgentImportPath
	case o.Agent != nil:
		a.Name, a.ImportPath = o.Agent, nil
	}
	var models error
	if n := len(o.Models); n > 0 {
		a.ModelName = &o.Models[0]
		if n > 1 {
			models = fmt.Errorf("a trial has one model, %d are given", n)
		}
	}
	return errors.Join(models, o.configureAgent(a))
}

// ParseTrialConfig reads the configuration of a single trial. The error for an
// invalid document is a *schema.Errors holding every problem; keys that nothing
// asks for are in the report.
func ParseTrialConfig(data []byte, format jobdir.Format) (jobdir.TrialConfig, schema.Report, error) {
	v, err := jobdir.DecodeDocument(data, format)
	if err != nil {
		return jobdir.TrialConfig{}, schema.Report{}, fmt.Errorf("reading trial config: %w", err)
	}
	return schema.Validate(v, jobdir.DecodeTrialConfig)
}
