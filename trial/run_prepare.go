package trial

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/pyvalue"
	"github.com/proctor-run/proctor/sandbox"
)

// prepare loads the task and builds everything that can be built without a
// sandbox (Harbor job format, section 3.1).
func (a *attempt) prepare() error {
	task, err := loadTask(a.cfg)
	if err != nil {
		return err
	}
	a.task = task
	a.res.TaskName = task.Name
	sum, err := harbor.Checksum(task.Dir)
	if err != nil {
		return err
	}
	a.res.TaskChecksum = sum
	if err := a.refuseUnsupported(); err != nil {
		return err
	}
	if a.agent, err = a.newAgent(); err != nil {
		return err
	}
	a.res.AgentInfo = agentInfo(a.cfg.Agent, a.agent.Info())
	a.spec, err = a.newSpec()
	return err
}

func loadTask(cfg Config) (*harbor.Task, error) {
	if cfg.Task.Kind() != LocalTask {
		return nil, exceptionf(valueError, "task %q is not a local directory; proctor runs local task directories", taskBaseName(cfg.Task))
	}
	return harbor.Load(*cfg.Task.Path, harbor.LoadOptions{ExtraInstructions: cfg.ExtraInstructionPaths})
}

// taskBaseName is what a task is called before it is loaded.
func taskBaseName(t TaskConfig) string {
	switch {
	case t.Name != nil:
		return *t.Name
	case t.Path != nil:
		return path.Base(filepath.ToSlash(*t.Path))
	}
	return ""
}

// refuseUnsupported names what the task asks for and no backend here has, in
// Harbor's words where it has them (Harbor task format, section 4.1).
func (a *attempt) refuseUnsupported() error {
	env := &a.task.Config.Environment
	caps := a.r.Backend.Capabilities()
	name := a.r.Backend.Name()
	switch {
	case env.OS == harbor.Windows && !caps.Windows:
		return exceptionf(runtimeError, "Task declares [environment].os = 'windows' but the %s environment does not support Windows containers.", name)
	case count(a.gpus()) > 0 && !caps.GPUs:
		return exceptionf(runtimeError, "Task requires %d GPU(s) but %s environment does not support GPU allocation.", count(a.gpus()), name)
	case (env.TPU != nil || a.cfg.Environment.OverrideTPU != nil) && !caps.TPUs:
		tpu := env.TPU
		if tpu == nil {
			tpu = a.cfg.Environment.OverrideTPU
		}
		return exceptionf(runtimeError, "Task requires a TPU slice (type=%s, topology=%s) but %s environment does not support TPU allocation.", tpu.Type, tpu.Topology, name)
	}
	return a.planNetworks()
}

