// Package taskpath holds the places inside a Linux environment that the format
// of Harbor tasks fixes and that packages which do not know the format work with.
package taskpath

const (
	// Tests is where the tests of a task are while it is verified.
	Tests = "/tests"
	// Solution is where the solution of a task is while the oracle runs it.
	Solution = "/solution"
	// VerifierLogs is where the verifier writes its rewards and its output.
	VerifierLogs = "/logs/verifier"
)
