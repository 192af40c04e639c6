package jobcli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/exitcode"
	"github.com/proctor-run/proctor/internal/flags"
)

// DefineAgent defines what chooses an agent.
func (p *Program) DefineAgent(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.Optional(fs, &o.Agent, p.parseAgent, "agent", "a", "the `agent`: "+strings.Join(p.Agents.Names(), ", ")+" (default oracle)")
	flags.Optional(fs, &o.AgentImportPath, flags.String, "agent-import-path", "", "Python `module:Class` of an agent")
	flags.Hide(fs, "agent-import-path")
	flags.List(fs, &o.Models, "model", "m", "`model` of the agent, with -a; repeatable, one agent each")
	flags.List(fs, &o.AgentKwargs, "ak", "", "setting `key=value` of the agent; repeatable", "agent-kwarg")
	flags.Optional(fs, &o.MaxSteps, flags.AtLeast(1), "max-steps", "", "maximum `turns` per episode (default: the task's recommendation)")
}

// DefineHarborAgent defines what only agents in sandboxes have.
func DefineHarborAgent(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.List(fs, &o.AgentEnv, "ae", "", "variable `KEY=VALUE` for the agent; repeatable", "agent-env")
	flags.List(fs, &f.MCPConfigs, "mcp-config", "", "`file` with MCP servers for the agent; repeatable")
	flags.List(fs, &o.Skills, "skill", "", "`directory` with skills for the agent; repeatable", "skills")
	flags.List(fs, &o.AgentHosts, "allow-agent-host", "", "`host` that the agent may reach; repeatable")
}

// DefineVerifier defines what is said to verifiers.
func DefineVerifier(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.List(fs, &o.VerifierEnv, "ve", "", "variable `KEY=VALUE` for the verifier; repeatable", "verifier-env")
	fs.BoolVar(&f.Sealed, "sealed-verifier", false, "let nobody but the tests write the reward: end everything in the sandbox before they begin, and refuse reward files that others may have written")
	fs.BoolVar(&o.DisableVerification, "disable-verification", false, "run the agents and verify nothing")
	fs.Bool("enable-verification", true, "has no effect")
	flags.List(fs, &o.VerifierKwargs, "verifier-kwarg", "", "setting `key=value` of a verifier in Python; refused")
	flags.Optional(fs, &o.VerifierImportPath, flags.String, "verifier-import-path", "", "Python `module:Class` of a verifier; refused")
	flags.Hide(fs, "enable-verification", "verifier-kwarg", "verifier-import-path")
}

// DefineEnvironment defines what chooses an environment.
func (p *Program) DefineEnvironment(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.Optional(fs, &o.EnvironmentType, p.parseEnvironment, "env", "e", "`environment` where trials run: "+p.environmentsUsage()+" (default auto)")
	fs.StringVar(&f.Runtime, "runtime", "", "OCI `runtime` of sandbox and host: gvisor, native, runc, crun (default gvisor)")
	DefineHardening(fs, &f.Hardened, &f.AllowRemoteEngine)
}

// DefineHardening defines what sandboxes are kept from, and which engine may make
// them.
func DefineHardening(fs *pflag.FlagSet, hardened, allowRemote *bool) {
	fs.BoolVar(hardened, "hardened", false, "read-only root, no capabilities, no new privileges, 512 processes, and no network where nothing asks for one")
	DefineRemoteEngine(fs, allowRemote)
}

// DefineRemoteEngine defines what lets an engine be spoken to that anybody can
// listen to.
func DefineRemoteEngine(fs *pflag.FlagSet, allow *bool) {
	fs.BoolVar(allow, "allow-remote-engine", false, "speak to a container engine over plain TCP, where nothing is encrypted and nobody has to say who they are")
}

// DefineEngineSocket defines what lets mounts show an engine's socket.
func DefineEngineSocket(fs *pflag.FlagSet, f *Flags) {
	fs.BoolVar(&f.AllowEngineSocket, "allow-engine-socket", false, "let a mount show a container engine's socket, and with it this machine, to the sandbox")
}

