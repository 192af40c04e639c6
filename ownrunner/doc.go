// Package ownrunner holds what the consumer of the result line expects of a
// runner of its own: the files of a job directory that its reader understands,
// the order and names of trials, and the posture of containers.
//
// Begin with [PlanTrials] and [Trial]: Harbor's trial results say nothing to that
// reader, so a runner that has to feed it writes [Trial.ResultJSON] to
// trials/<name>/result.json. [Summary] is the job's result for the line.
//
// [ReadRecords] and [Evidence.Judge] are the consumer's side: what an attempt comes
// to. [Manifest] pins what tasks hold.
//
// [Container.RunArgs], [ExposedSockets], [EngineAddress], [AgentEnv], [Redact] and
// [Concurrency] are the rules of isolation and sizing, as plain functions: this
// package starts nothing, and reads nothing but the tasks of [TaskDigest] and the
// records of [ReadRecords].
//
// The rules are those of the outcome mapping, sections 11, 13, 14 and 15.4.
package ownrunner
