package jobdir

import (
	"math"
	"slices"
	"time"

	"github.com/proctor-run/proctor/exception"
)

// Decision says what to do after an attempt.
type Decision struct {
	Retry bool
	// Wait is how long to wait before the next attempt.
	Wait time.Duration
	// Reason says in a few words why there is no other attempt, or "".
	Reason string
}

// Reasons not to try again.
const (
	NoException    = "no exception"
	Excluded       = "exception type is excluded from retries"
	NotIncluded    = "exception type is not among those to retry"
	AttemptsUsedUp = "no attempts left"
)

// isAnswer reports whether an exception is an answer of the agent's.
func isAnswer(exceptionType string) bool {
	return exceptionType == exception.RewardTamperedError || exceptionType == exception.BudgetExceededError
}

// Decide applies the retry policy after an attempt (Harbor job format, section
// 4). exceptionType is the type name recorded at trial level, "" if none;
// retries counts the retries of this trial so far. Names match exactly, an
// exclusion wins, and an empty set of inclusions restricts nothing. A reward
// that was tampered with and a budget that is used up are answers of the agent's,
// and get another attempt only when they are named.
//
// The wait is min(MinWaitSec × WaitMultiplier^retries, MaxWaitSec).
func (r RetryConfig) Decide(exceptionType string, retries int) Decision {
	switch {
	case exceptionType == "":
		return Decision{Reason: NoException}
	case slices.Contains(r.ExcludeExceptions, exceptionType):
		return Decision{Reason: Excluded}
	case len(r.IncludeExceptions) > 0 && !slices.Contains(r.IncludeExceptions, exceptionType):
		return Decision{Reason: NotIncluded}
	case isAnswer(exceptionType) && len(r.IncludeExceptions) == 0:
		return Decision{Reason: Excluded}
	case retries >= r.MaxRetries:
		return Decision{Reason: AttemptsUsedUp}
	}
	return Decision{Retry: true, Wait: r.wait(retries)}
}

// wait is the pause before retry number n, counted from 0.
func (r RetryConfig) wait(n int) time.Duration {
	sec := min(r.MinWaitSec*math.Pow(r.WaitMultiplier, float64(n)), r.MaxWaitSec)
	if !(sec > 0) {
		return 0
	}
	if limit := math.MaxInt64 / float64(time.Second); sec >= limit {
		return math.MaxInt64
	}
	return time.Duration(sec * float64(time.Second))
}
