// Package job runs a set of trials with one configuration and one directory,
// and says what came of them.
//
// A job goes from plain value to plain value, so that another scheduler can
// take any part of it:
//
//	[Config] → [Plan] → (run) → trial results → [Aggregate] → [Result]
//
// Reading and writing Harbor's files is byte-exact: [ParseConfig],
// [Config.AppendJSON], [ParseResult], [Result.AppendJSON], [ParseLock],
// [Lock.AppendJSON]. While a job runs, [Live] keeps its result up to date at a
// cost per event that does not grow with the job. Afterwards [Rescore]
// aggregates a directory again from its trials and [Rescored.Check] compares
// that with the stored result; [Compare] sets two jobs against each other.
// These read directories with [Scan], which holds one small [Record] per trial
// and no documents.
package job
