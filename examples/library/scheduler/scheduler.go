// Package scheduler runs the trials of a job where and when it likes: a job is
// prepared in one place, carried as JSON, and run in another.
package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/agent/builtin"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/trial"
)

// ReadConfig reads a job's configuration as people write it.
func ReadConfig(text []byte, now time.Time) (jobdir.Config, error) {
	cfg, _, err := jobdir.ParseConfig(text, jobdir.YAML, now)
	return cfg, err
}

// Pack prepares a job and makes it a message. What a person should know before
// it runs is returned beside it.
func Pack(cfg jobdir.Config, now time.Time) (message []byte, notes []string, err error) {
	p, err := job.Prepare(cfg, job.PrepareOptions{Now: now})
	if err != nil {
		return nil, nil, err
	}
	for _, v := range p.Variables {
		notes = append(notes, needs(v))
	}
	message, err = json.Marshal(p)
	return message, notes, err
}

func needs(v job.TaskVariable) string {
	return fmt.Sprintf("the %s of %s takes %s from the host", v.Phase, v.Task, v.Name)
}

// Unpack reads the message where the trials run.
func Unpack(message []byte) (*job.Prepared, error) {
	var p job.Prepared
	err := json.Unmarshal(message, &p)
	return &p, err
}

// Run runs one planned trial until it is not to be tried again, and says how
// often it was run.
func Run(ctx context.Context, backend sandbox.Backend, p *job.Prepared, i int) (*jobdir.TrialResult, int, error) {
	runner := trial.Runner{Backend: backend, Agents: builtin.Agents(), TaskDir: p.TaskDir}
	for attempt := 1; ; attempt++ {
		result, err := runner.Run(ctx, p.Trials[i], attempt)
		if err != nil {
			return nil, attempt, err
		}
		if again := next(p.Config.Retry, result, attempt-1); !again.Retry {
			return result, attempt, nil
		}
	}
}

func next(policy jobdir.RetryConfig, r *jobdir.TrialResult, retries int) jobdir.Decision {
	if r.ExceptionInfo == nil {
		return jobdir.Decision{Reason: jobdir.NoException}
	}
	return policy.Decide(r.ExceptionInfo.Type, retries)
}

// Why says in a line why a trial is not run again.
func Why(d jobdir.Decision) string {
	switch d.Reason {
	case jobdir.NoException:
		return "it ended well"
	case jobdir.AttemptsUsedUp:
		return "it has had all its attempts"
	case jobdir.Excluded, jobdir.NotIncluded:
		return "the job does not ask for it"
	}
	return fmt.Sprintf("it is run again after %s", d.Wait)
}

// Patient is a retry policy for machines that come and go.
func Patient(retries int) jobdir.RetryConfig {
	policy := jobdir.NewRetryConfig()
	policy.MaxRetries = retries
	return policy
}

// Names plans a job of tasks that only exist elsewhere, and lists its trials.
func Names(cfg jobdir.Config, tasks []jobdir.Task, random func(n int) int) ([]string, error) {
	planned, err := job.Plan(cfg, uuid.New(), tasks, random)
	names := make([]string, len(planned))
	for i, t := range planned {
		names[i] = t.TrialName
	}
	return names, err
}

// Where says for a person where a task comes from.
func Where(id jobdir.TaskID) string {
	places := map[jobdir.TaskKind]string{
		jobdir.LocalTask: id.Path, jobdir.GitTask: id.GitURL, jobdir.PackageTask: id.Org + "/" + id.Name,
	}
	return places[id.Kind]
}
