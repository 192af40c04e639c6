package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/job"
)

// runFlags are the flags of run. Those that Harbor has too keep Harbor's names
// and meaning.
type runFlags struct {
	config, envFile string
	yes             bool
	json            bool
	outcomeLine     bool
	harborExitCodes bool
	runtime         string
	sealed          bool

	failUnder, failUnderCoverage *float64
	junit                        junitFlags

	mcpConfigs []string
	upload     bool
	public     *bool
	shareOrgs  []string
	shareUsers []string
	set        job.Overrides

	acceptHarmless bool
}

// defineRunFlags defines the flags on cmd; the returned value is filled when the
// command line is parsed.
func defineRunFlags(cmd *cobra.Command) *runFlags {
	return defineRunFlagsBut(cmd, defineTaskFlags)
}

// defineRunFlagsBut defines the flags of run, and those that choose tasks by
// defineTasks.
func defineRunFlagsBut(cmd *cobra.Command, defineTasks func(*pflag.FlagSet, *runFlags)) *runFlags {
	f := &runFlags{set: job.Overrides{KnownAgents: agents()}}
	fs := cmd.Flags()
	fs.SortFlags = false
	o := &f.set
	defineTasks(fs, f)
	defineAgentFlags(fs, f)
	defineEnvironmentFlags(fs, f)

	fs.StringVarP(&f.config, "config", "c", "", "job configuration, a .json or .yaml `file`; other flags go on top of it")
	optionalVar(fs, &o.JobName, parseString, "job-name", "", "`name` of the job (default: the local time)")
	optionalVar(fs, &o.JobsDir, parseString, "jobs-dir", "o", "`directory` that holds the jobs (default jobs)")
	optionalVar(fs, &o.NAttempts, parseInt, "n-attempts", "k", "`number` of attempts at each task (default 1)")
	defineConcurrencyFlag(fs, f)
	optionalVar(fs, &o.MaxRetries, parseInt, "max-retries", "r", "`number` of further attempts after an exception (default 0)")
	listVar(fs, &o.RetryInclude, "retry-include", "", "retry after this exception `type` only; repeatable")
	listVar(fs, &o.RetryExclude, "retry-exclude", "", "never retry after this exception `type`; repeatable, replaces the default list")
	defineMultiplierFlags(fs, o)
	defineConversationFlags(fs, f)
	fs.BoolVar(&f.json, "json", false, "write one JSON object per event to standard output, nothing else")
	fs.BoolVar(&f.harborExitCodes, "harbor-exit-codes", false, "exit as Harbor does: with 0 also when trials errored, with 1 when the job is refused")
	fs.BoolVar(&f.outcomeLine, "outcome-line", false, "print the line BASE_BENCHMARK_RESULT={…} at the end")
	optionalVar(fs, &f.failUnder, parseFloat, "fail-under", "", "exit with 4 when the mean of the scores is below this `number`")
	optionalVar(fs, &f.failUnderCoverage, parseFloat, "fail-under-coverage", "", "exit with 4 when a smaller `fraction` of the trials (0 to 1) has a reward")
	acceptVar(fs, f)
	f.junit.define(fs)
	defineHubFlags(fs, f)
	defineTraceFlags(fs)
	definePluginFlags(fs, f)
	return f
}

func defineConcurrencyFlag(fs *pflag.FlagSet, f *runFlags) {
	optionalVar(fs, &f.set.NConcurrent, parseInt, "n-concurrent", "n", "`number` of trials that run at once (default 4)")
}

// defineConversationFlags defines what is said and asked while trials run.
func defineConversationFlags(fs *pflag.FlagSet, f *runFlags) {
	o := &f.set
	fs.BoolVarP(&o.Quiet, "quiet", "q", false, "show no progress")
	fs.BoolVar(&o.Quiet, "silent", false, "show no progress")
	hide(fs, "silent")
	fs.BoolVar(&o.Debug, "debug", false, "show the trials' log messages too")
	fs.BoolVarP(&f.yes, "yes", "y", false, "do not ask before variables of this host are given to tasks")
	fs.StringVar(&f.envFile, "env-file", "", "read variables from this `file` before anything else")
}

