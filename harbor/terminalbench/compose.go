package terminalbench

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/yaml11"
	"github.com/proctor-run/proctor/value"
)

// compose is a docker-compose.yaml with its main service picked out.
type compose struct {
	root     *value.Object
	services *value.Object // may be empty
	name     string        // of the main service
	main     *value.Object // nil without services
	context  string        // build context of the main service
}

var errComposeShape = errors.New("docker-compose.yaml: services must be mappings")

func (t *task) readCompose() (*compose, error) {
	if !t.has("docker-compose.yaml") {
		return nil, exception.Errorf(exception.FileNotFoundError, "docker-compose.yaml not found: %s", filepath.Join(t.source, "docker-compose.yaml"))
	}
	text, err := t.read("docker-compose.yaml")
	if err != nil {
		return nil, err
	}
	doc, err := yaml11.Decode([]byte(text))
	if err != nil {
		return nil, err
	}
	c := &compose{services: &value.Object{}}
	root, ok := doc.(*value.Object)
	if !ok {
		return nil, errComposeShape
	}
	c.root = root
	if v, _ := root.Get("services"); !value.IsNull(v) {
		if c.services, ok = v.(*value.Object); !ok {
			return nil, errComposeShape
		}
	}
	return c, c.pickMain()
}

// pickMain chooses the service that becomes the task's environment: the one
// called client, else the first.
func (c *compose) pickMain() error {
	for name := range c.services.Keys() {
		if c.name == "" || name == "client" {
			c.name = name
		}
	}
	if c.services.Len() == 0 {
		return nil
	}
	v, _ := c.services.Get(c.name)
	main, ok := v.(*value.Object)
	if !ok {
		return errComposeShape
	}
	c.main = main
	c.context = buildContext(main)
	return nil
}

// buildContext returns where a service is built, "." if it does not say.
func buildContext(service *value.Object) string {
	build, _ := service.Get("build")
	if table, ok := build.(*value.Object); ok {
		build, _ = table.Get("context")
	}
	if dir, ok := build.(value.Str); ok {
		return string(dir)
	}
	return "."
}

// handles reports whether the first component of a path is dealt with by
// another step than the copying of what remains. The context is compared as it
// is written, so that "./ctx" does not count as ctx.
func (c *compose) handles(first string) bool {
	if c.main != nil {
		if c.context == "." && first == "Dockerfile" || first == c.context {
			return true
		}
	}
	return slices.Contains([]string{"docker-compose.yaml", "task.yaml", "solution.sh", "run-tests.sh", "tests"}, first)
}

// mapEnvironment makes environment/ from the compose file.
func (t *task) mapEnvironment() (err error) {
	if t.compose, err = t.readCompose(); err != nil || t.compose.main == nil {
		return err
	}
	dockerfile, err := t.copyContext()
	if err != nil {
		return err
	}
	if dockerfile != "" {
		if err := t.extendDockerfile(dockerfile); err != nil {
			return err
		}
	}
	if t.compose.collapses() {
		return nil
	}
	t.print("[%s] Cannot collapse to Dockerfile, writing docker-compose.yaml", t.name)
	return t.writeCompose()
}

// copyContext copies the main service's build context, and returns where its
// Dockerfile is in the target, if there is one.
func (t *task) copyContext() (dockerfile string, err error) {
	const inRoot = "environment/Dockerfile"
	if t.compose.context == "." {
		if !t.has("Dockerfile") {
			return "", nil
		}
		return inRoot, t.copyFile("Dockerfile", inRoot)
	}
	dir := path.Clean(t.compose.context)
	if !t.has(dir) {
		return "", nil
	}
	err = t.walk(dir, func(name string) error {
		to := path.Join("environment", strings.TrimPrefix(name, dir+"/"))
		if path.Base(name) == "Dockerfile" && (dockerfile == "" || to == inRoot) {
			dockerfile = to
		}
		return t.copyFile(name, to)
	})
	return dockerfile, err
}

// standardVolumes are the log directories that Terminal-Bench mounts itself.
var standardVolumes = []string{
	"${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}",
	"${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}",
}

// collapses reports whether a Dockerfile can say all that the compose file
// says.
func (c *compose) collapses() bool {
	root := []string{"services", "version"}
	service := []string{"environment", "working_dir", "expose", "entrypoint", "platform", "build", "image", "container_name", "command", "volumes"}
	if c.services.Len() != 1 || !only(c.root, root) || !only(c.main, service) {
		return false
	}
	volumes, _ := c.main.Get("volumes")
	list, _ := volumes.(value.List)
	if list == nil && !value.IsNull(volumes) {
		return false
	}
	return !slices.ContainsFunc(list, func(v value.Value) bool {
		s, ok := v.(value.Str)
		return !ok || !slices.Contains(standardVolumes, string(s))
	})
}

func only(table *value.Object, keys []string) bool {
	for key := range table.Keys() {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return true
}

// writeCompose writes a compose file for several services, and copies what
// the others are built from.
func (t *task) writeCompose() error {
	c := t.compose
	services := &value.Object{}
	services.Set("main", mainService(c.main))
	for name, v := range c.services.All() {
		if name == c.name {
			continue
		}
		services.Set(name, v)
		service, ok := v.(*value.Object)
		if !ok {
			continue
		}
		if err := t.copySidecar(buildContext(service)); err != nil {
			return err
		}
	}
	doc := &value.Object{}
	doc.Set("services", services)
	for key, v := range c.root.All() {
		if key != "services" && key != "version" {
			doc.Set(key, v)
		}
	}
	text, err := yaml11.Encode(doc)
	if err != nil {
		return err
	}
	return t.write("environment/docker-compose.yaml", strings.ReplaceAll(string(text), "${T_BENCH_TASK_DOCKER_NAME_PREFIX}", "hb"))
}

// copySidecar copies the build context of a service beside the main one,
// unless it is there already.
func (t *task) copySidecar(context string) error {
	dir := path.Clean(context)
	to := path.Join("environment", dir)
	if dir == "." || !t.has(dir) {
		return nil
	}
	if _, err := t.out.Stat(to); err == nil {
		return nil
	}
	return t.copyTree(dir, to)
}

// mainService keeps of the main service what Harbor does not set itself.
func mainService(old *value.Object) *value.Object {
	table := func(key string, v value.Value) *value.Object {
		o := &value.Object{}
		o.Set(key, v)
		return o
	}
	limits := table("cpus", value.Str("${CPUS}"))
	limits.Set("memory", value.Str("${MEMORY}"))
	main := table("build", table("context", value.Str("${CONTEXT_DIR}")))
	main.Set("image", value.Str("${MAIN_IMAGE_NAME}"))
	main.Set("command", value.List{value.Str("sh"), value.Str("-c"), value.Str("sleep infinity")})
	main.Set("environment", value.List{value.Str("TEST_DIR=${TEST_DIR}")})
	main.Set("deploy", table("resources", table("limits", limits)))
	for key, v := range old.All() {
		if !slices.Contains([]string{"build", "image", "container_name", "command", "environment", "volumes", "deploy"}, key) {
			main.Set(key, v)
		}
	}
	return main
}