// DefineEnvironmentType defines another name of --env.
func (p *Program) DefineEnvironmentType(fs *pflag.FlagSet, f *Flags) {
	flags.Optional(fs, &f.Set.EnvironmentType, p.parseEnvironment, "environment-type", "", "as --env")
}

// DefineHarborEnvironment defines what only the environments of Harbor's tasks have.
func DefineHarborEnvironment(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.Optional(fs, &o.EnvironmentImportPath, flags.String, "environment-import-path", "", "Python `module:Class` of an environment")
	flags.Optional(fs, &o.ForceBuild, flags.Bool, "force-build", "", "rebuild the image even if it exists")
	flags.Optional(fs, &o.ForceBuild, flags.NotBool, "no-force-build", "", "use the image that there is")
	flags.Optional(fs, &o.Delete, flags.Bool, "delete", "", "remove the sandbox after a trial (the default)")
	flags.Optional(fs, &o.Delete, flags.NotBool, "no-delete", "", "keep the sandbox, stopped, for inspection (-e docker); 'gc --kept' removes it")
	flags.Optional(fs, &o.CPUPolicy, parsePolicy, "cpus", "", "`policy` for processors: auto, limit, request, guarantee, ignore")
	flags.Optional(fs, &o.MemoryPolicy, parsePolicy, "memory", "", "`policy` for memory: auto, limit, request, guarantee, ignore")
	flags.Optional(fs, &o.CPUs, flags.AtLeast(1), "override-cpus", "", "`number` of processors instead of the task's")
	flags.Optional(fs, &o.MemoryMB, flags.AtLeast(1), "override-memory-mb", "", "`MiB` of memory instead of the task's")
	flags.Optional(fs, &o.StorageMB, flags.AtLeast(1), "override-storage-mb", "", "`MiB` of storage instead of the task's")
	flags.Optional(fs, &o.GPUs, flags.AtLeast(0), "override-gpus", "", "`number` of GPUs instead of the task's")
	flags.Optional(fs, &o.TPU, flags.String, "override-tpu", "", "`TYPE=TOPOLOGY` instead of the task's")
	flags.Optional(fs, &o.Mounts, flags.String, "mounts", "", "mounts as `JSON`, a list of compose service volumes")
	flags.Optional(fs, &o.Mounts, flags.String, "mounts-json", "", "as --mounts")
	DefineEngineSocket(fs, f)
	flags.List(fs, &o.DockerCompose, "extra-docker-compose", "", "further compose `file`; repeatable")
	flags.List(fs, &o.EnvironmentKwargs, "ek", "", "setting `key=value` of the environment; repeatable", "environment-kwarg")
	flags.List(fs, &o.EnvironmentHosts, "allow-environment-host", "", "`host` that the environment may reach; repeatable")
	flags.Hide(fs, "environment-import-path", "no-force-build", "mounts-json")
}

// DefineTasks defines what chooses tasks, and what is added to them.
func DefineTasks(fs *pflag.FlagSet, f *Flags) {
	DefineTaskChoice(fs, f)
	DefineExtra(fs, f)
}

// DefineTaskChoice defines what chooses the tasks.
func DefineTaskChoice(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.Optional(fs, &o.Path, flags.Once(flags.String), "path", "p", "a task `directory`, or a directory of tasks")
	flags.Optional(fs, &o.Dataset, flags.Once(flags.String), "dataset", "d", "a dataset `NAME[@VERSION]`")
	flags.Optional(fs, &o.Task, flags.Once(flags.String), "task", "t", "a task package `ORG/NAME[@REF]`")
	flags.List(fs, &o.IncludeTasks, "include-task-name", "i", "run the tasks that match this `glob`; repeatable")
	flags.List(fs, &o.ExcludeTasks, "exclude-task-name", "x", "leave out the tasks that match this `glob`; repeatable")
	flags.Optional(fs, &o.NTasks, flags.AtLeast(1), "n-tasks", "l", "run at most this `number` of tasks")
	flags.Optional(fs, &o.RegistryURL, flags.String, "registry-url", "", "`URL` of a dataset registry")
	flags.Optional(fs, &o.RegistryPath, flags.String, "registry-path", "", "registry `file`")
	flags.Optional(fs, &o.GitURL, flags.String, "task-git-url", "", "`URL` of the git repository that --path is in")
	flags.Optional(fs, &o.GitCommit, flags.String, "task-git-commit", "", "`commit` of that repository")
}

