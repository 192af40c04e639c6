// Command cubejob runs the tasks of a cube with an agent of its own, and prints
// what each trial scores.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/cube"
	"github.com/proctor-run/proctor/cubecli"
	letters "github.com/proctor-run/proctor/examples/library/cube"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

func main() {
	if err := run(context.Background(), os.Stdout, "jobs"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, jobsDir string) (err error) {
	s := &job.Session{Runner: job.Runner{Trials: trial.Runner{Agents: append(agents.All(), counter())}}}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	cfg := jobdir.NewConfig(time.Now())
	cfg.JobsDir, cfg.Agents[0].Name = jobsDir, new(counter().Name)
	if err = s.Claim(&cfg, false); err != nil {
		return err
	}
	benchmark := letters.Cube()
	if cfg.Tasks, err = s.OpenCubes(ctx, &cfg, benchmark.Opener("", cubecli.Choice{})); err != nil {
		return err
	}
	p, err := s.Prepare(cfg)
	if err != nil {
		return err
	}
	done, err := s.Run(ctx, p)
	if err != nil {
		return err
	}
	for _, r := range done.Records {
		_, _ = fmt.Fprintln(w, r.TrialName, value.Text(r.Rewards.Object()))
	}
	return nil
}

// counter is the agent as jobs know it: by its name.
func counter() agent.Entry {
	return agent.Entry{Name: "counter", Stepped: func(agent.Config) (cube.Agent, error) { return cube.AgentFunc(count), nil }}
}

// count answers with the letters of the word that stands in quotes in what the
// agent sees, and then stops.
func count(_ context.Context, obs *cube.Observation, _ []cube.ActionSchema) ([]cube.Action, error) {
	text, err := obs.Markdown()
	_, rest, asked := strings.Cut(text, `has "`)
	if err != nil || !asked {
		return nil, err
	}
	word, _, _ := strings.Cut(rest, `"`)
	return []cube.Action{cube.NewAction("answer", "letters", len([]rune(word)))}, nil
}
