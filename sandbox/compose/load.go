package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/enginesocket"
	"github.com/proctor-run/proctor/sandbox"
)

// mainService is the service that is the sandbox.
const mainService = "main"

// waits is the command of service main, unless the task's files give another.
var waits = []string{"sh", "-c", "sleep infinity"}

// maxComposeFile bounds a file of a project, in bytes.
const maxComposeFile = 4 << 20

// model is a compose project as it was read.
type model struct {
	*types.Project
	// notes are what a person should know of it.
	notes []string
}

// JSON returns the merged model of a Spec's project, with everything that is
// put around the files, as "docker compose config --format json" would print
// it. Nothing is created.
func (e *Engine) JSON(ctx context.Context, spec sandbox.Spec) ([]byte, error) {
	m, err := e.load(ctx, spec)
	if err != nil {
		return nil, err
	}
	data, err := m.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("writing the compose project as JSON: %w", err)
	}
	return data, nil
}

// load reads and merges the files of a project in their order (Harbor task
// format, section 5.4) and resolves variables and paths.
func (e *Engine) load(ctx context.Context, spec sandbox.Spec) (*model, error) {
	c := spec.Compose
	env, err := interpolationEnv(c, e.Environ)
	if err != nil {
		return nil, fmt.Errorf("reading compose project %q: %w", c.Project, err)
	}
	files, err := composeFiles(spec)
	if err != nil {
		return nil, fmt.Errorf("reading compose project %q: %w", c.Project, err)
	}
	refs := references{dir: c.Dir, env: env, seen: map[string]bool{}}
	for _, f := range files {
		if err := refs.check(f.Filename, f.Content); err != nil {
			return nil, fmt.Errorf("reading compose project %q: %w", c.Project, err)
		}
	}
	hosts := newHostVariables(e.Environ, c)
	unset := unsetVariables{}
	var screened []loader.UnsupportedAttribute
	project, err := loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir: c.Dir, ConfigFiles: files, Environment: env,
	}, func(o *loader.Options) {
		o.SetProjectName(c.Project, true)
		o.Profiles = strings.FieldsFunc(env["COMPOSE_PROFILES"], func(r rune) bool { return r == ',' })
		o.PruneUnnecessaryResources = true
		// Files that services name are looked at before they are read.
		o.SkipResolveEnvironment, o.SkipResolveLabels = true, true
		o.Interpolate = quietly(o.Interpolate, hosts, unset)
	}, loader.WithUnsupportedAttributesCheck(screenedKeys(), func(found []loader.UnsupportedAttribute) {
		screened = found
	}))
	if err != nil {
		return nil, fmt.Errorf("reading compose project %q: %w%s", c.Project, err, unset.hint(c.Hints))
	}
	m := &model{Project: project}
	if err := m.screen(screened, c.Files); err != nil {
		return nil, err
	}
	if err := m.readEnvFiles(); err != nil {
		return nil, fmt.Errorf("reading compose project %q: %w", c.Project, err)
	}
	if _, ok := m.Services[mainService]; !ok {
		return nil, fmt.Errorf("compose project %q: service %q is disabled", c.Project, mainService)
	}
	own := types.NewMapping(e.Environ)
	reach := risks(m.Project, spec.Mounts, enginesocket.Known(func(name string) string { return own[name] }))
	if spec.Hardened && len(reach) > 0 {
		return nil, fmt.Errorf("hardening a compose project that reaches out of its containers: %s: %w", strings.Join(reach, "; "), sandbox.ErrUnsupported)
	}
	m.notes = slices.Concat(m.notes, reach, hosts.note(m.Project))
	return m, nil
}

// hostVariables are those that only proctor's own environment has, and which
// of them the files have asked for.
type hostVariables struct {
	values map[string]string
	asked  map[string]bool
}

func newHostVariables(environ []string, c *sandbox.Compose) hostVariables {
	h := hostVariables{values: map[string]string{}, asked: map[string]bool{}}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			h.values[name] = value
		}
	}
	for _, kv := range c.Env {
		name, _, _ := strings.Cut(kv, "=")
		delete(h.values, name)
	}
	return h
}

// note says which variables of the host the services get. A variable that is
// passed on by its name alone is known by its value.
func (h hostVariables) note(p *types.Project) []string {
	for _, s := range p.Services {
		for name, value := range s.Environment {
			if own, ok := h.values[name]; ok && value != nil && *value == own {
				h.asked[name] = true
			}
		}
	}
	if len(h.asked) == 0 {
		return nil
	}
	return []string{"the compose files use variables of the environment that proctor runs in: " +
		strings.Join(slices.Sorted(maps.Keys(h.asked)), ", ")}
}

// unsetVariables are those that the files have asked for and that nothing gives a value.
type unsetVariables map[string]bool

// hint says what would give them a value, as far as that is known.
func (u unsetVariables) hint(hints map[string]string) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(u)) {
		if how, ok := hints[name]; ok {
			text += fmt.Sprintf("; variable %s is not set: %s", name, how)
		}
	}
	return text
}

// quietly is an interpolation that logs nothing, and notes what it is asked
// for.
func quietly(o *interpolation.Options, hosts hostVariables, unset unsetVariables) *interpolation.Options {
	quiet := *o
	quiet.LookupValue = func(name string) (string, bool) {
		if _, ok := hosts.values[name]; ok {
			hosts.asked[name] = true
		}
		text, ok := o.LookupValue(name)
		if !ok {
			unset[name] = true
		}
		return text, ok
	}
	quiet.Substitute = func(text string, mapping template.Mapping) (string, error) {
		return template.SubstituteWithOptions(text, mapping, template.WithoutLogging)
	}
	return &quiet
}

