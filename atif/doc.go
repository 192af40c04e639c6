// Package atif reads, checks and writes trajectories in ATIF, the Agent Trajectory
// Interchange Format of Harbor, versions 1.0 to 1.7: what an agent was told, said,
// did and saw, step by step, with tokens and cost.
//
// [Parse] reads a file with the coercions of the reference (pydantic 2.13) and
// reports every broken rule as the reference's validator does, in its words.
// [Trajectory.Append] writes one byte for byte as the agents of the reference do.
// Package jobdir/traces turns them into conversations for training.
//
// # Absent members
//
// Whatever may be absent is a nil pointer, a nil list or a nil object; null in a
// file is the same as absent and is not written. An empty list is not absent.
//
// # Invariants
//
// The package does no input or output and holds no state. Every [Trajectory] that
// Parse or Decode returns satisfies all rules, and parsing what was written gives
// the same trajectory again. No input makes it panic.
//
// The rules are those of Harbor's agents and trajectories, sections 6 and 7.
package atif
