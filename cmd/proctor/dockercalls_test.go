package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	gocmp "github.com/google/go-cmp/cmp"

	shipped "github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/vectors"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/docker"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// dockerScenario is one recorded run of Harbor: its calls of the docker
// command, and what was left behind.
type dockerScenario struct {
	Name           string
	TaskFiles      map[string]*string `json:"task_files"`
	TrialConfig    map[string]any     `json:"trial_config"`
	HostEnv        map[string]string  `json:"host_env"`
	Calls          []dockerCall
	Manifests      map[string]any
	VerifierResult *struct{ Rewards json.RawMessage } `json:"verifier_result"`
	Exception      []string
	NoResultFile   bool     `json:"no_result_file"`
	TrialTree      []string `json:"trial_tree"`
	Steps          []struct {
		StepName       string                             `json:"step_name"`
		VerifierResult *struct{ Rewards json.RawMessage } `json:"verifier_result"`
	}
}

type dockerCall struct {
	Docker           []string
	Project          string
	ProjectDirectory string `json:"project_directory"`
	Files            []string
	Command          []string
	Env              map[string]string
	Generated        map[string]json.RawMessage
}

// Rows of the recorded calls that are not compared as calls, and why. All
// others are: what comes up, each exec with user, environment and directory,
// each copy, how it ends, what it leaves.
//
//   - info, inspect: the engine is asked over its API, by Check and by the
//     pull; no state comes of it.
//   - build: the image is built by content; that there is a build, and of what
//     directory, is compared in the model that comes up.
//   - down --remove-orphans before up: a project's stale containers are removed
//     by the backend (TestComposeOfALivingProcess in sandbox/docker).
//   - mkdir and chmod 777 of mount targets: the trial's directories are opened
//     on the host; their modes are looked at. Other mounts keep theirs.
//   - chown of logs and downloads to the host's user: what is collected is
//     written by proctor itself, as its own user.
//   - chmod +x of scripts, test -d and pwd: done where they are needed; the
//     manifests, and the places that are copied to, are compared.
//   - the redirection of a script's output: it comes over the command's own
//     streams, and is written on the host.
//   - the volume of extra_mounts: no compose file defines it, so a real engine
//     refuses the project; the recording had a stand-in. Named by an error here.
//   - keep and nodelete: both end in a stop; "down" without --rmi and --volumes
//     would remove what --no-delete is to keep for inspection.
//   - err_nodef, err_allowlist: Harbor writes no result; here the error is the
//     result of the trial, before any sandbox. Allowlists are refused by
//     backends that cannot enforce them; Docker can, but not with compose files.
var unchecked = []string{"chmod +x ", "chown -R ", "mkdir -p ", "pwd", "test -d "}

// sameCommands are differences of words without one of effect.
var sameCommands = strings.NewReplacer(" > /logs/agent/oracle.txt 2>&1", "", " > /logs/verifier/test-stdout.txt 2>&1", "", " -- ", " ")

// TestDockerCalls runs the recorded trials on a backend that records, and
// compares what an engine would have been told (Harbor task format, sections
// 4 to 6; row 37).
func TestDockerCalls(t *testing.T) {
	t.Parallel()
	var scenarios []dockerScenario
	if err := json.Unmarshal(vectors.File(t, "tasks/docker-calls.json"), &scenarios); err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			s.check(t)
		})
	}
	t.Logf("docker-calls.json: %d cases", len(scenarios))
}

func (s *dockerScenario) check(t *testing.T) {
	run := s.run(t)
	res := run.result
	if s.NoResultFile {
		if n := run.backend.Count(fake.OpCreate); n > 0 || res.ExceptionInfo == nil {
			t.Errorf("%d sandboxes, exception %v; want none and an error", n, res.ExceptionInfo)
		}
		return
	}
	if refused := s.Name == "extra_mounts"; refused {
		if res.ExceptionInfo == nil || !strings.Contains(res.ExceptionInfo.Message, "mount of type 'volume' on /cache") {
			t.Errorf("exception %+v", res.ExceptionInfo)
		}
		mounts := s.TrialConfig["environment"].(map[string]any)["mounts"].([]any)
		s.TrialConfig["environment"].(map[string]any)["mounts"] = mounts[:1]
		s.dropMount("/cache")
		run = s.run(t)
		res = run.result
	}
	s.compareResult(t, res)
	s.compareFiles(t, run.dir)
	want, got := s.wanted(t, run), run.told(t)
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("what an engine is told differs (-Harbor +here):\n%s", d)
	}
}