// interpolationEnv is what variables in the files stand for: the .env file of
// the project's directory, the host's environment, what the Spec gives; later
// ones win.
func interpolationEnv(c *sandbox.Compose, environ []string) (types.Mapping, error) {
	env := types.Mapping{}
	for _, kv := range slices.Concat(environ, c.Env) {
		if name, value, ok := strings.Cut(kv, "="); ok {
			env[name] = value
		}
	}
	text, err := readSmall(filepath.Join(c.Dir, dotenv.DotEnv))
	if errors.Is(err, fs.ErrNotExist) {
		return env, nil
	}
	if err != nil {
		return nil, err
	}
	own, err := dotenv.ParseWithLookup(bytes.NewReader(text), env.Resolve)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dotenv.DotEnv, err)
	}
	for name, value := range own {
		if _, ok := env[name]; !ok {
			env[name] = value
		}
	}
	return env, nil
}

// obsolete is a key that every version of compose ignores, and that compose-go
// complains of on the process's own standard error.
var obsolete = regexp.MustCompile(`(?m)^version[ \t]*:[^\n]*$`)

// composeFiles are the files of a project in their order, with those that say
// what the Spec says of service main around them.
func composeFiles(spec sandbox.Spec) ([]types.ConfigFile, error) {
	generated := []struct {
		name string
		body map[string]any
	}{
		{"proctor-resources.json", resourcesOverride(spec.Resources)},
		{"proctor-image.json", imageTemplate(spec.Image)},
		{"proctor-mounts.json", mountsOverride(spec.Mounts)},
		{"proctor-no-network.json", map[string]any{"network_mode": "none"}},
	}
	add := func(files []types.ConfigFile, i int) ([]types.ConfigFile, error) {
		text, err := json.Marshal(map[string]any{"services": map[string]any{mainService: generated[i].body}})
		return append(files, types.ConfigFile{
			Filename: filepath.Join(spec.Compose.Dir, generated[i].name),
			Content:  text,
		}), err
	}
	files, err := add(nil, 0)
	if err == nil {
		files, err = add(files, 1)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range spec.Compose.Files {
		text, err := readSmall(name)
		if err != nil {
			return nil, err
		}
		files = append(files, types.ConfigFile{Filename: name, Content: obsolete.ReplaceAll(text, nil)})
	}
	if files, err = add(files, 2); err == nil && spec.Network.Mode == sandbox.NetworkNone {
		files, err = add(files, 3)
	}
	return files, err
}

func resourcesOverride(r sandbox.Resources) map[string]any {
	limits := map[string]any{}
	if r.CPUs > 0 {
		limits["cpus"] = strconv.FormatFloat(r.CPUs, 'f', -1, 64)
	}
	if r.MemoryMB > 0 {
		limits["memory"] = strconv.FormatInt(r.MemoryMB, 10) + "M"
	}
	if len(limits) == 0 {
		return map[string]any{}
	}
	return map[string]any{"deploy": map[string]any{"resources": map[string]any{"limits": limits}}}
}

// imageTemplate is what main is made of where the task's files do not say: a
// build, or a prebuilt image (sections 5.3 and 5.4).
func imageTemplate(img sandbox.Image) map[string]any {
	t := map[string]any{"command": waits}
	if img.Build != nil && (img.Ref == "" || img.ForceBuild) {
		t["build"] = map[string]any{"context": literal(img.Build.ContextDir)}
		t["pull_policy"] = types.PullPolicyBuild
	} else if img.Ref != "" {
		t["image"] = literal(img.Ref)
	}
	return t
}

func mountsOverride(mounts []sandbox.Mount) map[string]any {
	volumes := make([]map[string]any, 0, len(mounts))
	for _, m := range mounts {
		v := map[string]any{"type": types.VolumeTypeBind, "source": literal(m.Source), "target": literal(m.Target)}
		if m.Volume {
			v["type"] = types.VolumeTypeVolume
		}
		if m.ReadOnly {
			v["read_only"] = true
		}
		volumes = append(volumes, v)
	}
	return map[string]any{"volumes": volumes}
}

// literal protects text from interpolation.
func literal(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// readEnvFiles resolves env_file and label_file of the services.
func (m *model) readEnvFiles() (err error) {
	for _, name := range slices.Sorted(maps.Keys(m.Services)) {
		s := m.Services[name]
		for _, f := range s.EnvFiles {
			if err := regular(f.Path); err != nil && (bool(f.Required) || !errors.Is(err, fs.ErrNotExist)) {
				return fmt.Errorf("env_file of service %q: %w", name, err)
			}
		}
		for _, f := range s.LabelFiles {
			if err := regular(f); err != nil {
				return fmt.Errorf("label_file of service %q: %w", name, err)
			}
		}
	}
	if m.Project, err = m.WithServicesEnvironmentResolved(true); err == nil {
		m.Project, err = m.WithServicesLabelsResolved(true)
	}
	if err != nil {
		return fmt.Errorf("reading what env_file and label_file name: %w", err)
	}
	return nil
}

// regular refuses what cannot be read to an end.
func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if info.Size() > maxComposeFile {
		return fmt.Errorf("%s has more than %d bytes", path, maxComposeFile)
	}
	return nil
}

func readSmall(path string) ([]byte, error) {
	if err := regular(path); err != nil {
		return nil, err
	}
	return bounded.ReadRegular(path, maxComposeFile)
}
