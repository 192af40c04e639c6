package trial

import "github.com/proctor-run/proctor/jobdir"

// phase is one thing that a trial does. Errors are noted under its name.
type phase struct {
	name string
	// start is the event when it begins; empty for none.
	start EventKind
	// times keeps when it began and ended; nil for a phase that results do not time.
	times func(results, *jobdir.Timing)
}

// The phases, in the order in which a trial goes through them (Harbor job
// format, section 3.2). The steps of a task repeat those from stepPhase to
// phaseVerification.
var (
	phasePreparation = phase{name: "preparation"}
	phaseEnvironment = phase{
		name: "environment setup", start: EventEnvironmentStart,
		times: func(r results, t *jobdir.Timing) { r.trial.EnvironmentSetup = t },
	}
	phaseHealthcheck = phase{name: "healthcheck"}
	phaseSkills      = phase{name: "uploading skills"}
	phaseAgentSetup  = phase{
		name: "agent setup", start: EventAgentSetupStart,
		times: func(r results, t *jobdir.Timing) { r.trial.AgentSetup = t },
	}
	phaseAgent        = phase{name: "agent execution", start: EventAgentStart, times: results.setAgentTimes}
	phaseVerification = phase{name: "verification", start: EventVerificationStart, times: results.setVerifierTimes}
	phaseCombining    = phase{name: "combining the steps"}
	phaseTeardown     = phase{name: "teardown"}
)

// stepPhase is the beginning of a step.
func stepPhase(name string) phase { return phase{name: "step " + name} }

// results is the destination of timings and outcomes: the result of a trial, or of
// one of its steps.
type results struct {
	trial *jobdir.TrialResult
	step  *jobdir.StepResult // nil for a single-step task
}

func (r results) setAgentTimes(t *jobdir.Timing) {
	if r.step != nil {
		r.step.AgentExecution = t
		return
	}
	r.trial.AgentExecution = t
}

func (r results) setVerifierTimes(t *jobdir.Timing) {
	if r.step != nil {
		r.step.Verifier = t
		return
	}
	r.trial.Verifier = t
}

func (r results) setAgent(res *jobdir.AgentResult) {
	if r.step != nil {
		r.step.AgentResult = res
		return
	}
	r.trial.AgentResult = res
}

func (r results) agentResult() *jobdir.AgentResult {
	if r.step != nil {
		return r.step.AgentResult
	}
	return r.trial.AgentResult
}

func (r results) setVerifier(res *jobdir.VerifierResult) {
	if r.step != nil {
		r.step.VerifierResult = res
		return
	}
	r.trial.VerifierResult = res
}

func (r results) verifier() *jobdir.VerifierResult {
	if r.step != nil {
		return r.step.VerifierResult
	}
	return r.trial.VerifierResult
}