// recorded is a trial that was run on the recording backend.
type recorded struct {
	backend   *fake.Backend
	result    *jobdir.TrialResult
	task, dir string
}

func (s *dockerScenario) run(t *testing.T) *recorded {
	t.Helper()
	task := filepath.Join(t.TempDir(), "hello")
	for name, text := range s.TaskFiles {
		if text == nil {
			if err := os.MkdirAll(filepath.Join(task, name), 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		writeFiles(t, task, map[string]string{name: *text})
	}
	trials := t.TempDir()
	doc := map[string]any{
		"task": map[string]any{"path": task}, "trial_name": "hello__AbC1234", "trials_dir": trials,
		"agent": map[string]any{"name": "oracle"},
	}
	maps.Copy(doc, s.TrialConfig)
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	cfg, _, err := jobdir.ParseTrialConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	docker := newRecorder(t)
	runner := &trial.Runner{Agents: shipped.All(),
		Backend: docker,
		Lookup:  func(name string) (string, bool) { v, ok := s.HostEnv[name]; return v, ok },
		Now:     time.Now,
	}
	res, err := runner.Run(t.Context(), cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	return &recorded{backend: docker, result: res, task: task, dir: filepath.Join(trials, "hello__AbC1234")}
}

// newRecorder is a backend that can what Docker could for Harbor, and whose
// commands do what they did when the calls were recorded.
func newRecorder(t *testing.T) *fake.Backend {
	t.Helper()
	return fake.New(fake.Config{
		Dir: t.TempDir(), Name: "docker",
		Capabilities: &sandbox.Capabilities{Mounted: true, Build: true, Compose: true, NoNetwork: true, CPULimit: true, MemoryLimit: true},
		Before: func(_ context.Context, c fake.Call) error {
			if c.Op == fake.OpCreate {
				openToAll(t, c.Spec)
			}
			return nil
		},
		Files: map[string]string{"/x.txt/": "", "/data/": "", "/app/out.txt/": ""},
		Rules: []fake.Rule{
			fake.On("pwd", fake.Print("/app\n")),
			fake.On("-mindepth 1", func(_ context.Context, p *fake.Process) (int, error) {
				for _, dir := range []string{"/logs/verifier", "/tests"} {
					entries, err := os.ReadDir(p.Sandbox.Path(dir))
					if err != nil || !strings.Contains(p.Command.Shell, dir) {
						continue
					}
					for _, e := range entries {
						if err := p.Sandbox.Remove(path.Join(dir, e.Name())); err != nil {
							return 0, err
						}
					}
				}
				return 0, nil
			}),
			fake.On("/tests/test.sh", fake.Write("/logs/verifier/reward.txt", "1")),
		},
	})
}

func (s *dockerScenario) compareResult(t *testing.T, res *jobdir.TrialResult) {
	t.Helper()
	var exception []string
	if e := res.ExceptionInfo; e != nil {
		exception = []string{e.Type, e.Message}
	}
	if !slices.Equal(exception, s.Exception) {
		t.Errorf("exception %q, want %q", exception, s.Exception)
	}
	if want, got := recordedRewards(t, s.VerifierResult), gaveRewards(res.VerifierResult); got != want {
		t.Errorf("rewards %s, want %s", got, want)
	}
	if len(res.StepResults) != len(s.Steps) {
		t.Fatalf("%d steps, want %d", len(res.StepResults), len(s.Steps))
	}
	for i, step := range s.Steps {
		got := res.StepResults[i]
		if want := recordedRewards(t, step.VerifierResult); got.StepName != step.StepName || gaveRewards(got.VerifierResult) != want {
			t.Errorf("step %s: rewards %s, want those of %s, %s", got.StepName, gaveRewards(got.VerifierResult), step.StepName, want)
		}
	}
}

func gaveRewards(v *jobdir.VerifierResult) string {
	if v == nil {
		return "none"
	}
	return value.Repr(v.Rewards.Object())
}

func recordedRewards(t *testing.T, v *struct{ Rewards json.RawMessage }) string {
	t.Helper()
	if v == nil {
		return "none"
	}
	rewards, err := value.Decode(v.Rewards)
	if err != nil {
		t.Fatal(err)
	}
	return value.Repr(rewards)
}

// compareFiles looks at the trial's directory: Harbor's files, and besides them
// only those that proctor or the scripts' output add.
func (s *dockerScenario) compareFiles(t *testing.T, dir string) {
	t.Helper()
	var tree []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		rel = filepath.ToSlash(rel)
		switch path.Base(rel) {
		case ".", "proctor.json", "test-stdout.txt", "oracle.txt", "exception.txt":
			return err
		}
		if d.IsDir() {
			rel += "/"
		}
		tree = append(tree, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(slices.Clone(s.TrialTree), func(name string) bool { return path.Base(name) == "exception.txt" })
	if d := gocmp.Diff(want, tree); d != "" {
		t.Errorf("the trial's directory differs (-Harbor +here):\n%s", d)
	}
	for name, want := range s.Manifests {
		var got any
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if d := gocmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %v (-Harbor +here)\n%s", name, err, d)
		}
	}
}

// openToAll looks at the log directories as a sandbox is about to see them: everybody
// can write there.
func openToAll(t *testing.T, spec sandbox.Spec) {
	t.Helper()
	for _, m := range spec.Mounts {
		if !strings.HasPrefix(m.Target, "/logs/") {
			continue
		}
		info, err := os.Stat(m.Source)
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != 0o777 {
			t.Errorf("%s has mode %v: not everybody can write there", m.Target, info.Mode())
		}
	}
}

// told is what an engine would have been told in the trial.
func (r *recorded) told(t *testing.T) []string {
	t.Helper()
	var lines []string
	specs := map[string]sandbox.Spec{}
	for _, c := range r.backend.Calls() {
		spec := specs[c.Sandbox]
		project := harbor.ProjectName(c.Sandbox)
		switch c.Op {
		case fake.OpCreate:
			specs[c.Sandbox] = c.Spec
			lines = append(lines, "up "+project+" "+r.model(t, c.Spec))
		case fake.OpExec:
			line := execLine{
				user: cmp.Or(c.Command.User, spec.User), dir: cmp.Or(c.Command.Dir, spec.Workdir),
				env: slices.Concat(spec.Env, c.Command.Env), command: cmp.Or(c.Command.Shell, strings.Join(c.Command.Argv, " ")),
			}
			if line.checked() {
				lines = append(lines, line.String())
			}
		case fake.OpUpload:
			lines = append(lines, "copy to "+c.Path)
		case fake.OpDownload:
			lines = append(lines, "copy from "+c.Path)
		case fake.OpStop:
			lines = append(lines, "stop "+project)
		case fake.OpDestroy:
			lines = append(lines, "down "+project)
		}
	}
	return lines
}

// execLine is one command in service main.
type execLine struct {
	user, dir string
	env       []string
	command   string
}

func (l execLine) String() string {
	env := map[string]string{}
	for _, kv := range l.env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return fmt.Sprintf("exec user=%s dir=%s env=%v %s", l.user, l.dir, env, sameCommands.Replace(l.command))
}

func (l execLine) checked() bool {
	return !slices.ContainsFunc(unchecked, func(start string) bool { return strings.HasPrefix(l.command, start) })
}

// model is the merged compose project of a Spec, with the places of this run
// named as in the recording. A Spec without compose files is the project of no
// file at all.
func (r *recorded) model(t *testing.T, spec sandbox.Spec) string {
	t.Helper()
	if spec.Compose == nil {
		spec.Compose = &sandbox.Compose{Project: harbor.ProjectName(spec.Name), Dir: r.task}
	}
	b, err := docker.New(docker.Options{Engine: "unix:///nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := b.ProjectJSON(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return r.named(string(text))
}

func (r *recorded) named(text string) string {
	return strings.NewReplacer(r.task, "<TASK>", r.dir, "<TRIAL>").Replace(text)
}

// wanted is what Harbor told the engine.
func (s *dockerScenario) wanted(t *testing.T, r *recorded) []string {
	t.Helper()
	var lines []string
	for _, c := range s.Calls {
		if c.Project == "" {
			continue
		}
		switch args := c.Command[1:]; c.Command[0] {
		case "up":
			lines = append(lines, "up "+c.Project+" "+s.model(t, r, c))
		case "exec":
			if line := readExec(args); line.checked() {
				lines = append(lines, line.String())
			}
		case "cp":
			if to, ok := strings.CutPrefix(args[1], "main:"); ok {
				lines = append(lines, "copy to "+to)
			} else {
				lines = append(lines, "copy from "+strings.TrimSuffix(strings.TrimPrefix(args[0], "main:"), "/."))
			}
		case "stop":
			lines = append(lines, "stop "+c.Project)
		case "down":
			switch len(args) {
			case 0: // delete is false
				lines = append(lines, "stop "+c.Project)
			case 4: // --rmi local --volumes --remove-orphans
				lines = append(lines, "down "+c.Project)
			}
		}
	}
	return lines
}

// readExec reads the arguments of docker compose exec.
func readExec(args []string) (line execLine) {
	for args[0] != "main" {
		switch args[0] {
		case "-e":
			line.env = append(line.env, args[1])
		case "-u":
			line.user = args[1]
		case "-w":
			line.dir = args[1]
		}
		args = args[2:]
	}
	line.command = args[len(args)-1] // after main bash -c
	return line
}

// templates of Harbor's package (section 5.4).
var templates = map[string]string{
	"docker-compose-build.yaml":      `{services: {main: {build: {context: "${CONTEXT_DIR}"}, pull_policy: build, command: [sh, -c, sleep infinity]}}}`,
	"docker-compose-prebuilt.yaml":   `{services: {main: {image: "${PREBUILT_IMAGE_NAME}", command: [sh, -c, sleep infinity]}}}`,
	"docker-compose-no-network.yaml": `{services: {main: {network_mode: none}}}`,
}

// model merges the files that Harbor named.
func (s *dockerScenario) model(t *testing.T, r *recorded, c dockerCall) string {
	t.Helper()
	place := strings.NewReplacer("<TASK>", r.task, "<TRIAL>", r.dir)
	details := types.ConfigDetails{WorkingDir: place.Replace(c.ProjectDirectory), Environment: types.Mapping{}}
	for name, value := range c.Env {
		details.Environment[name] = place.Replace(value)
	}
	for _, name := range c.Files {
		file := types.ConfigFile{Filename: place.Replace(name)}
		if text, ok := c.Generated[name]; ok {
			file.Content = []byte(place.Replace(string(text)))
		} else if text, ok := templates[path.Base(name)]; ok && strings.HasPrefix(name, "<PKG>") {
			file.Content = []byte(text)
		}
		details.ConfigFiles = append(details.ConfigFiles, file)
	}
	project, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) {
		o.SetProjectName(c.Project, true)
		o.PruneUnnecessaryResources = true
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := project.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return r.named(string(text))
}

// dropMount takes a mount out of the recording.
func (s *dockerScenario) dropMount(target string) {
	for _, c := range s.Calls {
		for name, text := range c.Generated {
			var file struct {
				Services map[string]map[string]any `json:"services"`
			}
			if err := json.Unmarshal(text, &file); err != nil {
				continue
			}
			volumes, _ := file.Services["main"]["volumes"].([]any)
			file.Services["main"]["volumes"] = slices.DeleteFunc(volumes, func(v any) bool {
				return v.(map[string]any)["target"] == target
			})
			var out bytes.Buffer
			w := json.NewEncoder(&out)
			w.SetEscapeHTML(false) // the recording's places are written <TRIAL>
			if err := w.Encode(file); err == nil && volumes != nil {
				c.Generated[name] = out.Bytes()
			}
		}
	}
}
