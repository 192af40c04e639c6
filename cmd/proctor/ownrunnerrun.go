package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proctor-run/proctor/internal/evaluation"
	"github.com/proctor-run/proctor/internal/flags"
	"github.com/proctor-run/proctor/internal/jobcli"
	"github.com/proctor-run/proctor/ownrunner"
	"github.com/proctor-run/proctor/trial"
)

// Variables that stand for flags of ownrunner run (outcome mapping, section 12).
const (
	manifestVariable    = "CHALLENGE_OWN_RUNNER_DIGEST_MANIFEST"
	cacheRootVariable   = "CHALLENGE_OWN_RUNNER_CACHE_ROOT"
	concurrencyVariable = "CHALLENGE_EVALUATION_CONCURRENCY"
	aggregationVariable = "CHALLENGE_PER_TASK_AGGREGATION"
)

// evaluationFlags are the flags of ownrunner run.
type evaluationFlags struct {
	run  *jobcli.Flags
	set  *pflag.FlagSet
	dir  string
	ids  []string
	root string // of the tasks

	manifest, agentDir string
	progress, logs     string // where events go
	cap                *int
	backstop           *float64
}

func newOwnrunnerRun(env *Env) *cobra.Command {
	f := &evaluationFlags{run: program(env).NewFlags()}
	cmd := &cobra.Command{
		Use:   "run --task TASK... --job-dir DIR",
		Short: "Run a whole evaluation and print its result line",
		Long: `run evaluates an agent at tasks as a consumer of result lines expects it: it plans
the attempts, checks the tasks against pinned digests, runs what has no record
yet, keeps a record of each trial in DIR/trials, and prints exactly one line
BASE_BENCHMARK_RESULT={...} on standard output, whatever happens. Everything else
goes to standard error, but for the events that --progress - and --logs - ask for.

A task is a task directory, a directory of tasks, or an id, whose directory is
found below --cache-root by the whole id or by its last part. With a manifest (see
'proctor ownrunner manifest') a task that differs or is not in it is refused before
anything runs.

The trials are those of 'proctor run', with sandboxes that are hardened unless
--hardened=false is given. DIR/job is their job directory, which all other commands
read. Where an agent did not complete, its trial has no reward. A trial as a whole
is bounded by the longest of what its tasks allow, and 900 seconds.

The same command resumes an evaluation that was interrupted or killed: finished
trials are kept. Another agent, model, number of attempts or policy is refused.

Of this machine's variables the agent gets LLM_COST_LIMIT and OPENROUTER_API_KEY, and
what --ae names, which may not look like another secret.

The exit code is 0 when the line has the job's result, also when that is failed; 1
when the job could not be run, and the line says why; 2, without a line, when the
command line is wrong.`,
		Example: `  proctor ownrunner run --task examples/tasks --job-dir eval -a oracle -e host
  proctor ownrunner run --task hello-world --cache-root examples/tasks --job-dir eval -k 3 \
    --digest-manifest digests.json --agent-import-path agent:Agent --agent-dir my-agent`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return evaluate(cmd.Context(), env, f) },
	}
	f.define(env, cmd)
	return cmd
}

