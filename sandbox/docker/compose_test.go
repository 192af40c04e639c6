package docker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/proctor-run/proctor/internal/need"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/sandboxtest"
)

// projectName makes a legal name of a project of a test's name.
func projectName(t testing.TB) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name())) + fmt.Sprint(time.Now().UnixNano())
}

// composeSpec is a project of the files in a new directory; main is built or,
// without a Dockerfile, the test image.
func composeSpec(t testing.TB, files map[string]string) sandbox.Spec {
	t.Helper()
	dir := writeFiles(t, files)
	spec := base()
	spec.Name, spec.Labels = t.Name(), labels(t)
	if _, ok := files["Dockerfile"]; ok {
		spec.Image = sandbox.Image{Build: &sandbox.Build{ContextDir: dir, Name: "task"}}
	}
	spec.Compose = &sandbox.Compose{
		Project: projectName(t), Dir: dir, Files: []string{filepath.Join(dir, "docker-compose.yaml")},
	}
	return spec
}

// inEngine lists what the engine has of a project or trial.
func inEngine(t testing.TB, label string) []string {
	t.Helper()
	c := api(t)
	f := make(client.Filters).Add("label", label)
	var found []string
	containers, err := c.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: f})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range containers.Items {
		found = append(found, "container "+strings.Join(x.Names, " "))
	}
	networks, err := c.NetworkList(t.Context(), client.NetworkListOptions{Filters: f})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range networks.Items {
		found = append(found, "network "+x.Name)
	}
	volumes, err := c.VolumeList(t.Context(), client.VolumeListOptions{Filters: f})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range volumes.Items {
		found = append(found, "volume "+x.Name)
	}
	slices.Sort(found)
	return found
}

