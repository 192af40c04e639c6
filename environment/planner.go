package environment

import (
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

// Planner turns what a task and a run ask for into specifications of sandboxes.
// Backend, its name for messages, and Task are needed; the other fields override
// nothing when they are zero.
type Planner struct {
	Backend string
	Can     sandbox.Capabilities
	Task    *harbor.Task
	Labels  sandbox.Labels
	// Lookup finds variables of the host, for templates.
	Lookup harbor.Lookup
	// Env is added to the task's.
	Env harbor.Env
	// Overrides replace what the task asks for.
	OverrideCPUs, OverrideMemoryMB, OverrideStorageMB, OverrideGPUs *int
	OverrideTPU                                                     *harbor.TPU
	// CPUPolicy and MemoryPolicy are "auto" (also when empty), "ignore",
	// "limit", "request" or "guarantee".
	CPUPolicy, MemoryPolicy string
	// Warn is called with what is not enforced; it may be nil.
	Warn func(format string, args ...any)
}

// Request describes one of a task's sandboxes.
type Request struct {
	Name string
	// Table and Dir define the sandbox; nil means the agent's environment, and
	// Dir is not read then.
	Table *harbor.Environment
	Dir   string
	// Network is the policy that the sandbox starts with.
	Network harbor.Network
	// ExtraCompose are compose files that are merged on top of the task's.
	ExtraCompose []string
	// ForceBuild: the image is built even if it exists.
	ForceBuild bool
	Mounts     []sandbox.Mount
}

// Check names what the task asks for and the backend does not have (section 4.1).
func (p *Planner) Check() error {
	env := &p.Task.Config.Environment
	gpus := overridden(p.OverrideGPUs, env.GPUs)
	switch {
	case amount(gpus) > 0 && !p.Can.GPUs:
		return exception.Errorf(exception.RuntimeError, "Task requires %d GPU(s) but %s environment does not support GPU allocation.", amount(gpus), p.Backend)
	case (env.TPU != nil || p.OverrideTPU != nil) && !p.Can.TPUs:
		tpu := env.TPU
		if tpu == nil {
			tpu = p.OverrideTPU
		}
		return exception.Errorf(exception.RuntimeError, "Task requires a TPU slice (type=%s, topology=%s) but %s environment does not support TPU allocation.",
			tpu.Type, tpu.Topology, p.Backend)
	}
	return nil
}

// checkOS is the error of a task for an operating system that the backend does
// not run. It belongs to the start of the environment (sections 4.1 and 5.5).
func checkOS(t *harbor.Task, b sandbox.Backend) error {
	if t.Config.Environment.OS != harbor.Windows || b.Capabilities().Windows {
		return nil
	}
	if b.Name() == sandbox.BackendDocker {
		return exception.New(exception.RuntimeError, "Task declares [environment].os = 'windows' but the Docker daemon is running in 'linux' container mode.")
	}
	return exception.Errorf(exception.RuntimeError, "Task declares [environment].os = 'windows' but the %s environment does not support Windows containers.", b.Name())
}

// Spec is the whole specification of a sandbox (sections 5.3 and 5.8).
func (p *Planner) Spec(r Request) (sandbox.Spec, error) {
	if r.Table == nil {
		r.Table, r.Dir = &p.Task.Config.Environment, p.Task.EnvironmentDir()
	}
	spec, err := p.definition(&r)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec.Name, spec.Labels, spec.Mounts = r.Name, p.Labels, r.Mounts
	spec.Image.ForceBuild = r.ForceBuild
	if spec.Compose != nil {
		p.completeCompose(&spec)
	}
	return spec, nil
}

// definition is what the environment table and its directory say.
func (p *Planner) definition(r *Request) (sandbox.Spec, error) {
	if err := p.checkCompose(r); err != nil {
		return sandbox.Spec{}, err
	}
	env, err := harbor.ResolveEnv(r.Table.Env, p.Lookup)
	if err != nil {
		return sandbox.Spec{}, err
	}
	image, err := p.image(r)
	if err != nil {
		return sandbox.Spec{}, err
	}
	resources, err := p.resources(r.Table)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{
		Image:     image,
		Env:       append(harbor.Assignments(env), harbor.Assignments(p.Env)...),
		Resources: resources,
		Network:   sandbox.Network{Mode: sandbox.NetworkMode(r.Network.Mode), Hosts: r.Network.AllowedHosts},
	}
	if r.Table.Workdir != nil {
		spec.Workdir = *r.Table.Workdir
	}
	if r.isCompose() {
		if err := p.compose(&spec, env, r); err != nil {
			return sandbox.Spec{}, err
		}
	}
	if mode := r.Network.Mode; mode == harbor.NoNetwork && !p.Can.NoNetwork || mode == harbor.Allowlist && !p.Can.Allowlist {
		return spec, exception.Errorf(exception.ValueError, "network_mode='%s' is not supported by %s environment.", mode, p.Backend)
	}
	return spec, nil
}

// image chooses between a prebuilt image and a build. The definition must be
// there unless the backend brings its own root.
func (p *Planner) image(r *Request) (sandbox.Image, error) {
	img := sandbox.Image{}
	if r.Table.DockerImage != nil {
		img.Ref = *r.Table.DockerImage
	}
	if harbor.Has(r.Dir, harbor.Dockerfile) {
		img.Build = &sandbox.Build{ContextDir: r.Dir, Name: p.Task.ShortName}
	}
	if img.Ref == "" && img.Build == nil && !p.Can.OwnRoot && !r.isCompose() {
		return img, exception.Errorf(exception.FileNotFoundError, "Task environment directory %s has no environment definition. "+
			"Expected a Dockerfile, a docker-compose.yaml or [environment].docker_image.", r.Dir)
	}
	return img, nil
}
