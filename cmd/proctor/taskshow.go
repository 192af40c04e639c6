package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/value"
)

func newTaskShow(env *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Show a task's resolved settings",
		Long: `show reads a task and shows what follows from its files: its name, its hashes,
what its environment is made of, and for each step who works and verifies, how
long, and with which network. It runs nothing.

The checksum is that of Harbor's trial results, the content hash that of
lock.json and of packages.`,
		Example: `  proctor task show my-task
  proctor task show my-task --json`,
		Args: oneDirectory("task"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := readTask(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return encodeJSON(env.Stdout, s)
			}
			printTask(env.Stdout, s)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, nothing else")
	return cmd
}

// shownTask is what task show --json prints.
type shownTask struct {
	Task        string       `json:"task"`
	Name        string       `json:"name"`
	Checksum    string       `json:"checksum"`
	ContentHash string       `json:"content_hash"`
	Environment string       `json:"environment"`
	BuildSec    float64      `json:"build_timeout_sec"`
	Stages      []shownStage `json:"stages"`
	// Config is the task.toml with all defaults.
	Config json.RawMessage `json:"config"`
}

// shownStage is a step, or a task without steps.
type shownStage struct {
	Step        string     `json:"step,omitempty"`
	Instruction int        `json:"instruction_bytes"`
	Solution    bool       `json:"solution"`
	Agent       shownPhase `json:"agent"`
	Verifier    shownPhase `json:"verifier"`
	// Separate: the verifier has an environment of its own.
	Separate bool `json:"separate_verifier"`
}

type shownPhase struct {
	User       *string      `json:"user"`        // null for the image's
	TimeoutSec *float64     `json:"timeout_sec"` // null for none
	Network    shownNetwork `json:"network"`
}

type shownNetwork struct {
	Mode  string   `json:"mode"`
	Hosts []string `json:"allowed_hosts"`
}

func readTask(dir string) (*shownTask, error) {
	t, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		return nil, withHint(usageErrorf("%w", err), "'proctor task validate %s' names everything that is wrong", dir)
	}
	s := &shownTask{
		Task: dir, Name: t.Name, BuildSec: t.Config.Environment.BuildTimeoutSec, Stages: []shownStage{},
		Config: value.AppendPydantic(nil, t.Config.JSON(), 0), Environment: definitionOf(t),
	}
	if s.Checksum, err = harbor.Checksum(t.Dir); err != nil {
		return nil, usageErrorf("%w", err)
	}
	if s.ContentHash, _, err = harbor.PackageHash(t.Dir); err != nil {
		return nil, usageErrorf("%w", err)
	}
	if !t.Config.HasSteps() {
		s.Stages = append(s.Stages, newStage(t, nil, t.Instruction))
		return s, nil
	}
	for i := range t.Config.Steps {
		step := &t.Config.Steps[i]
		instruction, err := t.StepInstruction(step.Name)
		if err != nil {
			return nil, usageErrorf("%w", err)
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

func newStage(t *harbor.Task, step *harbor.Step, instruction string) shownStage {
	c := &t.Config
	plan := c.PlanNetwork(step, nil, nil)
	s := shownStage{
		Instruction: len(instruction), Solution: isFile(t.SolutionScript(step)), Separate: c.VerifierMode(step) == harbor.Separate,
		Agent:    shownPhase{userOf(c.AgentUser(step)), c.AgentTimeoutSec(step), newShownNetwork(plan.AgentPhase)},
		Verifier: shownPhase{userOf(c.VerifierUser(step)), new(c.VerifierTimeoutSec(step)), newShownNetwork(plan.VerifierPhase)},
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

func newShownNetwork(n harbor.Network) shownNetwork {
	return shownNetwork{Mode: string(n.Mode), Hosts: orEmpty(n.AllowedHosts)}
}

func printTask(w io.Writer, s *shownTask) {
	_, _ = lipgloss.Fprintln(w, styleBold.Render(clean(s.Name)))
	_, _ = fmt.Fprintf(w, "checksum      %s\n", s.Checksum)
	_, _ = fmt.Fprintf(w, "content hash  %s\n", s.ContentHash)
	_, _ = fmt.Fprintf(w, "environment   %s, made within %s\n\n", clean(s.Environment), seconds(s.BuildSec))
	t := newTable("Phase", "User", "Time limit", "Network", "Notes")
	for _, stage := range s.Stages {
		name := func(phase string) string {
			if stage.Step != "" {
				phase += " of " + clean(stage.Step)
			}
			return phase
		}
		notes := fmt.Sprintf("instruction of %s", count(stage.Instruction, "byte"))
		if !stage.Solution {
			notes += ", no solution"
		}
		t.Row(append([]string{name("agent")}, append(phaseCells(stage.Agent), notes)...)...)
		notes = "shares the agent's environment"
		if stage.Separate {
			notes = "an environment of its own"
		}
		t.Row(append([]string{name("verifier")}, append(phaseCells(stage.Verifier), notes)...)...)
	}
	_, _ = lipgloss.Fprintln(w, t.Render())
}

func phaseCells(p shownPhase) []string {
	user, limit, network := "the image's", "none", p.Network.Mode
	if p.User != nil {
		user = clean(*p.User)
	}
	if p.TimeoutSec != nil {
		limit = seconds(*p.TimeoutSec)
	}
	if len(p.Network.Hosts) > 0 {
		network += ": " + clean(strings.Join(p.Network.Hosts, ", "))
	}
	return []string{user, limit, network}
}
