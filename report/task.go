package report

import (
	"encoding/json"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

// Task is what follows from the files of a task: what proctor task show --json
// prints. Times are in seconds.
type Task struct {
	Task string `json:"task"`
	Name string `json:"name"`
	// Checksum is that of Harbor's trial results, ContentHash that of lock.json.
	Checksum    string `json:"checksum"`
	ContentHash string `json:"content_hash"`
	// Environment says what the environment is made of.
	Environment string  `json:"environment"`
	BuildSec    float64 `json:"build_timeout_sec"`
	Stages      []Stage `json:"stages"`
	// Config is the task.toml with all defaults.
	Config json.RawMessage `json:"config"`
}

// Stage is a step, or a task without steps.
type Stage struct {
	Step        string     `json:"step,omitempty"`
	Instruction int        `json:"instruction_bytes"`
	Solution    bool       `json:"solution"`
	Agent       StagePhase `json:"agent"`
	Verifier    StagePhase `json:"verifier"`
	// Separate: the verifier has an environment of its own.
	Separate bool `json:"separate_verifier"`
}

// StagePhase says who works in a phase of a stage, how long, and with which network.
type StagePhase struct {
	User       *string  `json:"user"`        // null for the image's
	TimeoutSec *float64 `json:"timeout_sec"` // null for none
	Network    Network  `json:"network"`
}

// Network is the network of a phase: a mode of task.toml and the hosts that it allows.
type Network struct {
	Mode  string   `json:"mode"`
	Hosts []string `json:"allowed_hosts"`
}

// ReadTask reads a task's directory. It runs nothing.
//
// The error is an [*InvalidError] for a task that cannot be loaded.
func ReadTask(dir string) (*Task, error) {
	t, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		return nil, &InvalidError{err}
	}
	s := &Task{
		Task: dir, Name: t.Name, BuildSec: t.Config.Environment.BuildTimeoutSec, Stages: []Stage{},
		Config: value.AppendPydantic(nil, t.Config.JSON(), 0), Environment: definitionOf(t),
	}
	if s.Checksum, err = harbor.Checksum(t.Dir); err != nil {
		return nil, err
	}
	if s.ContentHash, _, err = harbor.PackageHash(t.Dir); err != nil {
		return nil, err
	}
	if !t.Config.HasSteps() {
		s.Stages = append(s.Stages, newStage(t, nil, t.Instruction))
		return s, nil
	}
	for i := range t.Config.Steps {
		step := &t.Config.Steps[i]
		instruction, err := t.StepInstruction(step.Name)
		if err != nil {
			return nil, err
		}
		s.Stages = append(s.Stages, newStage(t, step, instruction))
	}
	return s, nil
}

// definitionOf says what the agent's environment is made of.
func definitionOf(t *harbor.Task) string {
	var parts []string
	if image := t.Config.Environment.DockerImage; image != nil && *image != "" {
		parts = append(parts, "image "+*image)
	}
	if t.HasDockerfile() {
		parts = append(parts, "environment/Dockerfile")
	}
	if t.HasCompose() {
		parts = append(parts, "environment/docker-compose.yaml")
	}
	return strings.Join(parts, ", ")
}

func newStage(t *harbor.Task, step *harbor.Step, instruction string) Stage {
	c := &t.Config
	plan := c.PlanNetwork(step, nil, nil)
	s := Stage{
		Instruction: len(instruction), Solution: isFile(t.SolutionScript(step)), Separate: c.VerifierMode(step) == harbor.Separate,
		Agent:    StagePhase{userOf(c.AgentUser(step)), c.AgentTimeoutSec(step), newNetwork(plan.AgentPhase)},
		Verifier: StagePhase{userOf(c.VerifierUser(step)), new(c.VerifierTimeoutSec(step)), newNetwork(plan.VerifierPhase)},
	}
	if step != nil {
		s.Step = step.Name
	}
	return s
}

func userOf(u *harbor.User) *string {
	if u == nil {
		return nil
	}
	return new(u.String())
}

func newNetwork(n harbor.Network) Network {
	return Network{Mode: string(n.Mode), Hosts: orEmpty(n.AllowedHosts)}
}

// TaskValidation is whether the files of a task allow it to be run: what proctor
// task validate --json prints per task.
type TaskValidation struct {
	Task  string `json:"task"`
	Valid bool   `json:"valid"` // no problem is an error
	// Problems are all that [harbor.Validate] finds.
	Problems []harbor.Problem `json:"problems"`
}

// ValidateTask finds every problem in the files of a task. It runs nothing.
func ValidateTask(dir string) *TaskValidation {
	v := &TaskValidation{Task: dir, Valid: true, Problems: []harbor.Problem{}}
	for _, p := range harbor.Validate(dir) {
		v.Problems = append(v.Problems, p)
		v.Valid = v.Valid && p.Severity != harbor.SeverityError
	}
	return v
}