func defineMultiplierFlags(fs *pflag.FlagSet, o *job.Overrides) {
	optionalVar(fs, &o.TimeoutMultiplier, parseFloat, "timeout-multiplier", "", "`factor` for all time limits")
	optionalVar(fs, &o.AgentTimeoutMultiplier, parseFloat, "agent-timeout-multiplier", "", "`factor` for the agent's time limit")
	optionalVar(fs, &o.VerifierTimeoutMultiplier, parseFloat, "verifier-timeout-multiplier", "", "`factor` for the verifier's time limit")
	optionalVar(fs, &o.AgentSetupTimeoutMultiplier, parseFloat, "agent-setup-timeout-multiplier", "", "`factor` for the time limit of the agent's set-up")
	optionalVar(fs, &o.EnvironmentBuildTimeoutMultiplier, parseFloat, "environment-build-timeout-multiplier", "", "`factor` for the time limit of the environment's start")
}

func defineTaskFlags(fs *pflag.FlagSet, f *runFlags) {
	defineTaskChoiceFlags(fs, f)
	defineExtraFlags(fs, f)
}

// defineTaskChoiceFlags defines what chooses the tasks.
func defineTaskChoiceFlags(fs *pflag.FlagSet, f *runFlags) {
	o := &f.set
	optionalVar(fs, &o.Path, parseString, "path", "p", "a task `directory`, or a directory of tasks")
	optionalVar(fs, &o.Dataset, parseString, "dataset", "d", "a dataset `NAME[@VERSION]`")
	optionalVar(fs, &o.Task, parseString, "task", "t", "a task package `ORG/NAME[@REF]`")
	listVar(fs, &o.IncludeTasks, "include-task-name", "i", "run the tasks that match this `glob`; repeatable")
	listVar(fs, &o.ExcludeTasks, "exclude-task-name", "x", "leave out the tasks that match this `glob`; repeatable")
	optionalVar(fs, &o.NTasks, parseInt, "n-tasks", "l", "run at most this `number` of tasks")
	optionalVar(fs, &o.RegistryURL, parseString, "registry-url", "", "`URL` of a dataset registry")
	optionalVar(fs, &o.RegistryPath, parseString, "registry-path", "", "registry `file`")
	optionalVar(fs, &o.GitURL, parseString, "task-git-url", "", "`URL` of the git repository that --path is in")
	optionalVar(fs, &o.GitCommit, parseString, "task-git-commit", "", "`commit` of that repository")
}

// defineExtraFlags defines what is added to tasks.
func defineExtraFlags(fs *pflag.FlagSet, f *runFlags) {
	o := &f.set
	listVar(fs, &o.ExtraInstructionPaths, "extra-instruction-path", "", "append this `file` to every instruction; repeatable")
	listVar(fs, &o.Artifacts, "artifact", "", "collect this `path` from the sandbox; repeatable")
}

func defineAgentFlags(fs *pflag.FlagSet, f *runFlags) {
	o := &f.set
	optionalVar(fs, &o.Agent, parseAgent, "agent", "a", "the `agent`: "+strings.Join(agents().Names(), ", ")+" (default oracle)")
	optionalVar(fs, &o.AgentImportPath, parseString, "agent-import-path", "", "Python `module:Class` of an agent")
	hide(fs, "agent-import-path")
	listVar(fs, &o.Models, "model", "m", "`model` of the agent, with -a; repeatable, one agent each")
	listVar(fs, &o.AgentKwargs, "ak", "", "setting `key=value` of the agent; repeatable", "agent-kwarg")
	optionalVar(fs, &o.MaxSteps, parseInt, "max-steps", "", "maximum `turns` per episode (default: the task's recommendation)")
	listVar(fs, &o.AgentEnv, "ae", "", "variable `KEY=VALUE` for the agent; repeatable", "agent-env")
	listVar(fs, &f.mcpConfigs, "mcp-config", "", "`file` with MCP servers for the agent; repeatable")
	listVar(fs, &o.Skills, "skill", "", "`directory` with skills for the agent; repeatable", "skills")
	listVar(fs, &o.AgentHosts, "allow-agent-host", "", "`host` that the agent may reach; repeatable")
	listVar(fs, &o.VerifierEnv, "ve", "", "variable `KEY=VALUE` for the verifier; repeatable", "verifier-env")
	fs.BoolVar(&f.sealed, "sealed-verifier", false, "let nobody but the tests write the reward: kill what the agent left running, and refuse reward files that others may have written")
	fs.BoolVar(&o.DisableVerification, "disable-verification", false, "run the agents and verify nothing")
	fs.Bool("enable-verification", true, "has no effect")
	listVar(fs, &o.VerifierKwargs, "verifier-kwarg", "", "setting `key=value` of a verifier in Python; refused")
	optionalVar(fs, &o.VerifierImportPath, parseString, "verifier-import-path", "", "Python `module:Class` of a verifier; refused")
	hide(fs, "enable-verification", "verifier-kwarg", "verifier-import-path")
}

