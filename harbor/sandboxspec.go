package harbor

import (
	"math"
	"path/filepath"
	"time"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// SandboxOptions are what a run says of a task's sandboxes besides the task.
// The zero value overrides nothing and can do nothing.
type SandboxOptions struct {
	Backend string // its name, for messages
	Can     sandbox.Capabilities
	// Host finds variables of the host, for templates.
	Host Lookup
	// Env is added to the task's.
	Env Env
	// ExtraCompose are compose files that are merged on top of the task's.
	ExtraCompose []string
	// Overrides replace what the task asks for.
	OverrideCPUs, OverrideMemoryMB, OverrideGPUs *int
	OverrideTPU                                  *TPU
	// CPUPolicy and MemoryPolicy are "auto" (also when empty), "ignore",
	// "limit", "request" or "guarantee".
	CPUPolicy, MemoryPolicy string
	// Warn is told of what is not enforced; may be nil.
	Warn func(format string, args ...any)
}

// CheckSupport names what the task asks for and the backend does not have
// (section 4.1).
func (t *Task) CheckSupport(o SandboxOptions) error {
	env := &t.Config.Environment
	gpus := overridden(o.OverrideGPUs, env.GPUs)
	switch {
	case amount(gpus) > 0 && !o.Can.GPUs:
		return exception.Errorf(exception.RuntimeError, "Task requires %d GPU(s) but %s environment does not support GPU allocation.", amount(gpus), o.Backend)
	case (env.TPU != nil || o.OverrideTPU != nil) && !o.Can.TPUs:
		tpu := env.TPU
		if tpu == nil {
			tpu = o.OverrideTPU
		}
		return exception.Errorf(exception.RuntimeError, "Task requires a TPU slice (type=%s, topology=%s) but %s environment does not support TPU allocation.", tpu.Type, tpu.Topology, o.Backend)
	}
	return nil
}

// CheckOS is the error of a task for an operating system that the backend does
// not run. It belongs to the start of the environment (sections 4.1 and 5.5).
func (t *Task) CheckOS(backend string, can sandbox.Capabilities) error {
	if t.Config.Environment.OS != Windows || can.Windows {
		return nil
	}
	if backend == sandbox.BackendDocker {
		return exception.New(exception.RuntimeError, "Task declares [environment].os = 'windows' but the Docker daemon is running in 'linux' container mode.")
	}
	return exception.Errorf(exception.RuntimeError, "Task declares [environment].os = 'windows' but the %s environment does not support Windows containers.", backend)
}

// SandboxSpec describes the sandbox that an environment table and its directory
// define, without a name, labels and mounts (sections 5.3 and 5.8). When those
// are set, CompleteCompose has to be called.
func (t *Task) SandboxSpec(table *Environment, dir string, network Network, o SandboxOptions) (sandbox.Spec, error) {
	if err := t.checkCompose(dir, network, o); err != nil {
		return sandbox.Spec{}, err
	}
	env, err := ResolveEnv(table.Env, o.Host)
	if err != nil {
		return sandbox.Spec{}, err
	}
	image, err := t.image(table, dir, o)
	if err != nil {
		return sandbox.Spec{}, err
	}
	resources, err := o.resources(t, table)
	if err != nil {
		return sandbox.Spec{}, err
	}
	spec := sandbox.Spec{
		Image:     image,
		Env:       append(Assignments(env), Assignments(o.Env)...),
		Resources: resources,
		Network:   sandbox.Network{Mode: sandbox.NetworkMode(network.Mode), Hosts: network.AllowedHosts},
	}
	if table.Workdir != nil {
		spec.Workdir = *table.Workdir
	}
	if o.isCompose(dir) {
		if err := t.compose(&spec, env, table, dir, o); err != nil {
			return sandbox.Spec{}, err
		}
	}
	if network.Mode == NoNetwork && !o.Can.NoNetwork || network.Mode == Allowlist && !o.Can.Allowlist {
		return spec, exception.Errorf(exception.ValueError, "network_mode='%s' is not supported by %s environment.", network.Mode, o.Backend)
	}
	return spec, nil
}

// Assignments writes variables as KEY=VALUE.
func Assignments(env Env) []string {
	list := make([]string, 0, env.Len())
	for k, v := range env.All() {
		list = append(list, k+"="+v)
	}
	return list
}

// image chooses between a prebuilt image and a build. The definition must be
// there unless the backend brings its own root.
func (t *Task) image(table *Environment, dir string, o SandboxOptions) (sandbox.Image, error) {
	img := sandbox.Image{}
	if table.DockerImage != nil {
		img.Ref = *table.DockerImage
	}
	if exists(filepath.Join(dir, "Dockerfile")) {
		img.Build = &sandbox.Build{ContextDir: dir, Name: t.ShortName}
	}
	if img.Ref == "" && img.Build == nil && !o.Can.OwnRoot && !o.isCompose(dir) {
		return img, exception.Errorf(exception.FileNotFoundError, "Task environment directory %s has no environment definition. "+
			"Expected a Dockerfile, a docker-compose.yaml or [environment].docker_image.", dir)
	}
	return img, nil
}

// resources applies overrides and policies (sections 4.1 and 5.8).
func (o SandboxOptions) resources(t *Task, table *Environment) (sandbox.Resources, error) {
	cpus, err := o.limited("CPU", o.CPUPolicy, overridden(o.OverrideCPUs, table.CPUs), o.Can.CPULimit)
	if err != nil {
		return sandbox.Resources{}, err
	}
	memory, err := o.limited("Memory", o.MemoryPolicy, overridden(o.OverrideMemoryMB, table.MemoryMB), o.Can.MemoryLimit)
	if err != nil {
		return sandbox.Resources{}, err
	}
	gpus := overridden(o.OverrideGPUs, t.Config.Environment.GPUs)
	return sandbox.Resources{CPUs: float64(cpus), MemoryMB: memory, GPUs: int(amount(gpus))}, nil
}

func overridden(n *int, task *value.Int) *value.Int {
	if n != nil {
		return new(value.NewInt(int64(*n)))
	}
	return task
}

// amount reads a resource number; none and what is beyond any machine count as
// 0 and as very many.
func amount(n *value.Int) int64 {
	if n == nil {
		return 0
	}
	if v, ok := n.Int64(); ok {
		return v
	}
	return int64(n.Sign()) << 40
}

// inSentence spells a resource that begins a sentence elsewhere.
func inSentence(what string) string {
	if what == "Memory" {
		return "memory"
	}
	return what
}

// limited returns the limit that a policy makes of a value. Under policy auto a
// backend that cannot enforce it only warns.
func (o SandboxOptions) limited(what, policy string, value *value.Int, enforced bool) (int64, error) {
	switch policy {
	case "ignore":
		return 0, nil
	case "request", "guarantee":
		return 0, exception.Errorf(exception.ValueError, "%s environment does not support %s resource requests.", o.Backend, inSentence(what))
	case "limit":
		if value == nil {
			return 0, exception.Errorf(exception.ValueError, "%s resource mode 'limit' requires a task value or numeric override.", what)
		}
		if !enforced {
			return 0, exception.Errorf(exception.ValueError, "%s environment does not support %s resource limits.", o.Backend, inSentence(what))
		}
	}
	if value != nil && amount(value) > 0 && !enforced {
		if o.Warn != nil {
			o.Warn("the %s limit of %s is not enforced in environment %s", what, value, o.Backend)
		}
		return 0, nil
	}
	return max(amount(value), 0), nil
}

// Seconds converts seconds of a task file, within what a Duration can hold.
func Seconds(s float64) time.Duration {
	switch {
	case s <= 0 || math.IsNaN(s):
		return 0
	case s >= math.MaxInt64/float64(time.Second):
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
