package outcome

import "github.com/proctor-run/proctor/value"

// Code is a reason code: why a job, run or attempt did not complete. "" is
// null. Text that no rule knows may be a code too, see [NormalizeReason]; it
// then belongs to no group.
type Code string

// The reason codes (outcome mapping, section 6.1). Consumers match on them.
const (
	// Worth another attempt.
	BrokerConnectionFailed  Code = "harbor_broker_connection_failed"        // container broker unreachable
	CancelledError          Code = "harbor_cancelled_error"                 // trial cancelled
	EnvironmentStartTimeout Code = "harbor_environment_start_timeout_error" // environment start, image pull or build timed out

	// Final.
	AgentTimeout         Code = "harbor_agent_timeout_error"    // agent's wall clock, or the whole trial's backstop
	NonzeroExit          Code = "harbor_nonzero_exit"           // exit status without a usable reason
	ResultInvalid        Code = "harbor_result_invalid"         // summary fields out of contract
	ResultMalformed      Code = "harbor_result_malformed"       // result file or line unparsable
	ResultMissing        Code = "harbor_result_missing"         // result file or line absent
	ResultPartial        Code = "harbor_result_partial"         // status or score absent, or another number of trials than planned
	RewardEmpty          Code = "harbor_reward_empty"           // reward file of zero bytes
	RewardMissing        Code = "harbor_reward_missing"         // no reward file
	RewardParseError     Code = "harbor_reward_parse_error"     // reward file unparsable
	SubmissionCodeFailed Code = "harbor_submission_code_failed" // agent cannot be imported or constructed
	TrialFailed          Code = "harbor_trial_failed"           // agent crashed, trial crashed, or nothing more is known
	TrialResultMalformed Code = "harbor_trial_result_malformed" // result of a trial unreadable or not an object
	TrialResultMissing   Code = "harbor_trial_result_missing"   // result of a trial absent
	VerifierTimeout      Code = "harbor_verifier_timeout_error" // verifier phase overran

	// Infrastructure of the consumer; worth another attempt.
	BrokerRefMissing Code = "terminal_bench_broker_ref_missing" // attempt has no execution reference
	JobDirMissing    Code = "terminal_bench_job_dir_missing"    // attempt's job directory vanished
	LeaseExpired     Code = "terminal_bench_lease_expired"      // worker's lease expired

	// Sentinels. AgentHydrateFailed is final as well.
	AgentHydrateFailed   Code = "agent_hydrate_failed"               // agent's dependencies could not be installed
	AttemptNotRunning    Code = "terminal_bench_attempt_not_running" // late result for an attempt that no longer runs
	GenericFailed        Code = "terminal_bench_failed"              // fallback; image build or run failure
	AttestationFailed    Code = "phala_attestation_failed"           // attestation could not be produced
	KeyReleaseFailed     Code = "phala_key_release_failed"           // key service refused or unreachable
	GoldenDecryptFailed  Code = "phala_golden_decrypt_failed"        // encrypted tests did not unseal
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
	case BrokerConnectionFailed, CancelledError, EnvironmentStartTimeout:
		return harborRetryable
	case AgentTimeout, NonzeroExit, ResultInvalid, ResultMalformed, ResultMissing, ResultPartial,
		RewardEmpty, RewardMissing, RewardParseError, SubmissionCodeFailed, TrialFailed,
		TrialResultMalformed, TrialResultMissing, VerifierTimeout:
		return harborFinal
	case BrokerRefMissing, JobDirMissing, LeaseExpired:
		return infrastructure
	case AgentHydrateFailed, AttemptNotRunning, GenericFailed, AttestationFailed, KeyReleaseFailed, GoldenDecryptFailed:
		return sentinel
	}
	return 0
}

// Codes returns the whole set, group by group.
func Codes() []Code {
	return []Code{
		BrokerConnectionFailed, CancelledError, EnvironmentStartTimeout,
		AgentTimeout, NonzeroExit, ResultInvalid, ResultMalformed, ResultMissing, ResultPartial,
		RewardEmpty, RewardMissing, RewardParseError, SubmissionCodeFailed, TrialFailed,
		TrialResultMalformed, TrialResultMissing, VerifierTimeout,
		BrokerRefMissing, JobDirMissing, LeaseExpired,
		AgentHydrateFailed, AttemptNotRunning, GenericFailed, AttestationFailed, KeyReleaseFailed, GoldenDecryptFailed,
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
func (c Code) Final() bool { return groupOf(c) == harborFinal || c == AgentHydrateFailed }

func (c Code) classified() bool { return c.Retryable() || c.Final() }

// value is the code as JSON has it.
func (c Code) value() value.Value {
	if c == "" {
		return value.Null{}
	}
	return value.Str(c)
}

// Remap replaces codes of former versions by those of this one. No code has been
// renamed so far. (Outcome mapping, section 6.2.)
func Remap(c Code) Code { return c }

// MaxAttempts is how often consumers attempt a task by default.
const MaxAttempts = 3

// Classify decides, after an attempt that failed for a reason, whether to try
// again. attempt counts from 1; limit is the number of attempts allowed, by
// default [MaxAttempts]. A reason that belongs to neither group is worth
// another attempt. (Outcome mapping, section 6.6.)
func Classify(reason string, attempt, limit int) (code Code, retry bool) {
	code = NormalizeReason(reason)
	if code == "" {
		code = GenericFailed
	}
	return code, attempt < limit && !code.Final()
}
