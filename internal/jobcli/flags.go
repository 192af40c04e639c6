package jobcli

import (
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/job"
	"github.com/proctor-run/proctor/trial"
)

// Flags are the flags of run. Those that Harbor has too keep Harbor's names and
// meaning.
type Flags struct {
	Config, EnvFile string
	Yes             bool
	JSON            bool
	Verbose         bool
	OutcomeLine     bool
	HarborExitCodes bool
	Runtime         string
	Sealed          bool
	// Secrets are names of what is redacted whatever it looks like.
	Secrets []string
	// What sandboxes are kept from.
	Hardened, AllowEngineSocket, AllowRemoteEngine bool

	FailUnder, FailUnderCoverage *float64
	JUnit                        JUnit
	Policy                       PolicyFlags
	Model                        ModelFlags

	MCPConfigs []string
	Hub        Hub
	Set        job.Overrides

	AcceptHarmless bool
	// Auto lets a trial begin when what its task asks for is free, see job.Room.
	Auto bool
	// Builds and Verifiers are how many trials build, and verify, at a time; nil for as
	// many as run.
	Builds, Verifiers *int
	// One says that the job must be a single trial, whose agent is there this once.
	One bool

	line *resultLine // nil without OutcomeLine
}

// Hub are the flags of Harbor's hosted hub.
type Hub struct {
	Upload                bool
	Public                *bool
	ShareOrgs, ShareUsers []string
}

// NewFlags returns flags for the agents of the program.
func (p *Program) NewFlags() *Flags { return &Flags{Set: job.Overrides{KnownAgents: p.Agents}} }

// DefineRun defines the flags of run, and those that choose tasks by tasks.
func (p *Program) DefineRun(cmd *cobra.Command, f *Flags, tasks func(*pflag.FlagSet, *Flags)) {
	fs := cmd.Flags()
	fs.SortFlags = false
	flags.Topic(fs, "Task", func() { tasks(fs, f) })
	flags.Topic(fs, "Agent", func() {
		p.DefineAgent(fs, f)
		DefineHarborAgent(fs, f)
		DefineModel(fs, &f.Model)
		DefineGateway(fs, &f.Model, trial.GatewayAuto)
		DefineBudgets(fs, &f.Model)
	})
	flags.Topic(fs, "Verifier", func() { DefineVerifier(fs, f) })
	flags.Topic(fs, "Environment", func() { p.DefineEnvironment(fs, f); DefineHarborEnvironment(fs, f) })
	flags.Topic(fs, "Job", func() {
		defineJob(fs, f)
		DefineMultipliers(fs, &f.Set)
		DefineAccept(fs, f)
		DefineVariables(fs, f)
		DefineSecrets(fs, f)
	})
	flags.Topic(fs, "Output", func() {
		DefineProgress(fs, f)
		DefineResult(fs, f)
		f.JUnit.Define(fs)
	})
	DefineHub(fs, f)
	refuseTraces(fs)
	refusePlugins(fs, f)
	finishRun(cmd)
}

// DefineCubeRun defines the flags of run that mean something for cubes alone, with
// those that choose tasks by tasks. Without sandboxes there is no environment to
// choose.
func (p *Program) DefineCubeRun(cmd *cobra.Command, f *Flags, sandboxes bool, tasks func(*pflag.FlagSet)) {
	fs := cmd.Flags()
	fs.SortFlags = false
	flags.Topic(fs, "Task", func() { tasks(fs) })
	flags.Topic(fs, "Agent", func() { p.DefineAgent(fs, f); DefineModel(fs, &f.Model); DefineBudgets(fs, &f.Model) })
	if sandboxes {
		flags.Topic(fs, "Environment", func() { p.DefineEnvironment(fs, f) })
	}
	flags.Topic(fs, "Job", func() {
		defineJob(fs, f)
		defineTrialMultipliers(fs, &f.Set)
		DefineAccept(fs, f)
		DefineSecrets(fs, f)
	})
	flags.Topic(fs, "Output", func() {
		DefineProgress(fs, f)
		DefineResult(fs, f)
		f.JUnit.Define(fs)
	})
	finishRun(cmd)
}

func finishRun(cmd *cobra.Command) {
	if err := cmd.MarkFlagFilename("config", "json", "yaml"); err != nil {
		panic(err) // the flag is not defined
	}
	flags.ByTopic(cmd)
}

func defineJob(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	fs.StringVarP(&f.Config, "config", "c", "", "job configuration, a .json or .yaml `file`; other flags go on top of it")
	flags.Optional(fs, &o.JobName, flags.String, "job-name", "", "`name` of the job (default: the local time)")
	flags.Optional(fs, &o.JobsDir, flags.String, "jobs-dir", "o", "`directory` that holds the jobs (default jobs)")
	flags.Optional(fs, &o.NAttempts, flags.AtLeast(1), "n-attempts", "k", "`number` of attempts at each task (default 1)")
	fs.VarP(&concurrency{f}, "n-concurrent", "n", "`number` of trials that run at once, or \"auto\": as many as fit on this machine (default 4)")
	flags.Optional(fs, &f.Builds, flags.AtLeast(1), "n-builds", "", "`number` of trials that build their images at once (default: as many as run)")
	flags.Optional(fs, &f.Verifiers, flags.AtLeast(1), "n-verifiers", "", "`number` of trials that verify at once (default: as many as run)")
	flags.Optional(fs, &o.MaxRetries, flags.AtLeast(0), "max-retries", "r", "`number` of further attempts after an exception (default 0)")
	flags.List(fs, &o.RetryInclude, "retry-include", "", "retry after this exception `type` only; repeatable")
	flags.List(fs, &o.RetryExclude, "retry-exclude", "", "never retry after this exception `type`; repeatable, replaces the default list")
}

