package ownrunner

import (
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/outcome"
)

// Failure is the exception with which a trial ended, as Harbor's results record it.
type Failure struct {
	Type, Message string
	// Unstarted: the trial's sandbox was not ready for its agent yet.
	Unstarted bool
}

// Reason is the failure's reason code (outcome mapping, sections 8, 11.2 and 13.3). The
// time of an agent's set-up is the agent's; a sandbox that cannot be had is the
// infrastructure's, and its engine's if nothing answers there.
func (f Failure) Reason() outcome.Code {
	if f.Type == exception.AgentSetupTimeoutError {
		return outcome.AgentTimeout
	}
	code := outcome.ReasonOfException(f.Type)
	if code != outcome.TrialFailed || !f.Unstarted {
		return code
	}
	if outcome.NormalizeReason(f.Message) == outcome.BrokerConnectionFailed {
		return outcome.BrokerConnectionFailed
	}
	return outcome.GenericFailed
}

// Text is the error text of the trial (outcome mapping, sections 11.2 and 11.3). It has
// to be redacted by whoever knows the secrets.
func (f Failure) Text() string {
	switch code := f.Reason(); code {
	case "":
		return ""
	case outcome.VerifierTimeout, outcome.RewardMissing, outcome.RewardEmpty, outcome.RewardParseError:
		return "verifier failed: " + string(code)
	case outcome.AgentTimeout, outcome.SubmissionCodeFailed, outcome.EnvironmentStartTimeout:
		return f.Message
	}
	return "trial crashed: " + f.Type + ": " + f.Message
}
