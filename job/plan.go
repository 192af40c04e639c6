package job

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/proctor-run/proctor/internal/schema"
	"github.com/proctor-run/proctor/trial"
)

// ErrNoTasks is the error of a job that has nothing to do.
const ErrNoTasks trial.RuleError = "Either datasets or tasks must be provided."

// Alphabet of the random part of trial names, and its length: digits and
// letters without those that are easily mixed up.
const (
	nameAlphabet  = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	suffixLength  = 7
	maxNamePrefix = 32
)

// Task is a task that a job has resolved its configuration to.
type Task struct {
	Config trial.TaskConfig
	// Name is what filters and trial names call the task. Empty, it comes
	// from the configuration: the package's name, or the last part of the
	// path. Set it to the name of the resolved directory where that differs,
	// as for "." and for links.
	Name string
}

// IDName returns Name or what it defaults to.
func (t Task) IDName() string {
	switch {
	case t.Name != "":
		return t.Name
	case t.Config.Kind() == trial.PackageTask:
		return *t.Config.Name
	case t.Config.Path == nil:
		return ""
	}
	return path.Base(*t.Config.Path)
}

// Plan expands a job into its trials (Harbor job format, section 2.1). tasks
// are the resolved tasks: those of the configuration as given, then those of
// each dataset. The trials come in the order in which they start: attempt
// outermost, then task, then agent.
//
// random returns a number in [0, n); it makes the ends of trial names.
// Use rand.IntN of math/rand/v2 or a generator with a seed.
func Plan(c Config, id uuid.UUID, tasks []Task, random func(n int) int) ([]trial.Config, error) {
	if len(tasks) == 0 {
		return nil, ErrNoTasks
	}
	dir := c.Dir()
	planned := make([]trial.Config, 0, max(c.NAttempts, 0)*len(tasks)*len(c.Agents))
	for range c.NAttempts {
		for _, task := range tasks {
			for _, agent := range c.Agents {
				planned = append(planned, trial.Config{
					Task:                              task.Config,
					TrialName:                         TrialName(task.IDName(), random),
					TrialsDir:                         dir,
					TimeoutMultiplier:                 c.TimeoutMultiplier,
					AgentTimeoutMultiplier:            c.AgentTimeoutMultiplier,
					VerifierTimeoutMultiplier:         c.VerifierTimeoutMultiplier,
					AgentSetupTimeoutMultiplier:       c.AgentSetupTimeoutMultiplier,
					EnvironmentBuildTimeoutMultiplier: c.EnvironmentBuildTimeoutMultiplier,
					Agent:                             agent,
					Environment:                       c.Environment,
					Verifier:                          c.Verifier,
					Artifacts:                         c.Artifacts,
					ExtraInstructionPaths:             c.ExtraInstructionPaths,
					JobID:                             &id,
				})
			}
		}
	}
	return planned, nil
}

// Dir is the directory of the job, normalised.
func (c Config) Dir() string { return joinPath(c.JobsDir, c.JobName) }

// joinPath joins as pathlib does: an absolute second part replaces the first.
func joinPath(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return schema.CleanPath(name)
	}
	return schema.CleanPath(dir + "/" + name)
}

// TrialName makes a trial's name from its task's ([Task.IDName]): of its last
// part up to 32 characters without trailing "_" and "-", "__", and seven random
// characters.
func TrialName(taskName string, random func(n int) int) string {
	var b strings.Builder
	b.WriteString(NamePrefix(taskName))
	b.WriteString("__")
	for range suffixLength {
		b.WriteByte(nameAlphabet[random(len(nameAlphabet))])
	}
	return b.String()
}

// NamePrefix is the part of trial names that comes from the task's name.
func NamePrefix(taskName string) string {
	name := taskName[strings.LastIndexByte(taskName, '/')+1:]
	for i, n := 0, 0; i < len(name); n++ {
		if n == maxNamePrefix {
			name = name[:i]
			break
		}
		_, size := utf8.DecodeRuneInString(name[i:])
		i += size
	}
	return strings.TrimRight(name, "_-")
}

// CheckRunnable reports what a job cannot run with although its configuration
// is valid as a document.
func (c Config) CheckRunnable() error {
	var errs []error
	if c.JobName == "" || c.JobName == "." || !filepath.IsLocal(c.JobName) {
		errs = append(errs, fmt.Errorf("job_name is %q, want a name for a directory below the jobs directory", c.JobName))
	}
	if c.NAttempts < 1 {
		errs = append(errs, fmt.Errorf("n_attempts is %d, want at least 1", c.NAttempts))
	}
	errs = append(errs, c.CheckNoPython(), trial.Config{
		TimeoutMultiplier: c.TimeoutMultiplier, AgentTimeoutMultiplier: c.AgentTimeoutMultiplier,
		VerifierTimeoutMultiplier: c.VerifierTimeoutMultiplier, AgentSetupTimeoutMultiplier: c.AgentSetupTimeoutMultiplier,
		EnvironmentBuildTimeoutMultiplier: c.EnvironmentBuildTimeoutMultiplier,
	}.CheckRunnable())
	if c.NConcurrentTrials < 1 {
		errs = append(errs, fmt.Errorf("n_concurrent_trials is %d, want at least 1", c.NConcurrentTrials))
	}
	if c.Retry.MaxRetries < 0 {
		errs = append(errs, fmt.Errorf("retry.max_retries is %d, want at least 0", c.Retry.MaxRetries))
	}
	return errors.Join(errs...)
}

// CheckNoPython reports the Python code of verifiers and plugins that the
// configuration names: without it the results would be of another verifier.
func (c Config) CheckNoPython() error {
	errs := []error{c.Verifier.CheckNoPython()}
	if len(c.Plugins) > 0 {
		errs = append(errs, fmt.Errorf("plugins names Python code, which proctor cannot run: %q", c.Plugins[0].ImportPath))
	}
	return errors.Join(errs...)
}
