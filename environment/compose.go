package environment

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

// Variables that only the runner sets for compose files (section 5.6).
const (
	imageNameVar    = "MAIN_IMAGE_NAME"
	contextDirVar   = "CONTEXT_DIR"
	prebuiltNameVar = "PREBUILT_IMAGE_NAME"
	cpusVar         = "CPUS"
	memoryVar       = "MEMORY"
)

// logVars are set for each mount whose target ends in the directory: the
// directory on the host, and in the container.
var logVars = []struct{ dir, host, inside string }{
	{"/verifier", "HOST_VERIFIER_LOGS_PATH", "ENV_VERIFIER_LOGS_PATH"},
	{"/agent", "HOST_AGENT_LOGS_PATH", "ENV_AGENT_LOGS_PATH"},
	{"/artifacts", "HOST_ARTIFACTS_PATH", "ENV_ARTIFACTS_PATH"},
}

// isCompose reports whether a sandbox is a compose project: by a file of the
// task's or of the run's.
func (r *Request) isCompose() bool {
	return len(r.ExtraCompose) > 0 || harbor.Has(r.Dir, harbor.ComposeFile)
}

// checkCompose refuses compose projects where they cannot be run (section
// 4.1).
func (p *Planner) checkCompose(r *Request) error {
	for _, name := range r.ExtraCompose {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return exception.Errorf(exception.FileNotFoundError, "Extra Docker Compose file not found: %s", name)
		}
	}
	switch {
	case !r.isCompose():
		return nil
	case len(r.ExtraCompose) > 0 && !p.Can.Compose:
		return exception.Errorf(exception.ValueError, "%s environment does not support --extra-docker-compose.", p.Backend)
	case !p.Can.Compose:
		return exception.Errorf(exception.ValueError, "task '%s' is a compose project (%s), which environment %s cannot run; choose Docker with -e docker",
			p.Task.Name, filepath.Join(filepath.Base(r.Dir), harbor.ComposeFile), p.Backend)
	case r.Network.Mode == harbor.Allowlist:
		return exception.Errorf(exception.ValueError, "network_mode='allowlist' is not supported for a compose project: "+
			"its other services would have the whole network. Use network_mode 'no-network' or 'public'.")
	}
	return nil
}

// compose makes a Spec a compose project (section 5.4). The task's variables
// reach the interpolation of its files only; the run's reach commands as well
// (section 5.6). Name and mounts are added by completeCompose.
func (p *Planner) compose(spec *sandbox.Spec, env harbor.Env, r *Request) error {
	abs, err := filepath.Abs(r.Dir)
	if err != nil {
		return err
	}
	c := &sandbox.Compose{Dir: abs}
	if harbor.Has(abs, harbor.ComposeFile) {
		c.Files = append(c.Files, filepath.Join(abs, harbor.ComposeFile))
	}
	for _, name := range r.ExtraCompose {
		if name, err = filepath.Abs(name); err != nil {
			return err
		}
		c.Files = append(c.Files, name)
	}
	c.Env = append(harbor.Assignments(env), harbor.Assignments(p.Env)...)
	spec.Env = harbor.Assignments(p.Env)
	if spec.Image.Build == nil && spec.Image.Ref == "" {
		// The template is a build, and the files may say of what.
		spec.Image.Build = &sandbox.Build{ContextDir: abs, Name: p.Task.ShortName}
	}
	infra := []string{imageNameVar + "=" + harbor.ImageName(p.Task.ShortName), contextDirVar + "=" + abs}
	if cpus := overridden(p.OverrideCPUs, r.Table.CPUs); cpus != nil && p.CPUPolicy != "ignore" {
		infra = append(infra, cpusVar+"="+cpus.String())
	}
	if spec.Resources.MemoryMB > 0 {
		memory := overridden(p.OverrideMemoryMB, r.Table.MemoryMB)
		infra = append(infra, memoryVar+"="+memory.String()+"M")
	}
	c.Env = reserve(c.Env, infra, p.Warn)
	c.Hints = map[string]string{}
	for _, l := range harbor.LimitVariables() {
		c.Hints[l.Name] = l.Hint()
	}
	spec.Compose = c
	return nil
}

// completeCompose names the project of a Spec and sets the variables that depend
// on its name, image and mounts.
func (p *Planner) completeCompose(spec *sandbox.Spec) {
	c := spec.Compose
	c.Project = harbor.ProjectName(spec.Name)
	var infra []string
	if img := spec.Image; img.Ref != "" && (img.Build == nil || !img.ForceBuild) {
		infra = append(infra, prebuiltNameVar+"="+img.Ref)
	}
	for _, m := range spec.Mounts {
		for _, v := range logVars {
			if strings.HasSuffix(m.Target, v.dir) {
				infra = append(infra, v.inside+"="+m.Target, v.host+"="+filepath.ToSlash(m.Source))
			}
		}
	}
	c.Env = reserve(c.Env, infra, p.Warn)
}

// reserve appends variables that win, and tells which of the others are
// ignored for them.
func reserve(env, infra []string, warn func(format string, args ...any)) []string {
	for _, kv := range infra {
		name, _, _ := strings.Cut(kv, "=")
		for _, other := range env {
			if taken, _, _ := strings.Cut(other, "="); taken == name && warn != nil {
				warn("environment variable %s is ignored: compose files get it from the run", name)
				break
			}
		}
	}
	return append(env, infra...)
}
