// Command modelagent lets a model solve a directory of Harbor tasks, and prints what it
// scored and what that took.
//
//	OPENAI_API_KEY=… modelagent openai/gpt-5-mini TASKS…
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: modelagent PROVIDER/MODEL TASKS…")
	}
	backend, err := docker.New(docker.Options{Getenv: os.Getenv})
	if err == nil {
		client := &llm.Client{Dial: providers.Dial, Lookup: os.LookupEnv}
		err = run(context.Background(), os.Stdout, backend, client, "jobs", os.Args[1], os.Args[2:]...)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run has the trials of a job share one client, and with it the rate that the model's
// provider allows.
func run(ctx context.Context, w io.Writer, backend sandbox.Backend, models llm.Opener, jobsDir, model string, datasets ...string) error {
	cfg := jobdir.NewConfig(time.Now())
	cfg.JobsDir, cfg.Agents[0].Name, cfg.Agents[0].ModelName = jobsDir, new("tools"), &model
	for _, dir := range datasets {
		cfg.Datasets = append(cfg.Datasets, jobdir.DatasetConfig{Path: &dir})
	}
	p, err := job.Prepare(cfg, job.PrepareOptions{Lookup: os.LookupEnv})
	if err != nil {
		return err
	}
	r := job.Runner{Trials: trial.Runner{Backend: backend, Agents: agents.All(), Models: models, Lookup: os.LookupEnv}}
	done, err := r.Run(ctx, p)
	if err != nil {
		return err
	}
	for _, r := range done.Records {
		reward := "no reward: " + r.ExceptionType
		if r.Rewards != nil {
			reward = value.Text(r.Rewards.Object())
		}
		_, _ = fmt.Fprintf(w, "%s %s, %s tokens in, %s out\n", r.TaskName, reward, tokens(r.Usage.NInputTokens), tokens(r.Usage.NOutputTokens))
	}
	return nil
}

func tokens(n *value.Int) string {
	if n == nil {
		return "unknown"
	}
	return value.Text(*n)
}