// DefineResult defines what a command prints of results, and what its exit code
// says.
func DefineResult(fs *pflag.FlagSet, f *Flags) {
	fs.BoolVar(&f.JSON, "json", false, "write one JSON object per event to standard output, and nothing else but what --outcome-line prints")
	fs.BoolVar(&f.HarborExitCodes, "harbor-exit-codes", false, "exit as Harbor does: with 0 also when trials errored, with 1 when the job is refused")
	fs.BoolVar(&f.OutcomeLine, "outcome-line", false, "print the line BASE_BENCHMARK_RESULT={…} at the end, however the job ends")
	f.Policy.Define(fs, "`file` with a policy as JSON, which is fixed before the job runs and kept in its directory")
	f.Policy.DefineInstead(fs)
	flags.Optional(fs, &f.FailUnder, flags.Float, "fail-under", "", "exit with 4 when the mean of the scores is below this `number`")
	flags.Optional(fs, &f.FailUnderCoverage, flags.Share, "fail-under-coverage", "", "exit with 4 when a smaller `fraction` of the trials (0 to 1) has a reward")
}

// auto is what --n-concurrent takes instead of a number.
const auto = "auto"

// concurrency is --n-concurrent with a number or auto.
type concurrency struct{ f *Flags }

func (c *concurrency) Set(text string) error {
	n := job.ThisMachine().CPUs
	if text != auto {
		var err error
		if n, err = flags.AtLeast(1)(text); err != nil {
			return err
		}
	}
	c.f.Set.NConcurrent, c.f.Auto = &n, text == auto
	return nil
}

func (c *concurrency) String() string {
	switch {
	case c.f == nil || c.f.Set.NConcurrent == nil:
		return ""
	case c.f.Auto:
		return auto
	}
	return strconv.Itoa(*c.f.Set.NConcurrent)
}

func (*concurrency) Type() string { return "number" }

// DefineConcurrency defines how much runs at once.
func DefineConcurrency(fs *pflag.FlagSet, f *Flags) {
	flags.Optional(fs, &f.Set.NConcurrent, flags.AtLeast(1), "n-concurrent", "n", "`number` of trials that run at once (default 4)")
}

// DefineEnvFile defines the file of variables.
func DefineEnvFile(fs *pflag.FlagSet, f *Flags) {
	fs.StringVar(&f.EnvFile, "env-file", "", "read variables from this `file` before anything else")
}

// DefineSecrets defines what is redacted besides what looks like a secret.
func DefineSecrets(fs *pflag.FlagSet, f *Flags) {
	flags.List(fs, &f.Secrets, "secret", "", "redact the value of this variable or setting (`NAME`) in all that is written and printed; repeatable")
}

// DefineVariables defines what variables of this machine tasks are given.
func DefineVariables(fs *pflag.FlagSet, f *Flags) {
	fs.BoolVarP(&f.Yes, "yes", "y", false, "do not ask before variables of this host are given to tasks")
	DefineEnvFile(fs, f)
}

// DefineProgress defines what is shown while trials run.
func DefineProgress(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	fs.BoolVarP(&o.Quiet, "quiet", "q", false, "show no progress")
	fs.BoolVar(&o.Quiet, "silent", false, "show no progress")
	flags.Hide(fs, "silent")
	fs.BoolVarP(&f.Verbose, "verbose", "v", false, "show each phase of each trial in a line of its own")
	fs.BoolVar(&o.Debug, "debug", false, "show the trials' log messages too")
}

// DefineMultipliers defines factors of time limits.
func DefineMultipliers(fs *pflag.FlagSet, o *job.Overrides) {
	defineTrialMultipliers(fs, o)
	flags.Optional(fs, &o.AgentSetupTimeoutMultiplier, flags.Positive, "agent-setup-timeout-multiplier", "", "`factor` for the time limit of the agent's set-up")
	flags.Optional(fs, &o.EnvironmentBuildTimeoutMultiplier, flags.Positive, "environment-build-timeout-multiplier", "", "`factor` for the time limit of the environment's start")
}

func defineTrialMultipliers(fs *pflag.FlagSet, o *job.Overrides) {
	flags.Optional(fs, &o.TimeoutMultiplier, flags.Positive, "timeout-multiplier", "", "`factor` for all time limits")
	flags.Optional(fs, &o.AgentTimeoutMultiplier, flags.Positive, "agent-timeout-multiplier", "", "`factor` for the agent's time limit")
	flags.Optional(fs, &o.VerifierTimeoutMultiplier, flags.Positive, "verifier-timeout-multiplier", "", "`factor` for the verifier's time limit")
}
