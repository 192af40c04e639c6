package outcome

import (
	"strings"

	"github.com/proctor-run/proctor/value"
)

// NormalizeReason makes a reason code of text: one of the set where the text is,
// or names, or describes one, else the text itself in lower case with
// underscores. Blank text gives "". (Outcome mapping, section 6.4.)
//
// It is for text that comes from elsewhere. Do not feed it the messages of
// errors at hand: their types say more, see [ReasonOf]; "No reward file found"
// for example is no text that it knows.
func NormalizeReason(text string) Code {
	s := value.Strip(text)
	if s == "" {
		return ""
	}
	low := lower(s)
	if Code(low).classified() {
		return Code(low)
	}
	under := strings.Join(strings.FieldsFunc(strings.ReplaceAll(low, "-", "_"), value.IsSpace), "_")
	if Code(under).classified() {
		return Code(under)
	}
	compact := strings.Map(func(r rune) rune {
		if isAlnum(r) {
			return r
		}
		return -1
	}, low)
	if code := alias(compact); code != "" {
		return code
	}
	if code := alias(under); code != "" {
		return code
	}
	if code := describedBy(low, compact); code != "" {
		return code
	}
	if under == "" {
		return Code(low)
	}
	return Code(under)
}

// alias knows the names of exceptions.
func alias(name string) Code {
	switch name {
	case "agent_timeout_error", "agenttimeouterror":
		return AgentTimeout
	case "cancelled_error", "cancellederror":
		return CancelledError
	case "environment_start_timeout_error", "environmentstarttimeouterror":
		return EnvironmentStartTimeout
	case "verifier_timeout_error", "verifiertimeouterror":
		return VerifierTimeout
	case "submission_code_failure":
		return SubmissionCodeFailed
	}
	return ""
}

// describedBy looks for words anywhere in the text; the first rule that applies
// wins.
func describedBy(low, compact string) Code {
	if code := namedIn(low, compact); code != "" {
		return code
	}
	return impliedBy(low)
}

// namedIn looks for the names of exceptions and for lost connections.
func namedIn(low, compact string) Code {
	has := func(word string) bool { return strings.Contains(low, word) }
	names := func(word string) bool { return strings.Contains(compact, word) }
	switch {
	case names("cancellederror"), names("cancelederror"):
		return CancelledError
	case names("environmentstarttimeouterror"):
		return EnvironmentStartTimeout
	case names("agenttimeouterror"):
		return AgentTimeout
	case names("verifiertimeouterror"):
		return VerifierTimeout
	case has("broker") && has("connection"), has("connection refused"), has("connection reset"):
		return BrokerConnectionFailed
	}
	return ""
}

// impliedBy looks for words that only mean something together.
func impliedBy(low string) Code {
	has := func(word string) bool { return strings.Contains(low, word) }
	switch {
	case has("reward") && has("missing"):
		return RewardMissing
	case has("reward") && has("empty"):
		return RewardEmpty
	case has("reward") && (has("parse") || has("malformed")):
		return RewardParseError
	case has("submission") && (has("code") || has("runtime")):
		return SubmissionCodeFailed
	}
	return ""
}