func (f *evaluationFlags) define(env *Env, cmd *cobra.Command) {
	fs, p, o := cmd.Flags(), program(env), &f.run.Set
	f.set = fs
	fs.SortFlags = false
	flags.Topic(fs, "Task", func() {
		flags.List(fs, &f.ids, "task", "t", "a task `directory`, a directory of tasks, or an id below --cache-root; repeatable")
		fs.StringVar(&f.root, "cache-root", "", "`directory` of the tasks that are named by ids (default $"+cacheRootVariable+")")
		fs.StringVar(&f.manifest, "digest-manifest", "", "`file` with the digests of the tasks (default $"+manifestVariable+")")
	})
	flags.Topic(fs, "Agent", func() {
		p.DefineAgent(fs, f.run)
		jobcli.DefineHarborAgent(fs, f.run)
		jobcli.DefineModel(fs, &f.run.Model)
		jobcli.DefineGateway(fs, &f.run.Model, trial.GatewayOff) // the contract gives agents their keys
		jobcli.DefineBudgets(fs, &f.run.Model)
		fs.StringVar(&f.agentDir, "agent-dir", ".", "`directory` with the code of --agent-import-path")
		fs.Lookup("agent-import-path").Hidden = false
	})
	flags.Topic(fs, "Environment", func() {
		f.run.Hardened = true
		p.DefineEnvironment(fs, f.run)
		hardened := fs.Lookup("hardened")
		hardened.DefValue = "true"
		f.run.Hardened = true
		flags.List(fs, &o.EnvironmentKwargs, "ek", "", "setting `key=value` of the environment; repeatable", "environment-kwarg")
		flags.Optional(fs, &o.ForceBuild, flags.Bool, "force-build", "", "rebuild the image even if it exists")
	})
	flags.Topic(fs, "Job", func() { f.defineJob(fs) })
	flags.Topic(fs, "Score", func() {
		f.run.Policy.Define(fs, "`file` with the policy of the evaluation, which is fixed before anything runs, as JSON")
		f.run.Policy.DefineInstead(fs)
	})
	flags.Topic(fs, "Output", func() {
		fs.StringVar(&f.progress, "progress", "", "`where` progress events go: - for standard output, or a receiver's base URL (default $EVAL_PROGRESS_BASE_URL)")
		fs.StringVar(&f.logs, "logs", "", "`where` the log stream goes: - for standard output, or a receiver's base URL (default $EVAL_LOG_BASE_URL)")
		jobcli.DefineProgress(fs, f.run)
	})
	for _, name := range []string{"cache-root", "job-dir", "agent-dir"} {
		if err := cmd.MarkFlagDirname(name); err != nil {
			panic(err) // the flag is not defined
		}
	}
	flags.ByTopic(cmd)
}

func (f *evaluationFlags) defineJob(fs *pflag.FlagSet) {
	o := &f.run.Set
	fs.StringVar(&f.dir, "job-dir", "", "`directory` of the evaluation, new or to be resumed")
	flags.Optional(fs, &o.NAttempts, flags.Int, "n-attempts", "k", "`number` of attempts at each task (default 1)")
	flags.Optional(fs, &o.NConcurrent, flags.Int, "n-concurrent", "n", "`number` of trials that run at once (default: as many as fit on this machine)")
	flags.Optional(fs, &f.cap, flags.Int, "concurrency-cap", "", "at most this `number` of trials where none is given (default $"+concurrencyVariable+")")
	flags.Optional(fs, &o.MaxRetries, flags.Int, "max-retries", "r", "`number` that the lock records; a failed trial is not run again")
	flags.Optional(fs, &f.backstop, flags.Float, "backstop", "", "`seconds` that a trial may take as a whole (default: what its tasks allow, and 900)")
	jobcli.DefineMultipliers(fs, o)
	jobcli.DefineEnvFile(fs, f.run)
	jobcli.DefineSecrets(fs, f.run)
}

// check finds what is wrong with the command line, and completes it from variables.
func (f *evaluationFlags) check(env *Env) error {
	o := &f.run.Set
	switch {
	case f.dir == "":
		return withHint(usageErrorf("there is no directory for the evaluation"), "--job-dir DIR names it")
	case len(f.ids) == 0:
		return withHint(usageErrorf("there is no task to be evaluated"), "--task TASK names one; it can be given several times")
	case len(o.Models) > 1:
		return usageErrorf("--model is given %d times: an evaluation has one model", len(o.Models))
	case f.backstop != nil && !(*f.backstop > 0):
		return usageErrorf("--backstop %v: want a number of seconds above 0", *f.backstop)
	}
	for _, number := range []struct {
		flag  string
		value *int
		least int
	}{
		{"n-attempts", o.NAttempts, 1}, {"n-concurrent", o.NConcurrent, 1}, {"concurrency-cap", f.cap, 1}, {"max-retries", o.MaxRetries, 0},
	} {
		if number.value != nil && *number.value < number.least {
			return usageErrorf("--%s %d: want at least %d", number.flag, *number.value, number.least)
		}
	}
	if _, err := loadEnvFile(env, f.run.EnvFile); err != nil {
		return err
	}
	for _, step := range []func(*Env) error{f.fromVariables, f.checkPolicy, f.checkAgentEnv, f.chooseAgent} {
		if err := step(env); err != nil {
			return err
		}
	}
	return nil
}

func (f *evaluationFlags) checkPolicy(*Env) error {
	f.run.OutcomeLine = true // which --score-by-policy is about
	if err := f.run.CheckPolicy(); err != nil {
		return err
	}
	if f.run.Policy.Instead && f.run.Policy.Asked() == nil {
		return withHint(usageErrorf("--score-by-policy: there is no policy"), "--aggregate, --keep and --policy say one")
	}
	return nil
}

