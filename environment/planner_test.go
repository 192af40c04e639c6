package environment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/environment"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/sandbox"
)

// composeTask is a task with the files below environment/.
func composeTask(t *testing.T, toml string, environment ...string) *harbor.Task {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Some Task")
	for name, text := range map[string]string{"task.toml": toml, "instruction.md": "Do.\n", "tests/test.sh": "", "environment/data": ""} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	for _, name := range environment {
		writeFile(t, filepath.Join(dir, "environment", name), "")
	}
	task, err := harbor.Load(dir, harbor.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestComposeSpec(t *testing.T) {
	t.Parallel()
	extra := filepath.Join(t.TempDir(), "extra.yaml")
	writeFile(t, extra, "")
	can := sandbox.Capabilities{Compose: true, Build: true, NoNetwork: true, Allowlist: true, CPULimit: true, MemoryLimit: true}
	toml := "[environment]\ncpus = 2\nmemory_mb = 512\n[environment.env]\nA = \"${NOT_SET:-a}\"\nCPUS = \"9\"\nMAIN_IMAGE_NAME = \"mine\"\n"
	task := composeTask(t, toml, "docker-compose.yaml")
	var warnings []string
	p := environment.Planner{
		Backend: "docker", Can: can, Task: task, Lookup: func(string) (string, bool) { return "", false },
		OverrideCPUs: new(3), MemoryPolicy: "ignore",
		Warn: func(format string, _ ...any) { warnings = append(warnings, format) },
	}
	p.Env.Set("B", "b")
	spec, err := p.Spec(environment.Request{
		Name: "Some__T", Network: harbor.Network{Mode: harbor.Public}, ExtraCompose: []string{extra},
		Mounts: []sandbox.Mount{{Source: "/r/agent", Target: "/logs/agent"}, {Source: "/x", Target: "/my/artifacts"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := task.EnvironmentDir()
	want := []string{
		"A=a", "CPUS=9", "MAIN_IMAGE_NAME=mine", "B=b", "MAIN_IMAGE_NAME=hb__some-task", "CONTEXT_DIR=" + dir, "CPUS=3",
		"ENV_AGENT_LOGS_PATH=/logs/agent", "HOST_AGENT_LOGS_PATH=/r/agent", "ENV_ARTIFACTS_PATH=/my/artifacts", "HOST_ARTIFACTS_PATH=/x",
	}
	if !slices.Equal(spec.Compose.Env, want) {
		t.Errorf("variables for the files: %q, want %q", spec.Compose.Env, want)
	}
	if !slices.Equal(spec.Env, []string{"B=b"}) {
		t.Errorf("variables for commands: %q", spec.Env)
	}
	if c := spec.Compose; c.Project != "some__t" || c.Dir != dir || !slices.Equal(c.Files, []string{filepath.Join(dir, "docker-compose.yaml"), extra}) {
		t.Errorf("project %+v", c)
	}
	if b := spec.Image.Build; b == nil || b.ContextDir != dir {
		t.Errorf("main is made of %+v", spec.Image)
	}
	if len(warnings) != 2 {
		t.Errorf("warnings %q, want one for each name that is taken", warnings)
	}
}

// TestComposeIsRefused has the texts of the Harbor task format, section 4.1.
func TestComposeIsRefused(t *testing.T) {
	t.Parallel()
	extra := filepath.Join(t.TempDir(), "extra.yaml")
	writeFile(t, extra, "")
	plain := composeTask(t, "", "Dockerfile")
	project := composeTask(t, "", "docker-compose.yaml")
	compose := sandbox.Capabilities{Compose: true, Allowlist: true}
	for _, tt := range []struct {
		name  string
		task  *harbor.Task
		can   sandbox.Capabilities
		extra []string
		mode  harbor.NetworkMode
		want  string
	}{
		{"a missing file", plain, compose, []string{extra, "/no/such.yaml"}, harbor.Public, "Extra Docker Compose file not found: /no/such.yaml"},
		{"a directory", plain, compose, []string{filepath.Dir(extra)}, harbor.Public, "Extra Docker Compose file not found: "},
		{"no compose", plain, sandbox.Capabilities{}, []string{extra}, harbor.Public, "sandbox environment does not support --extra-docker-compose."},
		{"a compose task", project, sandbox.Capabilities{}, nil, harbor.Public, "choose Docker with -e docker"},
		{"an allowlist", project, compose, nil, harbor.Allowlist, "network_mode='allowlist' is not supported for a compose project"},
	} {
		p := environment.Planner{Backend: "sandbox", Can: tt.can, Task: tt.task}
		_, err := p.Spec(environment.Request{Network: harbor.Network{Mode: tt.mode}, ExtraCompose: tt.extra})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.name, err, tt.want)
		}
	}
}
