package outcome

import "github.com/proctor-run/proctor/value"

// Code is a reason code: why a job, run or attempt did not complete. "" is
// null. Text that no rule knows may be a code too, see normalizeReason; it
// then belongs to no group.
type Code string

// The reason codes (outcome mapping, section 6.1). Consumers match on them.
const (
	// Worth another attempt.
	brokerConnectionFailed  Code = "harbor_broker_connection_failed"        // container broker unreachable
	cancelledError          Code = "harbor_cancelled_error"                 // trial cancelled
	environmentStartTimeout Code = "harbor_environment_start_timeout_error" // environment start, image pull or build timed out

	// Final.
	agentTimeout         Code = "harbor_agent_timeout_error"    // agent's wall clock, or the whole trial's backstop
	nonzeroExit          Code = "harbor_nonzero_exit"           // exit status without a usable reason
	ResultInvalid        Code = "harbor_result_invalid"         // summary fields out of contract
	resultMalformed      Code = "harbor_result_malformed"       // result file or line unparsable
	ResultMissing        Code = "harbor_result_missing"         // result file or line absent
	resultPartial        Code = "harbor_result_partial"         // status or score absent, or another number of trials than planned
	rewardEmpty          Code = "harbor_reward_empty"           // reward file of zero bytes
	rewardMissing        Code = "harbor_reward_missing"         // no reward file
	rewardParseError     Code = "harbor_reward_parse_error"     // reward file unparsable
	submissionCodeFailed Code = "harbor_submission_code_failed" // agent cannot be imported or constructed
	trialFailed          Code = "harbor_trial_failed"           // agent crashed, trial crashed, or nothing more is known
	trialResultMalformed Code = "harbor_trial_result_malformed" // result of a trial unreadable or not an object
	trialResultMissing   Code = "harbor_trial_result_missing"   // result of a trial absent
	verifierTimeout      Code = "harbor_verifier_timeout_error" // verifier phase overran

	// Infrastructure of the consumer; worth another attempt.
	brokerRefMissing Code = "terminal_bench_broker_ref_missing" // attempt has no execution reference
	jobDirMissing    Code = "terminal_bench_job_dir_missing"    // attempt's job directory vanished
	leaseExpired     Code = "terminal_bench_lease_expired"      // worker's lease expired

	// Sentinels. AgentHydrateFailed is final as well.
	agentHydrateFailed   Code = "agent_hydrate_failed"               // agent's dependencies could not be installed
	attemptNotRunning    Code = "terminal_bench_attempt_not_running" // late result for an attempt that no longer runs
	genericFailed        Code = "terminal_bench_failed"              // fallback; image build or run failure
	attestationFailed    Code = "phala_attestation_failed"           // attestation could not be produced
	keyReleaseFailed     Code = "phala_key_release_failed"           // key service refused or unreachable
	goldenDecryptFailed  Code = "phala_golden_decrypt_failed"        // encrypted tests did not unseal
	reasonTimedOut       Code = "timed_out"                          // a consumer's time limit; outside of the set
	diagnosticsTruncated Code = "diagnostics_truncated"              // only in diagnostics; outside of the set
)

type group uint8

const (
	harborRetryable group = iota + 1
	harborFinal
	infrastructure
	sentinel
)

// groupOf says which group of the set a code is in; 0 is none.
func groupOf(c Code) group {
	switch c {
	case brokerConnectionFailed, cancelledError, environmentStartTimeout:
		return harborRetryable
	case agentTimeout, nonzeroExit, ResultInvalid, resultMalformed, ResultMissing, resultPartial,
		rewardEmpty, rewardMissing, rewardParseError, submissionCodeFailed, trialFailed,
		trialResultMalformed, trialResultMissing, verifierTimeout:
		return harborFinal
	case brokerRefMissing, jobDirMissing, leaseExpired:
		return infrastructure
	case agentHydrateFailed, attemptNotRunning, genericFailed, attestationFailed, keyReleaseFailed, goldenDecryptFailed:
		return sentinel
	}
	return 0
}

// codes returns the whole set, group by group.
func codes() []Code {
	return []Code{
		brokerConnectionFailed, cancelledError, environmentStartTimeout,
		agentTimeout, nonzeroExit, ResultInvalid, resultMalformed, ResultMissing, resultPartial,
		rewardEmpty, rewardMissing, rewardParseError, submissionCodeFailed, trialFailed,
		trialResultMalformed, trialResultMissing, verifierTimeout,
		brokerRefMissing, jobDirMissing, leaseExpired,
		agentHydrateFailed, attemptNotRunning, genericFailed, attestationFailed, keyReleaseFailed, goldenDecryptFailed,
	}
}

// Known reports whether the code is in the set.
func (c Code) Known() bool { return groupOf(c) != 0 }

// Harbor reports whether the code is about Harbor's work.
func (c Code) Harbor() bool { return groupOf(c) == harborRetryable || groupOf(c) == harborFinal }

// Infrastructure reports whether the code is about the consumer's own machines.
func (c Code) Infrastructure() bool { return groupOf(c) == infrastructure }

// Sentinel reports whether the code stands for a state outside of Harbor's work.
func (c Code) Sentinel() bool { return groupOf(c) == sentinel }

// Retryable reports whether consumers hold another attempt to be worth it.
func (c Code) Retryable() bool {
	return groupOf(c) == harborRetryable || groupOf(c) == infrastructure
}

// Final reports whether consumers hold another attempt to be of no use. Some
// codes are neither retryable nor final.
func (c Code) Final() bool { return groupOf(c) == harborFinal || c == agentHydrateFailed }

func (c Code) classified() bool { return c.Retryable() || c.Final() }

// value is the code as JSON has it.
func (c Code) value() value.Value {
	if c == "" {
		return value.Null{}
	}
	return value.Str(c)
}

// remap replaces codes of former versions by those of this one. No code has been
// renamed so far. (Outcome mapping, section 6.2.)
func remap(c Code) Code { return c }

// maxAttempts is how often consumers attempt a task by default.
const maxAttempts = 3

// classify decides, after an attempt that failed for a reason, whether to try
// again. attempt counts from 1; limit is the number of attempts allowed, by
// default maxAttempts. A reason that belongs to neither group is worth
// another attempt. (Outcome mapping, section 6.6.)
func classify(reason string, attempt, limit int) (code Code, retry bool) {
	code = normalizeReason(reason)
	if code == "" {
		code = genericFailed
	}
	return code, attempt < limit && !code.Final()
}
