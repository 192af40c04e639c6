// Command runjob runs the solutions of a directory of Harbor tasks in containers
// and prints what they score.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
)

func main() {
	backend, err := docker.New(docker.Options{Getenv: os.Getenv})
	if err == nil {
		err = run(context.Background(), backend, "jobs", os.Args[1:]...)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, backend sandbox.Backend, jobsDir string, datasets ...string) error {
	cfg := jobdir.NewConfig(time.Now()) // agent oracle, one attempt at each task
	cfg.JobsDir = jobsDir
	for _, dir := range datasets {
		cfg.Datasets = append(cfg.Datasets, jobdir.DatasetConfig{Path: &dir})
	}
	done, err := job.Run(ctx, cfg, agents.All(), backend)
	if err != nil {
		return err
	}
	for _, m := range done.Progress.Metrics {
		fmt.Printf("%s: %s %s over %d trials\n", m.Group, m.Name, m.Value, m.N)
	}
	return nil
}
