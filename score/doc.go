// Package score makes numbers of the records of a job's trials, and runs
// nothing.
//
// [Aggregate] gives Harbor's metrics and counts bit for bit; while a job runs,
// [Live] keeps them up to date at a cost per event that does not grow with the
// job. [Rescore] aggregates a job directory again from its trials and
// [Rescored.Check] compares that with the stored result; [Compare] sets two
// jobs against each other. [NewStatistics] says beside Harbor's numbers on how
// many trials they rest and how much they could differ by chance.
//
// The rules are those of the reward semantics, sections 5 to 8, and of the
// Harbor job format, section 5.
package score