// fromVariables takes what no flag gave from the environment.
func (f *evaluationFlags) fromVariables(env *Env) error {
	if !f.set.Changed("digest-manifest") {
		f.manifest = env.Getenv(manifestVariable)
	}
	if !f.set.Changed("cache-root") {
		f.root = env.Getenv(cacheRootVariable)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(env.Getenv(concurrencyVariable))); err == nil && n >= 1 && f.cap == nil {
		f.cap = &n
	}
	if mode, ok := env.Lookup(aggregationVariable); ok && !f.set.Changed("aggregate") && !f.set.Changed("policy") {
		if err := f.set.Set("aggregate", mode); err != nil {
			return usageErrorf("$%s: %w", aggregationVariable, err)
		}
	}
	return nil
}

// checkAgentEnv refuses variables that may not reach an agent, and adds those that do
// (outcome mapping, section 13.4). Their values stay where they are: what is written has
// their names.
func (f *evaluationFlags) checkAgentEnv(env *Env) error {
	o := &f.run.Set
	var given []string
	for _, text := range o.AgentEnv {
		name, _, _ := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); ownrunner.IsForbiddenName(name) {
			return usageErrorf("--ae %s: a variable whose name looks like a secret's may not reach an agent", name)
		}
		given = append(given, name)
	}
	f.run.Secrets = append(f.run.Secrets, given...) // users' values stand in no log
	all := map[string]string{}
	for _, text := range env.Environ {
		if name, value, ok := strings.Cut(text, "="); ok && value != "" {
			all[name] = value
		}
	}
	for name := range ownrunner.AgentEnv(all) {
		if !slices.Contains(given, name) {
			o.AgentEnv = append(o.AgentEnv, fmt.Sprintf("%s=${%s}", name, name))
		}
	}
	slices.Sort(o.AgentEnv)
	return nil
}

// chooseAgent makes an agent of Python code one of the agents that there are.
func (f *evaluationFlags) chooseAgent(*Env) error {
	o := &f.run.Set
	if o.AgentImportPath == nil && !f.set.Changed("agent-dir") {
		return nil
	}
	if o.Agent != nil {
		return usageErrorf("--agent %s names one agent, and --agent-import-path or --agent-dir another", *o.Agent)
	}
	path := "agent:Agent"
	if o.AgentImportPath != nil {
		path = *o.AgentImportPath
	}
	dir, err := filepath.Abs(f.agentDir)
	if err != nil {
		return usageErrorf("--agent-dir: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return usageErrorf("--agent-dir %s: expected a directory with the agent's code", f.agentDir)
	}
	o.Agent, o.AgentImportPath = new("python"), nil
	o.AgentKwargs = append(o.AgentKwargs, "import="+path, "dir="+dir)
	return nil
}

// agentName is what the lock and the records call the agent: the module of Python code,
// else the agent's own name.
func (f *evaluationFlags) agentName() string {
	if f.run.Set.Agent == nil {
		return "oracle"
	}
	if *f.run.Set.Agent != "python" {
		return *f.run.Set.Agent
	}
	for _, text := range slices.Backward(f.run.Set.AgentKwargs) {
		if path, ok := strings.CutPrefix(text, "import="); ok {
			module, _, _ := strings.Cut(path, ":")
			return module
		}
	}
	return "agent"
}

// tasks finds the tasks that are named.
func (f *evaluationFlags) tasks() ([]evaluation.Task, error) {
	var list []evaluation.Task
	for _, id := range f.ids {
		found, err := f.tasksOf(id)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	return list, nil
}

func (f *evaluationFlags) tasksOf(id string) ([]evaluation.Task, error) {
	if f.root != "" && filepath.IsLocal(id) {
		for _, below := range []string{id, id[strings.LastIndexByte(id, '/')+1:]} {
			dir := filepath.Join(f.root, below)
			if !isFile(filepath.Join(dir, "task.toml")) {
				continue
			}
			dir, err := filepath.Abs(dir)
			return []evaluation.Task{{Name: id, Dir: dir}}, err
		}
	}
	if !isDirectory(id) {
		where := "no task directory is there"
		if f.root != "" {
			where += ", nor below " + f.root
		}
		return nil, fmt.Errorf("task %q: %s", id, where)
	}
	dirs, err := tasksAt(id)
	if err != nil {
		return nil, err
	}
	list := make([]evaluation.Task, len(dirs))
	for i, dir := range dirs {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("task %q: %w", id, err)
		}
		list[i] = evaluation.Task{Name: filepath.Base(dir), Dir: dir}
	}
	return list, nil
}
