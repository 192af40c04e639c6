package outcome

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/proctor-run/proctor/value"
)

// Run is a finished benchmark process as its consumer captured it.
type Run struct {
	Stdout   string
	ExitCode int
	TimedOut bool
}

// Normalized is what a consumer makes of a [Run].
type Normalized struct {
	Status Status
	Score  float64 // within 0 to 1, and 0 unless Status is Completed
	Reason Code    // "" is null; a code or any normalised text
	// Payload is the object on the result line even where it does not count,
	// and empty where there is none.
	Payload *value.Object
}

// Normalize decides what counts of a run (outcome mapping, section 5.3). The
// result line may claim what it likes: a process that failed, a score outside
// of 0 to 1 or a failure with a score come to nothing.
//
// The error is the Python exception of the few inputs on which the reference
// gives up: an int of too many digits, deep nesting, an int score beyond the
// range of doubles. The value beside it is that of a malformed line.
func (r Run) Normalize() (Normalized, error) {
	payload, problem, err := FindLine(r.Stdout)
	if err != nil {
		return Normalized{Status: Failed, Reason: ResultMalformed, Payload: payload}, err
	}
	n := Normalized{Status: Failed, Payload: payload}
	claimed := claimedReason(payload)
	switch {
	case r.TimedOut:
		n.Status, n.Reason = TimedOut, reasonTimedOut
	case r.ExitCode != 0 && claimed != "":
		n.Reason = claimed
	case r.ExitCode != 0:
		n.Reason = NonzeroExit
	case problem != "":
		n.Reason = problem
	default:
		err = n.judge(claimed)
	}
	return n, err
}

// judge applies the rules to the payload of a process that succeeded.
func (n *Normalized) judge(claimed Code) error {
	v, _ := n.Payload.Get("status")
	text, isText := v.(value.Str)
	v, hasScore := n.Payload.Get("score")
	if !isText || !hasScore {
		n.Reason = ResultPartial
		return nil
	}
	n.Reason = ResultInvalid
	status := Status(text)
	x, isNumber := number(v)
	if status != Completed && status != Failed || !isNumber {
		return nil
	}
	score, err := value.ToFloat(x)
	if err != nil {
		n.Reason = ResultMalformed
		return err
	}
	inRange := score >= 0 && score <= 1
	if !inRange || status == Failed && score > 0 {
		return nil
	}
	n.Status, n.Reason = status, claimed
	if status == Completed {
		n.Score = score
	}
	return nil
}

// claimedReason is the reason of a payload; only text that is not empty counts.
func claimedReason(payload *value.Object) Code {
	v, _ := payload.Get("reason_code")
	text, _ := v.(value.Str)
	return NormalizeReason(string(text))
}

// FindLine returns the object on the last result line of captured output. If
// there is none, or no object on it, the object is empty and a code says so;
// earlier lines are not tried. The error is the exception of Python's JSON
// decoder that is not one of malformed text. (Outcome mapping, section 5.1.)
func FindLine(stdout string) (payload *value.Object, problem Code, err error) {
	payload = &value.Object{}
	text, found := lastLine(stdout)
	if !found {
		return payload, ResultMissing, nil
	}
	v, err := value.DecodeText(text)
	if errors.Is(err, value.JSONDecodeError) {
		return payload, ResultMalformed, nil
	}
	if err != nil {
		return payload, ResultMalformed, err
	}
	if obj, ok := v.(*value.Object); ok {
		return obj, "", nil
	}
	return payload, ResultMalformed, nil
}

// lastLine returns what follows the prefix on the last line that starts with it.
func lastLine(s string) (text string, found bool) {
	for s != "" {
		end := strings.LastIndexFunc(s, isLineEnd)
		if end < 0 {
			return strings.CutPrefix(s, Prefix)
		}
		_, size := utf8.DecodeRuneInString(s[end:])
		if text, found := strings.CutPrefix(s[end+size:], Prefix); found {
			return text, true
		}
		s = s[:end]
	}
	return "", false
}

// AnnotateStderr returns the stderr that a consumer stores for a task, with the
// reason, if there is one, on a last line of its own (outcome mapping, section
// 5.3).
func AnnotateStderr(stderr string, reason Code) string {
	if reason == "" {
		return stderr
	}
	line := "agent_challenge_reason_code=" + string(reason)
	if stderr == "" {
		return line
	}
	return strings.TrimRightFunc(stderr, value.IsSpace) + "\n" + line
}
