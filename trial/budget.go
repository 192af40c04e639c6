package trial

import (
	"errors"

	"github.com/proctor-run/proctor/llm"
)

// metered opens models whose calls are counted; nil where there are none.
func (a *attempt) metered() llm.Opener {
	if a.r.Models == nil {
		return nil
	}
	return a.meter.Wrap(a.r.Models)
}

// orNotBegun makes the error of an agent that another meter than the trial's own has left
// not a single call one of a trial that was cancelled: there is no work to be judged, and
// the trial runs again when its job is resumed.
func (a *attempt) orNotBegun(err error) error {
	refused, ok := errors.AsType[*llm.BudgetError](err)
	if ok && refused.Of != llm.OfTrial && a.meter.Spent().Calls == 0 {
		return errCancelled
	}
	return err
}