// DefineExtra defines what is added to tasks.
func DefineExtra(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.List(fs, &o.ExtraInstructionPaths, "extra-instruction-path", "", "append this `file` to every instruction; repeatable")
	flags.List(fs, &o.Artifacts, "artifact", "", "collect this `path` from the sandbox; repeatable")
}

// refusePlugins accepts the plugins of a job, for Harbor's answers to wrong
// ones; the check of the configuration refuses the others.
func refusePlugins(fs *pflag.FlagSet, f *Flags) {
	o := &f.Set
	flags.List(fs, &o.Plugins, "plugin", "", "Python `module:Class` of a plugin; refused")
	flags.List(fs, &o.PluginKwargs, "pk", "", "setting `key=value` of the plugin; refused", "plugin-kwarg")
	flags.Hide(fs, "plugin", "pk")
}

// DefineAccept defines the flag with which a job is resumed after harmless changes.
func DefineAccept(fs *pflag.FlagSet, f *Flags) {
	fs.BoolVar(&f.AcceptHarmless, "accept-harmless", false, "resume a job although settings were changed that do not change results")
}

// DefineHub accepts the flags of Harbor's hosted hub, so that a wrong
// combination gets Harbor's answer and a right one an honest refusal.
func DefineHub(fs *pflag.FlagSet, f *Flags) {
	fs.BoolVar(&f.Hub.Upload, "upload", false, "not available: proctor has no hosted hub")
	flags.Optional(fs, &f.Hub.Public, flags.Bool, "public", "", "needs --upload")
	flags.Optional(fs, &f.Hub.Public, flags.NotBool, "private", "", "needs --upload")
	flags.List(fs, &f.Hub.ShareOrgs, "share-org", "", "needs --upload")
	flags.List(fs, &f.Hub.ShareUsers, "share-user", "", "needs --upload")
	flags.Hide(fs, "upload", "public", "private", "share-org", "share-user")
}

// refuseTraces refuses the flags of Harbor's trace export.
func refuseTraces(fs *pflag.FlagSet) {
	const why = "a run exports no trajectories; 'proctor traj export' does"
	flags.Refuse(fs, why, true, "export-traces", "export-sharegpt", "export-push", "export-instruction-metadata", "export-verifier-metadata")
	flags.Refuse(fs, why, false, "export-episodes", "export-repo")
}

// RefusePlugins refuses the plugins of a job where there is none.
func RefusePlugins(fs *pflag.FlagSet) {
	flags.Refuse(fs, "it names Python code, which proctor cannot run", false, "plugin")
	flags.Refuse(fs, "it is a setting of a plugin in Python, which proctor cannot run", false, "pk", "plugin-kwarg")
}

func parsePolicy(s string) (string, error) {
	return flags.OneOf(strings.ToLower(s), "a policy", []string{"auto", "limit", "request", "guarantee", "ignore"}, nil)
}

// CheckHub answers wrong combinations of the hub's flags as Harbor does.
func (f *Flags) CheckHub() error {
	switch {
	case f.Hub.Upload:
		return nil
	case f.Hub.Public != nil:
		return exitcode.Usagef("--public / --private requires --upload.")
	case len(f.Hub.ShareOrgs)+len(f.Hub.ShareUsers) > 0:
		return exitcode.Usagef("--share-org / --share-user requires --upload.")
	}
	return nil
}
