// Package outcome classifies how jobs, runs and attempts ended, as consumers of
// Harbor results do: with a status, a score, how many trials were resolved of
// how many, and a reason code.
//
// Begin with [Of], which makes an [Outcome] of the content of a job's
// result.json, and [Outcome.Line], the line by which a producer hands it on.
// [Explain] also says where each number came from. On the other side of the
// pipe, [Run.Normalize] finds the line in captured output and decides what
// counts; [Attempt.Finalize] joins it with the records of single trials.
//
// Reasons are [Code] values. Errors get theirs by type, see [ReasonOf]; text is
// only ever read by [NormalizeReason], because consumers feed it text.
//
// [Aggregation] makes one score of the attempts at a task, [Keep] one of the
// tasks of a job.
//
// Everything is pure, and no input makes it panic. Arithmetic and text follow
// CPython 3.12. The rules are those of the outcome mapping, sections 2 to 10.
package outcome
