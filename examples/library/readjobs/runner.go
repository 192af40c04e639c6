package readjobs

import (
	"io/fs"

	"github.com/proctor-run/proctor/outcome"
	"github.com/proctor-run/proctor/ownrunner"
)

// Finalize decides the outcome of one attempt at a task, as a scheduler of such
// attempts does: job is the directory that the attempt wrote, run what its
// process said.
func Finalize(job fs.FS, task string, number, expected int, run outcome.Run) (outcome.Finalized, error) {
	host, err := run.Normalize()
	if err != nil {
		return outcome.Finalized{}, err
	}
	trials, err := outcome.ReadTrials(job, task)
	if err != nil {
		return outcome.Finalized{}, err
	}
	return outcome.Attempt{Task: task, Trials: trials, Host: host, Number: number, Expected: &expected}.Finalize()
}

// Kept scores a job over those of its tasks that a policy keeps.
func Kept(scores []float64, policy outcome.KeepPolicy) (outcome.JobScore, error) {
	return outcome.Keep{Policy: policy}.Of(scores)
}

// Final reports whether an attempt stands as it is, and in which state.
func Final(f outcome.Finalized) (outcome.AttemptStatus, bool) { return f.Status, f.Final }

// Trial reads what one trial of an attempt wrote.
func Trial(job fs.FS, task, name string) (outcome.TrialRecord, error) {
	data, err := fs.ReadFile(job, "trials/"+name+"/result.json")
	if err != nil {
		return outcome.TrialRecord{}, err
	}
	return outcome.ReadTrial(data, task, name), nil
}

// Plan lists the trials of a runner of one's own in order, and the lock that its
// job directory has.
func Plan(tasks []string, attempts int, agent string) (names []string, lock []byte) {
	for _, p := range ownrunner.PlanTrials(tasks, attempts) {
		names = append(names, p.TrialName)
	}
	return names, ownrunner.Lock{AgentName: agent, Attempts: attempts}.JSON()
}
