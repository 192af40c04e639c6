// Command knownagent runs the agent of a file on a directory of Harbor tasks. What it
// installs of the agent is kept in a directory, so that the next run installs nothing.
//
//	ANTHROPIC_API_KEY=… knownagent my-agent.toml anthropic/claude-sonnet-4-5 TASKS
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/llm/providers"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/trial"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: knownagent FILE.toml PROVIDER/MODEL TASKS")
	}
	backend, err := docker.New(docker.Options{Getenv: os.Getenv})
	if err == nil {
		models := &llm.Client{Dial: providers.Dial, Lookup: os.LookupEnv}
		err = run(context.Background(), os.Stdout, backend, models, ".", os.Args[1], os.Args[2], os.Args[3])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run keeps jobs and installed agents below a directory.
func run(ctx context.Context, w io.Writer, backend sandbox.Backend, models llm.Opener, dir, file, model, tasks string) error {
	definition, err := installed.Load(file)
	if err != nil {
		return err
	}
	entry := definition.Entry()
	cfg := jobdir.NewConfig(time.Now())
	cfg.JobsDir, cfg.Agents[0].Name, cfg.Agents[0].ModelName = filepath.Join(dir, "jobs"), &entry.Name, &model
	cfg.Datasets = []jobdir.DatasetConfig{{Path: &tasks}}
	p, err := job.Prepare(cfg, job.PrepareOptions{Lookup: os.LookupEnv})
	if err != nil {
		return err
	}
	kept := &layer.Store{Dir: filepath.Join(dir, "agents"), Now: time.Now}
	r := job.Runner{
		Trials: trial.Runner{Backend: backend, Agents: agent.Registry{entry}, Models: models, Layers: kept, Lookup: os.LookupEnv},
		Emit: func(e job.Event) {
			if e.Kind == job.EventInstall {
				_, _ = fmt.Fprintln(w, e.Message)
			}
		},
	}
	done, err := r.Run(ctx, p)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "%d of %d trials have a reward\n", done.Progress.Ended.WithReward, done.Progress.Total)
	return nil
}