// planNetworks refuses phases that need another network policy than their
// environment starts with: no backend here can change it.
func (a *attempt) planNetworks() error {
	if !a.task.Config.HasSteps() {
		plan := a.network(nil)
		return plan.CheckSwitching("")
	}
	for i := range a.task.Config.Steps {
		step := &a.task.Config.Steps[i]
		plan := a.network(step)
		if err := plan.CheckSwitching(step.Name); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) network(step *harbor.Step) harbor.NetworkPlan {
	return a.task.Config.PlanNetwork(step, a.cfg.Agent.ExtraAllowedHosts, a.cfg.Environment.ExtraAllowedHosts)
}

func (a *attempt) gpus() *pyvalue.Int {
	if n := a.cfg.Environment.OverrideGPUs; n != nil {
		return new(pyvalue.NewInt(int64(*n)))
	}
	return a.task.Config.Environment.GPUs
}

// count reads a resource number; none and what is beyond any machine count as
// 0 and as very many.
func count(n *pyvalue.Int) int64 {
	if n == nil {
		return 0
	}
	if v, ok := n.Int64(); ok {
		return v
	}
	return int64(n.Sign()) << 40
}

// newAgent builds the agent (Harbor agent format, section 1.4).
func (a *attempt) newAgent() (agent.Agent, error) {
	cfg := a.cfg.Agent
	env, err := harbor.ResolveEnv(cfg.Env.Map, a.r.Lookup)
	if err != nil {
		return nil, err
	}
	vars := assignments(env)
	name := ""
	if cfg.Name != nil {
		name = *cfg.Name
	}
	switch name {
	case "oracle":
		script := a.task.SolutionScript(nil)
		a.oracle = &agent.Oracle{
			Dir:    filepath.Dir(script),
			Script: filepath.Base(script),
			Env: func() ([]string, error) {
				own, err := harbor.ResolveEnv(a.task.Config.Solution.Env, a.r.Lookup)
				return append(vars[:len(vars):len(vars)], assignments(own)...), err
			},
		}
		return a.oracle, nil
	case "nop":
		return agent.Nop{}, nil
	case "command":
		return newCommandAgent(cfg, vars)
	}
	if name == "" && cfg.ImportPath != nil {
		return nil, exceptionf(valueError, "agent %q is Python code, which proctor cannot run; use -a command", *cfg.ImportPath)
	}
	return nil, exceptionf(valueError, "Agent name %s is not valid. Valid agent names: oracle, nop, command", name)
}

func newCommandAgent(cfg AgentConfig, vars []string) (agent.Agent, error) {
	c := agent.Command{Env: vars}
	if cfg.ModelName != nil {
		c.Model = *cfg.ModelName
	}
	for key, dst := range map[string]*string{"install": &c.Install, "run": &c.Command, "version": &c.Version} {
		if cfg.Kwargs == nil {
			break
		}
		v, ok := cfg.Kwargs.Get(key)
		if !ok {
			continue
		}
		text, isText := v.(pyvalue.Str)
		if !isText {
			return nil, exceptionf(valueError, "agent command: setting %s is %s, want text", key, pyvalue.Repr(v))
		}
		*dst = string(text)
	}
	return agent.NewCommand(c)
}

// assignments writes an Env as KEY=VALUE.
func assignments(env harbor.Env) []string {
	list := make([]string, 0, env.Len())
	for k, v := range env.All() {
		list = append(list, k+"="+v)
	}
	return list
}

// newSpec describes the sandbox of the agent (Harbor task format, sections
// 4.6, 5.3 and 5.8).
func (a *attempt) newSpec() (sandbox.Spec, error) {
	plan := a.network(nil)
	spec, err := a.environmentSpec(&a.task.Config.Environment, a.task.EnvironmentDir(), plan.AgentBaseline)
	if err != nil {
		return spec, err
	}
	for _, w := range plan.Warnings {
		a.warn("%s", w)
	}
	spec.Name = a.cfg.TrialName
	spec.Image.ForceBuild = a.cfg.Environment.ForceBuild
	if len(a.cfg.Environment.ExtraDockerCompose) > 0 {
		return spec, a.composeError()
	}
	spec.Mounts, err = a.mounts()
	return spec, err
}

// environmentSpec describes what an environment table and its directory
// define, without a name and mounts.
func (a *attempt) environmentSpec(table *harbor.Environment, dir string, network harbor.Network) (sandbox.Spec, error) {
	env, err := harbor.ResolveEnv(table.Env, a.r.Lookup)
	if err != nil {
		return sandbox.Spec{}, err
	}
	image, err := a.image(table, dir)
	if err != nil {
		return sandbox.Spec{}, err
	}
	resources, err := a.resources(table)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{
		Labels:    sandbox.Labels{Trial: a.cfg.TrialName, Owner: a.r.Owner},
		Image:     image,
		Env:       append(assignments(env), assignments(a.cfg.Environment.Env.Map)...),
		Resources: resources,
		Network:   sandbox.Network{Mode: sandbox.NetworkMode(network.Mode), Hosts: network.AllowedHosts},
	}
	if a.cfg.JobID != nil {
		spec.Labels.Job = a.cfg.JobID.String()
	}
	if table.Workdir != nil {
		spec.Workdir = *table.Workdir
	}
	return spec, a.checkNetwork(spec.Network.Mode)
}

func (a *attempt) checkNetwork(mode sandbox.NetworkMode) error {
	caps := a.r.Backend.Capabilities()
	if mode == sandbox.NetworkNone && !caps.NoNetwork || mode == sandbox.NetworkAllowlist && !caps.Allowlist {
		return exceptionf(valueError, "network_mode='%s' is not supported by %s environment.", mode, a.r.Backend.Name())
	}
	return nil
}

// image chooses between a prebuilt image and a build. The definition must be
// there unless the backend brings its own root.
func (a *attempt) image(table *harbor.Environment, dir string) (sandbox.Image, error) {
	img := sandbox.Image{}
	if table.DockerImage != nil {
		img.Ref = *table.DockerImage
	}
	if isThere(filepath.Join(dir, "docker-compose.yaml")) {
		return img, a.composeError()
	}
	if isThere(filepath.Join(dir, "Dockerfile")) {
		img.Build = &sandbox.Build{ContextDir: dir, Name: a.task.ShortName}
	}
	if img.Ref == "" && img.Build == nil && a.r.Backend.Name() != BackendHost {
		return img, exceptionf(fileNotFoundError, "Task environment directory %s has no environment definition. "+
			"Expected a Dockerfile, a docker-compose.yaml or [environment].docker_image.", dir)
	}
	return img, nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (a *attempt) composeError() error {
	return exceptionf(runtimeError, "task %q is a compose project, which this version of proctor cannot run", a.task.Name)
}

// resources applies overrides and policies (Harbor task format, sections 4.1
// and 5.8).
func (a *attempt) resources(table *harbor.Environment) (sandbox.Resources, error) {
	cfg := a.cfg.Environment
	caps := a.r.Backend.Capabilities()
	cpus, err := a.limited("CPU", cfg.CPUEnforcementPolicy, override(cfg.OverrideCPUs, table.CPUs), caps.CPULimit)
	if err != nil {
		return sandbox.Resources{}, err
	}
	memory, err := a.limited("Memory", cfg.MemoryEnforcementPolicy, override(cfg.OverrideMemoryMB, table.MemoryMB), caps.MemoryLimit)
	if err != nil {
		return sandbox.Resources{}, err
	}
	return sandbox.Resources{CPUs: float64(cpus), MemoryMB: memory, GPUs: int(count(a.gpus()))}, nil
}

func override(n *int, task *pyvalue.Int) *pyvalue.Int {
	if n != nil {
		return new(pyvalue.NewInt(int64(*n)))
	}
	return task
}

// limited returns the limit that a policy makes of a value. Under policy auto a
// backend that cannot enforce it only warns.
func (a *attempt) limited(what, policy string, value *pyvalue.Int, enforced bool) (int64, error) {
	switch policy {
	case "ignore":
		return 0, nil
	case "request", "guarantee":
		return 0, exceptionf(valueError, "%s environment does not support %s resource requests.", a.r.Backend.Name(), what)
	case "limit":
		if value == nil {
			return 0, exceptionf(valueError, "%s resource mode 'limit' requires a task value or numeric override.", what)
		}
		if !enforced {
			return 0, exceptionf(valueError, "%s environment does not support %s resource limits.", a.r.Backend.Name(), what)
		}
	}
	if value != nil && count(value) > 0 && !enforced {
		a.warn("the %s limit of %s is not enforced in environment %s", what, value, a.r.Backend.Name())
		return 0, nil
	}
	return max(count(value), 0), nil
}

// mounts are the trial's directories, then those of the configuration.
func (a *attempt) mounts() ([]sandbox.Mount, error) {
	var all []sandbox.Mount
	if a.r.Backend.Capabilities().Mounted {
		for _, d := range mountedDirs {
			all = append(all, sandbox.Mount{Source: a.hostDir(d.host), Target: d.inside})
		}
	}
	for _, m := range a.cfg.Environment.Mounts {
		mount, err := bindMount(m)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	return all, nil
}

func bindMount(m *pyvalue.Object) (sandbox.Mount, error) {
	text := func(key string) string {
		v, _ := m.Get(key)
		s, _ := v.(pyvalue.Str)
		return string(s)
	}
	if kind := text("type"); kind != "bind" {
		return sandbox.Mount{}, exceptionf(valueError, "mount of type '%s' on %s: proctor mounts directories of the host only (type 'bind')", kind, text("target"))
	}
	source, err := filepath.Abs(text("source"))
	if err != nil {
		return sandbox.Mount{}, fmt.Errorf("mount on %q: %w", text("target"), err)
	}
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return sandbox.Mount{}, exceptionf(fileNotFoundError, "mount on %s: %s does not exist", text("target"), source)
	}
	readOnly, _ := m.Get("read_only")
	ro, _ := readOnly.(pyvalue.Bool)
	return sandbox.Mount{Source: source, Target: text("target"), ReadOnly: bool(ro)}, nil
}
