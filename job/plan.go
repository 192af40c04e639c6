package job

import (
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/proctor-run/proctor/jobdir"
)

// ErrNoTasks is the error of a job that has nothing to do.
const ErrNoTasks jobdir.RuleError = "Either datasets or tasks must be provided."

// Alphabet of the random part of trial names, and its length: digits and
// letters without those that are easily mixed up.
const (
	nameAlphabet  = "23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	suffixLength  = 7
	maxNamePrefix = 32
)

// Plan expands a job into its trials (Harbor job format, section 2.1). tasks
// are the resolved tasks: those of the configuration as given, then those of
// each dataset. The trials come in the order in which they start: attempt
// outermost, then task, then agent.
//
// random returns a number in [0, n); it makes the ends of trial names.
// Use rand.IntN of math/rand/v2 or a generator with a seed.
func Plan(c jobdir.Config, id uuid.UUID, tasks []jobdir.Task, random func(n int) int) ([]jobdir.TrialConfig, error) {
	if len(tasks) == 0 {
		return nil, ErrNoTasks
	}
	dir := c.Dir()
	planned := make([]jobdir.TrialConfig, 0, max(c.NAttempts, 0)*len(tasks)*len(c.Agents))
	for range c.NAttempts {
		for _, task := range tasks {
			for _, agent := range c.Agents {
				planned = append(planned, jobdir.TrialConfig{
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

// TrialName makes a trial's name from its task's ([jobdir.Task.IDName]): of its last
// part up to 32 characters without trailing "_" and "-", "__", and seven random
// characters.
func TrialName(taskName string, random func(n int) int) string {
	var b strings.Builder
	b.WriteString(namePrefix(taskName))
	b.WriteString("__")
	for range suffixLength {
		b.WriteByte(nameAlphabet[random(len(nameAlphabet))])
	}
	return b.String()
}

// namePrefix is the part of trial names that comes from the task's name.
func namePrefix(taskName string) string {
	name := taskName[strings.LastIndexByte(taskName, '/')+1:]
	return strings.TrimRight(firstRunes(name, maxNamePrefix), "_-")
}

// firstRunes is at most the first n runes of a text.
func firstRunes(text string, n int) string {
	i := 0
	for ; n > 0 && i < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[i:])
		i += size
	}
	return text[:i]
}

// cubeTaskName is what a cube's task is called in names of trials, by its path
// ([trial.CubePath]): of a long id so much is left out that its seed is in them.
func cubeTaskName(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	id, seed, seeded := strings.Cut(name, "@")
	if !seeded {
		return name
	}
	return firstRunes(id, maxNamePrefix-len("@")-len(seed)) + "@" + seed
}
