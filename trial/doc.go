// Package trial runs one trial: one agent, one task, one attempt.
//
// [Runner.Run] takes a jobdir.TrialConfig through its phases (environment
// set-up, agent set-up, agent execution, verification, teardown) and returns
// its outcome as a jobdir.TrialResult; the files of its directory are
// written on the way. Whatever goes wrong with the trial is in the result; an
// error means that proctor itself could not do its work. In every case no
// sandbox is left.
package trial
