package harbor

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/sandbox"
)

// composeFile is the one name of a compose file in an environment's directory.
const composeFile = "docker-compose.yaml"

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

// isCompose tells whether an environment is a compose project: by a file of
// the task's or of the run's.
func (o SandboxOptions) isCompose(dir string) bool {
	return len(o.ExtraCompose) > 0 || exists(filepath.Join(dir, composeFile))
}

// checkCompose refuses compose projects where they cannot be run (section
// 4.1).
func (t *Task) checkCompose(dir string, network Network, o SandboxOptions) error {
	for _, name := range o.ExtraCompose {
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return exception.Errorf(exception.FileNotFoundError, "Extra Docker Compose file not found: %s", name)
		}
	}
	switch {
	case !o.isCompose(dir):
		return nil
	case len(o.ExtraCompose) > 0 && !o.Can.Compose:
		return exception.Errorf(exception.ValueError, "%s environment does not support --extra-docker-compose.", o.Backend)
	case !o.Can.Compose:
		return exception.Errorf(exception.ValueError, "task '%s' is a compose project (%s), which environment %s cannot run; choose Docker with -e docker",
			t.Name, filepath.Join(filepath.Base(dir), composeFile), o.Backend)
	case network.Mode == Allowlist:
		return exception.Errorf(exception.ValueError, "network_mode='allowlist' is not supported for a compose project: "+
			"its other services would have the whole network. Use network_mode 'no-network' or 'public'.")
	}
	return nil
}

// compose makes a Spec a compose project (section 5.4). The task's variables
// reach the interpolation of its files only; the run's reach commands as well
// (section 5.6). Name and mounts are added by CompleteCompose.
func (t *Task) compose(spec *sandbox.Spec, env Env, table *Environment, dir string, o SandboxOptions) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	c := &sandbox.Compose{Dir: abs}
	if own := filepath.Join(abs, composeFile); exists(own) {
		c.Files = append(c.Files, own)
	}
	for _, name := range o.ExtraCompose {
		if name, err = filepath.Abs(name); err != nil {
			return err
		}
		c.Files = append(c.Files, name)
	}
	c.Env = append(Assignments(env), Assignments(o.Env)...)
	spec.Env = Assignments(o.Env)
	if spec.Image.Build == nil && spec.Image.Ref == "" {
		// The template is a build, and the files may say of what.
		spec.Image.Build = &sandbox.Build{ContextDir: abs, Name: t.ShortName}
	}
	infra := []string{imageNameVar + "=" + ImageName(t.ShortName), contextDirVar + "=" + abs}
	if cpus := overridden(o.OverrideCPUs, table.CPUs); cpus != nil && o.CPUPolicy != "ignore" {
		infra = append(infra, cpusVar+"="+cpus.String())
	}
	if spec.Resources.MemoryMB > 0 {
		memory := overridden(o.OverrideMemoryMB, table.MemoryMB)
		infra = append(infra, memoryVar+"="+memory.String()+"M")
	}
	c.Env = reserve(c.Env, infra, o.Warn)
	spec.Compose = c
	return nil
}

// CompleteCompose names the project of a Spec and sets the variables that
// depend on what the Spec lacked before: its name, image and mounts. A Spec
// without compose files is left as it is.
func CompleteCompose(spec *sandbox.Spec, warn func(format string, args ...any)) {
	c := spec.Compose
	if c == nil {
		return
	}
	c.Project = ProjectName(spec.Name)
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
	c.Env = reserve(c.Env, infra, warn)
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
