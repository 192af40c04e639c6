package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/mcp"
	"github.com/proctor-run/proctor/cubecli"
	"github.com/proctor-run/proctor/internal/console"
	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/interrupt"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/internal/version"
)

// mcpFlags are those of mcp.
type mcpFlags struct {
	*jobcli.Flags
	choice cubecli.Choice
	http   string
}

func newMCP(env *Env) *cobra.Command {
	f := &mcpFlags{Flags: program(env).NewFlags()}
	cmd := &cobra.Command{
		Use:   "mcp TASK",
		Short: "Offer one task's actions as tools (MCP) to an agent that you start yourself",
		Long: `mcp sets one task up, offers its actions as the tools of a server of the Model
Context Protocol, and scores what the client has done with them. It is for agents
that bring their own loop: they start this command, or connect to it.

TASK is a Harbor task directory, whose tools are those of agent tools (a shell
and files), or a cube with one task of it. The task is what the server says of
itself ("instructions"), and its prompt "task". The tool final_step ends the
task, as does a client that hangs up; then the task is evaluated, and the
result is a job, as of 'proctor run'. The client never sees the score.

Without --http the protocol is spoken on standard input and output, and all else
is printed on standard error. With --http the address is printed there: it has a
secret in it, and whoever knows it can play.`,
		Example: `  claude mcp add task -- proctor mcp examples/tasks/hello-world -e host
  proctor mcp arithmetic-cube -t add-3-4
  proctor mcp my-task --http 127.0.0.1:8642`,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	flags.Topic(fs, "Task", func() {
		f.choice.DefineSubset(fs)
		flags.List(fs, &f.choice.Include, "task", "t", "the task that matches the `glob`, where there are several", "only")
	})
	flags.Topic(fs, "Client", func() {
		fs.StringVar(&f.http, "http", "", "serve HTTP at this `address`, such as 127.0.0.1:8642, instead of standard input and output")
		flags.Optional(fs, &f.Set.MaxSteps, flags.AtLeast(1), "max-steps", "", "maximum number of `calls` (default: the task's recommendation)")
	})
	flags.Topic(fs, "Environment", func() { program(env).DefineEnvironment(fs, f.Flags) })
	flags.Topic(fs, "Job", func() {
		flags.Optional(fs, &f.Set.JobName, flags.String, "job-name", "", "`name` of the job (default: the local time)")
		flags.Optional(fs, &f.Set.JobsDir, flags.String, "jobs-dir", "o", "`directory` that holds the jobs (default jobs)")
		jobcli.DefineSecrets(fs, f.Flags)
	})
	flags.Topic(fs, "Output", func() {
		jobcli.DefineProgress(fs, f.Flags)
		jobcli.DefineResult(fs, f.Flags)
	})
	flags.ByTopic(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return withHint(usageErrorf("accepts one task, as a directory or by the name of a cube; got %d", len(args)), "'proctor cube list' lists the cubes")
		}
		return serveMCP(cmd, env, args[0], f)
	}
	return cmd
}

// How long the last answers have to reach the client.
const (
	lastAnswers        = 10 * time.Second
	interruptedAnswers = time.Second // where somebody waits for the end
)

// serveMCP plays one task through a client.
func serveMCP(cmd *cobra.Command, env *Env, task string, f *mcpFlags) error {
	// Clients die while they are served, or never read what is printed: the task is scored all
	// the same, and nothing is left of it.
	interrupt.SurviveClosedPipes()
	own := *env
	stderr, written := detached(env.Stderr)
	defer written()
	own.Stdin, own.Stdout, own.Stderr = nil, stderr, stderr // standard output is the protocol's
	server := &mcp.Server{Options: mcp.Options{Name: "proctor", Version: version.Current().Version}}
	if f.http == "" {
		server.In, server.Out = env.Stdin, console.Unchecked(env.Stdout)
	} else {
		url, err := listenMCP(cmd.Context(), server, f.http)
		if err != nil {
			return err
		}
		defer func() { _ = server.Listener.Close() }()
		server.Ready = func() { _, _ = fmt.Fprintf(stderr, "%s: the task's tools are at %s\n", "proctor mcp", url) }
	}
	own.agents = agent.Registry{server.Entry()}
	err := program(&own).WithLine(f.Flags, func() error {
		return asHarbor(playMCP(cmd, &own, task, f), f.HarborExitCodes)
	})
	if exitcode.Of(err) == exitcode.Interrupted {
		server.Close(interruptedAnswers)
	} else {
		server.Close(lastAnswers)
	}
	return err
}

// listenMCP listens for clients at an address, and returns the URL.
func listenMCP(ctx context.Context, server *mcp.Server, address string) (url string, err error) {
	if server.Listener, err = new(net.ListenConfig).Listen(ctx, "tcp", address); err != nil {
		return "", usageErrorf("--http: %w", err)
	}
	server.Path = "/" + rand.Text()
	return "http://" + server.Listener.Addr().String() + server.Path, nil
}

// playMCP runs a job of one trial, whose agent is the client.
func playMCP(cmd *cobra.Command, env *Env, task string, f *mcpFlags) error {
	c, err := cubeProgram(env).FindCube(task)
	if err != nil {
		return err
	}
	f.Set.KnownAgents, f.Set.Agent, f.One = program(env).Agents, new(mcp.EntryName), true
	if c.Load == nil {
		return runCube(cmd.Context(), env, c, cubeRun{f.Flags, cmd.Flags(), f.choice})
	}
	if f.choice.Subset != "" {
		return usageErrorf("--subset is not supported for a directory of Harbor tasks: they name no subsets")
	}
	f.Set.Path, f.Set.IncludeTasks = &task, f.choice.Include
	return runJob(cmd.Context(), env, f.Flags)
}