// imageNames lists the names of images that hold a text.
func imageNames(t testing.TB, part string) []string {
	t.Helper()
	list, err := api(t).ImageList(t.Context(), client.ImageListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, x := range list.Items {
		for _, tag := range x.RepoTags {
			if strings.Contains(tag, part) {
				found = append(found, tag)
			}
		}
	}
	slices.Sort(found)
	return found
}

// up creates a project, which is destroyed at the end of the test.
func up(t testing.TB, b sandbox.Backend, spec sandbox.Spec) sandbox.Sandbox {
	t.Helper()
	sb, err := b.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	ctx := cleanupContext(t)
	t.Cleanup(func() {
		if err := sb.Destroy(ctx); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// composing turns every sandbox into a project.
type composing struct {
	*docker.Backend
	t testing.TB
}

func (c composing) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	dir := writeFiles(c.t, map[string]string{"docker-compose.yaml": "services: {main: {}}\n"})
	spec.Compose = &sandbox.Compose{Project: projectName(c.t), Dir: dir, Files: []string{filepath.Join(dir, "docker-compose.yaml")}}
	return c.Backend.Create(ctx, spec)
}

func TestComposeContract(t *testing.T) {
	need.Patience(t)
	need.Image(t, testImage)
	sandboxtest.Run(t, sandboxtest.Config{
		New:  func(t testing.TB) sandbox.Backend { return composing{newBackend(t), t} },
		Spec: sandbox.Spec{Image: sandbox.Image{Ref: testImage}, Labels: labels(t)},
	})
}

// cleanupContext outlives the test, for cleanups.
func cleanupContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestCompose(t *testing.T) {
	t.Parallel()
	spec := composeSpec(t, map[string]string{
		"Dockerfile":         freshFrom() + "RUN echo built >/made\n",
		"side/Containerfile": strings.Replace(freshFrom(), testImage, testImage+" AS base", 1) + "ARG WORD=none\nRUN echo $WORD >/word\nFROM base AS last\nRUN echo last >/stage\n",
		"env":                "FROM_FILE=file\n",
		"docker-compose.yaml": `
services:
  main:
    depends_on:
      side: {condition: service_healthy}
      once: {condition: service_completed_successfully}
    environment: ["TASK=${TASK_VAR}", UNSET]
    env_file: env
    volumes:
      - data:/data
      - ./side:/side:ro
    tmpfs: /scratch
  side:
    build: {context: side, dockerfile: Containerfile, target: base, args: {WORD: "${TASK_VAR}"}}
    command: sh -c 'sleep 0.3; echo up >/ready; exec sleep infinity'
    stop_signal: SIGKILL
    hostname: aside
    cap_add: [SYS_TIME]
    mem_limit: 64m
    cpus: 0.5
    networks:
      default: {aliases: [other]}
      back: {}
    healthcheck: {test: ["CMD", "test", "-e", "/ready"], interval: 100ms, retries: 100}
  once:
    image: ` + testImage + `
    command: [sh, -c, "echo from once >/data/once"]
    volumes: [data:/data]
networks: {back: {internal: true}}
volumes: {data: {}}
`,
	})
	spec.Compose.Env = []string{"TASK_VAR=value"}
	spec.Env = []string{"RUN_VAR=run"}
	spec.Resources = sandbox.Resources{CPUs: 1, MemoryMB: 128}
	logs := t.TempDir()
	spec.Mounts = []sandbox.Mount{{Source: logs, Target: "/logs/agent"}}
	var warnings []string
	spec.Warn = func(m string) { warnings = append(warnings, m) }
	name := spec.Compose.Project
	sb := up(t, newBackend(t), spec)

	for command, want := range map[string]string{
		"cat /made /data/once":                                  "built\nfrom once",
		"echo $TASK-$FROM_FILE-$RUN_VAR-$UNSET":                 "value-file-run-",
		"getent hosts side | wc -l; getent hosts other | wc -l": "1\n1",
		"getent hosts once || echo none":                        "none",
		"ls /side; touch /side/x 2>/dev/null || echo read-only": "Containerfile\nread-only",
		"stat -f -c %T /scratch":                                "tmpfs",
	} {
		if got := output(t, sb, sandbox.Command{Shell: command}); got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
	want := []string{
		"container /" + name + "-main-1", "container /" + name + "-once-1", "container /" + name + "-side-1",
		"network " + name + "_back", "network " + name + "_default", "volume " + name + "_data",
	}
	if got := inEngine(t, "com.docker.compose.project="+name); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := inEngine(t, "proctor.trial="+trialOf(t)); !slices.Equal(got, want) {
		t.Errorf("by our labels: got %q, want %q", got, want)
	}
	main, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := main.Container; c.Config.Image != name+"-main" || c.HostConfig.NanoCPUs != 1e9 || c.HostConfig.Memory != 128<<20 || c.Name != "/"+name+"-main-1" {
		t.Errorf("main: image %q, %d nano CPUs, %d bytes, name %q", c.Config.Image, c.HostConfig.NanoCPUs, c.HostConfig.Memory, c.Name)
	}
	side, err := api(t).ContainerInspect(t.Context(), name+"-side-1", client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := side.Container; c.Config.Hostname != "aside" || c.HostConfig.Memory != 64<<20 || c.HostConfig.NanoCPUs != 5e8 || len(c.NetworkSettings.Networks) != 2 {
		t.Errorf("side: %+v, %d bytes, %d nano CPUs, %d networks", c.Config.Hostname, c.HostConfig.Memory, c.HostConfig.NanoCPUs, len(c.NetworkSettings.Networks))
	}
	if !slices.Contains(warnings, "compose service side has added capabilities: SYS_TIME") || len(warnings) != 1 {
		t.Errorf("warnings: %q", warnings)
	}
	if err := sb.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := append(inEngine(t, "proctor.trial="+trialOf(t)), imageNames(t, name)...); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := sb.Exec(t.Context(), sandbox.Command{Shell: "true"}); !errors.Is(err, sandbox.ErrDestroyed) {
		t.Errorf("got error %v, want ErrDestroyed", err)
	}
}

// TestComposeBuilds has Dockerfiles in every place where one can be.
func TestComposeBuilds(t *testing.T) {
	t.Parallel()
	from := freshFrom() + "COPY word /word\n"
	spec := composeSpec(t, map[string]string{
		"docker-compose.yaml": `
services:
  main:
    image: hb__named
    depends_on: [inline, outside, same]
  inline:
    build: {context: ctx, dockerfile_inline: "` + strings.ReplaceAll(from, "\n", `\n`) + `CMD [\"sleep\", \"infinity\"]\n"}
    container_name: NAME-inline
  outside:
    build: {context: ctx, dockerfile: ../Outside, labels: {made: outside}}
    command: [sleep, infinity]
  same:
    image: hb__named
    command: [sleep, infinity]
`,
		"ctx/word":   "word",
		"Outside":    from,
		"Dockerfile": freshFrom() + "RUN echo main >/word\n",
	})
	name := spec.Compose.Project
	file := spec.Compose.Files[0]
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "NAME", name)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	sb := up(t, newBackend(t), spec)
	if got := output(t, sb, sandbox.Command{Shell: "cat /word"}); got != "main" {
		t.Errorf("main holds %q", got)
	}
	main, err := api(t).ContainerInspect(t.Context(), sb.ID(), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, container := range []string{name + "-inline", name + "-outside-1", name + "-same-1"} {
		r, err := api(t).ContainerInspect(t.Context(), container, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		images[container] = r.Container.Image
	}
	if images[name+"-same-1"] != main.Container.Image {
		t.Errorf("a service that names main's image has another: %v", images)
	}
	if images[name+"-inline"] == images[name+"-outside-1"] {
		t.Errorf("two builds are one: %v", images)
	}
	if taken := imageNames(t, "hb__named"); len(taken) > 0 {
		t.Errorf("the files' name of an image is taken: %q", taken)
	}
}