func defineEnvironmentFlags(fs *pflag.FlagSet, f *runFlags) {
	o := &f.set
	optionalVar(fs, &o.EnvironmentType, parseEnvironment, "env", "e", "where trials run: "+backends().Usage()+" (default auto)")
	optionalVar(fs, &o.EnvironmentImportPath, parseString, "environment-import-path", "", "Python `module:Class` of an environment")
	fs.StringVar(&f.runtime, "runtime", "", "OCI `runtime` of sandbox and host: gvisor and native (built in), runc, crun (default gvisor)")
	optionalVar(fs, &o.ForceBuild, parseBool, "force-build", "", "rebuild the image even if it exists")
	optionalVar(fs, &o.ForceBuild, parseNotBool, "no-force-build", "", "use the image that there is")
	optionalVar(fs, &o.Delete, parseBool, "delete", "", "remove the sandbox after a trial (the default)")
	optionalVar(fs, &o.Delete, parseNotBool, "no-delete", "", "keep the sandbox for inspection, where the backend can")
	optionalVar(fs, &o.CPUPolicy, parsePolicy, "cpus", "", "`policy` for processors: auto, limit, request, guarantee, ignore")
	optionalVar(fs, &o.MemoryPolicy, parsePolicy, "memory", "", "`policy` for memory: auto, limit, request, guarantee, ignore")
	optionalVar(fs, &o.CPUs, parseInt, "override-cpus", "", "`number` of processors instead of the task's")
	optionalVar(fs, &o.MemoryMB, parseInt, "override-memory-mb", "", "`MiB` of memory instead of the task's")
	optionalVar(fs, &o.StorageMB, parseInt, "override-storage-mb", "", "`MiB` of storage instead of the task's")
	optionalVar(fs, &o.GPUs, parseInt, "override-gpus", "", "`number` of GPUs instead of the task's")
	optionalVar(fs, &o.TPU, parseString, "override-tpu", "", "`TYPE=TOPOLOGY` instead of the task's")
	optionalVar(fs, &o.Mounts, parseString, "mounts", "", "mounts as `JSON`, a list of compose service volumes")
	optionalVar(fs, &o.Mounts, parseString, "mounts-json", "", "as --mounts")
	listVar(fs, &o.DockerCompose, "extra-docker-compose", "", "further compose `file`; repeatable")
	listVar(fs, &o.EnvironmentKwargs, "ek", "", "setting `key=value` of the environment; repeatable", "environment-kwarg")
	listVar(fs, &o.EnvironmentHosts, "allow-environment-host", "", "`host` that the environment may reach; repeatable")
	hide(fs, "environment-import-path", "no-force-build", "mounts-json")
}

// definePluginFlags accepts the plugins of a job, for Harbor's answers to wrong
// ones; the check of the configuration refuses the others.
func definePluginFlags(fs *pflag.FlagSet, f *runFlags) {
	o := &f.set
	listVar(fs, &o.Plugins, "plugin", "", "Python `module:Class` of a plugin; refused")
	listVar(fs, &o.PluginKwargs, "pk", "", "setting `key=value` of the plugin; refused", "plugin-kwarg")
	hide(fs, "plugin", "pk")
}

// acceptVar defines the flag with which a job is resumed after harmless changes.
func acceptVar(fs *pflag.FlagSet, f *runFlags) {
	fs.BoolVar(&f.acceptHarmless, "accept-harmless", false, "resume a job although settings were changed that do not change results")
}

// defineHubFlags accepts the flags of Harbor's hosted hub, so that a wrong
// combination gets Harbor's answer and a right one an honest refusal.
func defineHubFlags(fs *pflag.FlagSet, f *runFlags) {
	fs.BoolVar(&f.upload, "upload", false, "not available: proctor has no hosted hub")
	optionalVar(fs, &f.public, parseBool, "public", "", "needs --upload")
	optionalVar(fs, &f.public, parseNotBool, "private", "", "needs --upload")
	listVar(fs, &f.shareOrgs, "share-org", "", "needs --upload")
	listVar(fs, &f.shareUsers, "share-user", "", "needs --upload")
	hide(fs, "upload", "public", "private", "share-org", "share-user")
}

func hide(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Lookup(name).Hidden = true
	}
}
