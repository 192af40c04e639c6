package jobdir

import "github.com/proctor-run/proctor/exception"

// Class is the outcome of a trial.
type Class string

// The classes. Every planned trial is in one of them.
const (
	ClassScored               Class = "scored"                 // a reward and no exception, also of a step
	ClassErroredWithReward    Class = "errored_with_reward"    // both
	ClassErroredWithoutReward Class = "errored_without_reward" // an exception alone
	ClassUnscored             Class = "unscored"               // neither: not verified, or the rewards are null
	ClassCancelled            Class = "cancelled"              // ended by an interrupt
	ClassPending              Class = "pending"                // has no result
)

// Classes lists all of them, in the order in which they are shown.
func Classes() []Class {
	return []Class{ClassScored, ClassErroredWithReward, ClassErroredWithoutReward, ClassUnscored, ClassCancelled, ClassPending}
}

// Class is the outcome of the trial.
func (r *Record) Class() Class {
	switch {
	case r.ExceptionType == exception.CancelledError:
		return ClassCancelled
	case r.Exception() != "" && r.Rewards != nil:
		return ClassErroredWithReward
	case r.Exception() != "":
		return ClassErroredWithoutReward
	case r.Rewards == nil:
		return ClassUnscored
	}
	return ClassScored
}
