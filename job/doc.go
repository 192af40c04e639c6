// Package job runs a set of trials with one configuration and one directory.
//
// [Run] does it all at once. A job goes from plain value to plain value, so that another scheduler can
// take any part of it:
//
//	jobdir.Config → [Prepare] → [Prepared] → [Runner.Run] → records → score.Aggregate → jobdir.Result
//
// [Prepare] finds the tasks, expands the plan ([Plan]) and pins it; it writes
// and runs nothing. [Runner.Run] runs what remains of it and keeps the directory.
// [PrepareResume] resumes a job from its directory alone.
package job
