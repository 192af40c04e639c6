package trial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/agents"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/layer"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
	"github.com/proctor-run/proctor/trial"
	"github.com/proctor-run/proctor/value"
)

// mineFile is an agent that logs as pi does.
const mineFile = `name = "mine"
summary = "an agent"
version = "1.2.3"
output = "pi.txt"
logs = "pi"
[install]
script = "make it"
hosts = ["registry.example"]
[check]
command = "mine --version"
pattern = '\d+\.\d+\.\d+'
[model]
apis = ["chat"]
required = false
[run]
command = "work on it"
[run.env]
MINE_KEY = "{{.Key}}"
MINE_URL = "{{.URL}}"
`

const minePrefix = "/installed-agent/mine"

// mine is what a sandbox does for the agent of mineFile: its program is there once it was
// installed, or where it is shown, unless it is broken there.
type mine struct {
	installs atomic.Int64
	fails    func(sandbox.Spec) bool // the installation
	broken   func(sandbox.Spec) bool // what is shown
}

func (m *mine) rules(work ...fake.Handler) []fake.Rule {
	there := func(p *fake.Process) bool {
		spec := p.Sandbox.Spec()
		if m.broken != nil && m.broken(spec) {
			_, err := p.Sandbox.ReadFile(minePrefix + "-own/bin/mine")
			return err == nil
		}
		for _, at := range []string{minePrefix, minePrefix + "-own"} {
			if _, err := p.Sandbox.ReadFile(at + "/bin/mine"); err == nil {
				return true
			}
		}
		return false
	}
	return []fake.Rule{
		fake.On("command -v -- mine", func(context.Context, *fake.Process) (int, error) { return 1, nil }),
		fake.On("mine --version", func(_ context.Context, p *fake.Process) (int, error) {
			if !there(p) {
				return 127, nil
			}
			_, _ = p.Stdout.Write([]byte("1.2.3\n"))
			return 0, nil
		}),
		fake.On("make it", func(_ context.Context, p *fake.Process) (int, error) {
			m.installs.Add(1)
			_, _ = fmt.Fprintln(p.Stdout, "the environment has "+p.Env["TOKEN"])
			if m.fails != nil && m.fails(p.Sandbox.Spec()) {
				_, _ = p.Stdout.Write([]byte("no such package\n"))
				return 1, nil
			}
			return 0, p.Sandbox.WriteFile(p.Env["PREFIX"]+"/bin/mine", []byte("x"), 0o755)
		}),
		fake.On("work on it", work...),
		rewardRule("reward.txt", "1.0"),
	}
}

// withMine is a bench with the agent of a file, and a store.
func withMine(t testing.TB, b *bench, file string) *bench {
	t.Helper()
	d, err := installed.Parse("mine.toml", file)
	if err != nil {
		t.Fatal(err)
	}
	b.Agents = append(agents.All(), d.Entry())
	b.cfg.Agent.Name = new("mine")
	b.Layers = &layer.Store{Dir: filepath.Join(t.TempDir(), "agents"), Now: time.Now}
	return b
}

// install does what is to be done before a trial.
func (b *bench) install(t testing.TB) *trial.Installer {
	t.Helper()
	i := b.Installer(b.cfg)
	if i == nil {
		t.Fatal("there is nothing to install")
	}
	if _, err := i.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return i
}

// mounted is what the sandbox of the trial shows at the agent's prefix.
func (b *bench) mounted() *sandbox.Mount {
	for _, c := range b.backend.Calls() {
		for _, m := range c.Spec.Mounts {
			if c.Op == fake.OpCreate && m.Target == minePrefix {
				return &m
			}
		}
	}
	return nil
}

// TestKeptLayer: what was installed before the trial is shown to it, read-only, and nothing
// is installed any more.
func TestKeptLayer(t *testing.T) {
	t.Parallel()
	m := &mine{}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules()}), mineFile)
	i := b.install(t)
	if i.Agent != "mine" || i.Version != "1.2.3" || i.Image != "a-task" {
		t.Errorf("installed %+v", i)
	}
	spec := b.backend.Calls()[0].Spec
	if len(spec.Mounts) > 0 || spec.Network.Mode != sandbox.NetworkAllowlist || !slices.Equal(spec.Network.Hosts, []string{"registry.example"}) || !spec.Image.KeepImage {
		t.Errorf("the sandbox of the installation was %+v", spec)
	}
	if again := b.Installer(b.cfg); again != nil {
		t.Errorf("there is still %+v to install", again)
	}
	res := b.run(t)
	if res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" || res.AgentInfo.Version != "1.2.3" || m.installs.Load() != 1 {
		t.Errorf("exception %+v, agent %+v, installed %d times", res.ExceptionInfo, res.AgentInfo, m.installs.Load())
	}
	if at := b.mounted(); at == nil || !at.ReadOnly || !strings.HasPrefix(at.Source, b.Layers.Dir) {
		t.Errorf("it was shown as %+v", at)
	}
}

// TestLayersFallBack: where what was kept for all images does not run, or nothing was kept,
// the trial installs the program itself.
func TestLayersFallBack(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		m := &mine{broken: func(s sandbox.Spec) bool { return broken && s.Name == "a-task__1234567" }}
		b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules()}), mineFile)
		e, _ := b.Agents.Find("mine")
		in, err := e.Install(agent.Config{Name: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Layers.Build(t.Context(), in, layer.Image{}, layer.Builder{Create: func(ctx context.Context) (sandbox.Sandbox, error) {
			return b.backend.Create(ctx, sandbox.Spec{Name: "general"})
		}})
		if err != nil {
			t.Fatal(err)
		}
		if i := b.Installer(b.cfg); i != nil {
			t.Errorf("there is %+v to install", i)
		}
		want := int64(1)
		if broken {
			want = 2
		}
		if res := b.run(t); res.ExceptionInfo != nil || res.AgentInfo.Version != "1.2.3" || m.installs.Load() != want {
			t.Errorf("broken %t: exception %+v, installed %d times", broken, res.ExceptionInfo, m.installs.Load())
		}
		all, err := b.Layers.List()
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		marks, _ := os.ReadDir(filepath.Join(filepath.Dir(b.mounted().Source), "works"))
		if (len(marks) == 1) == broken {
			t.Errorf("broken %t: %d marks that it works", broken, len(marks))
		}
	}
}

// TestNoInstaller: where there is nothing to install, or trials tell what is wrong, there is
// no installer, and no sandbox is made to find that out.
func TestNoInstaller(t *testing.T) {
	t.Parallel()
	mode := func(b *bench, how string) {
		b.cfg.Agent.Kwargs = value.NewObject(1)
		b.cfg.Agent.Kwargs.Set("install", value.Str(how))
	}
	for name, change := range map[string]func(b *bench){
		"no store":        func(b *bench) { b.Layers = nil },
		"skip":            func(b *bench) { mode(b, "skip") },
		"always":          func(b *bench) { mode(b, "always") },
		"a wrong setting": func(b *bench) { mode(b, "never") },
		"another agent":   func(b *bench) { b.cfg.Agent.Name = new("oracle") },
		"unknown agent":   func(b *bench) { b.cfg.Agent.Name = new("nobody") },
		"no task":         func(b *bench) { b.cfg.Task.Path = new(filepath.Join(b.dir, "none")) },
		"no variable":     func(b *bench) { b.cfg.Agent.Env.Set("A", "${NOT_THERE}") },
		"not mounted": func(b *bench) {
			b.Backend = fake.New(fake.Config{Dir: b.cfg.TrialsDir, Capabilities: &sandbox.Capabilities{Build: true}})
		},
	} {
		b := withMine(t, newBench(t, goodTask(), fake.Config{}), mineFile)
		change(b)
		if i := b.Installer(b.cfg); i != nil || len(b.backend.Calls()) > 0 {
			t.Errorf("%s: %+v after %d calls", name, i, len(b.backend.Calls()))
		}
	}
}

// TestInstallerKeys: images differ by what they are made of or by their references, and the
// same file of compose elsewhere is another image.
func TestInstallerKeys(t *testing.T) {
	t.Parallel()
	caps := &sandbox.Capabilities{Mounted: true, Build: true, Compose: true, NoNetwork: true, Allowlist: true}
	key := func(task taskFiles, change ...func(*bench)) string {
		t.Helper()
		b := withMine(t, newBench(t, task, fake.Config{Capabilities: caps}), mineFile)
		for _, c := range change {
			c(b)
		}
		i := b.Installer(b.cfg)
		if i == nil {
			return ""
		}
		return i.Key
	}
	version := func(b *bench) {
		b.cfg.Agent.Kwargs = value.NewObject(1)
		b.cfg.Agent.Kwargs.Set("version", value.Str("2"))
	}
	const prebuilt = "[environment]\ndocker_image = \"debian:12\"\n"
	const compose = "services: {main: {build: {context: ..}}}\n"
	first := key(goodTask())
	if first == "" || key(goodTask()) != first || key(goodTask().with("instruction.md", "Other.\n")) != first {
		t.Error("the same image has another key")
	}
	if a := key(goodTask().with("task.toml", prebuilt)); a == "" || a != key(goodTask().with("task.toml", prebuilt).with("environment/Dockerfile", "FROM x\n")) {
		t.Error("the same reference has another key")
	}
	seen := map[string]string{"": "nothing"}
	for name, k := range map[string]string{
		"a build":         first,
		"another build":   key(goodTask().with("environment/Dockerfile", "FROM debian\nRUN x\n")),
		"another context": key(goodTask().with("environment/data", "x")),
		"a reference":     key(goodTask().with("task.toml", prebuilt)),
		"another version": key(goodTask(), version),
		"compose":         key(goodTask().with("environment/docker-compose.yaml", compose)),
		"the same files of compose, another Dockerfile above": key(goodTask().with("environment/docker-compose.yaml", compose).with("Dockerfile", "FROM evil\n")),
	} {
		if other, there := seen[k]; there {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[k] = name
	}
	if k := key(goodTask().with("environment/docker-compose.yaml", compose).with("task.toml", "[environment]\nnetwork_mode = \"no-network\"\n")); k != "" {
		t.Error("the services of a task without a network would get one")
	}
}

// TestInstallationKeepsSecrets: a task that is kept from the network does not get the
// environment's variables into a sandbox that has one.
func TestInstallationKeepsSecrets(t *testing.T) {
	t.Parallel()
	for toml, want := range map[string][]string{
		"": {"TOKEN=t0psecret", "https_proxy=http://p"},
		"[environment]\nnetwork_mode = \"no-network\"\n": {"https_proxy=http://p"},
	} {
		m := &mine{}
		b := withMine(t, newBench(t, goodTask().with("task.toml", toml), fake.Config{Rules: m.rules()}), mineFile)
		b.cfg.Environment.Env.Set("TOKEN", "t0psecret")
		b.cfg.Environment.Env.Set("https_proxy", "http://p")
		i := b.install(t)
		for _, name := range filesBelow(t, b.Layers.Dir) {
			if data, err := os.ReadFile(name); err != nil || strings.Contains(string(data), "t0psecret") {
				t.Errorf("%s has the secret, %v:\n%s", name, err, data)
			}
		}
		m.fails = func(sandbox.Spec) bool { return true }
		if _, err := b.Layers.Remove(""); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Install(t.Context()); err == nil || strings.Contains(err.Error(), "t0psecret") || !strings.Contains(err.Error(), "no such package") {
			t.Errorf("%q: failed: %v", toml, err)
		}
		m.fails = nil
		if got := b.backend.Calls()[0].Spec.Env; !slices.Equal(got, want) {
			t.Errorf("%q: the installation has %q", toml, got)
		}
		if res := b.run(t); res.ExceptionInfo != nil {
			t.Errorf("%q: exception %+v", toml, res.ExceptionInfo)
		}
	}
}

// TestFailedInstallation: what the installation printed is part of its error, no sandbox and
// no layer is left, and the trial, which tries again, says the same.
func TestFailedInstallation(t *testing.T) {
	t.Parallel()
	m := &mine{fails: func(sandbox.Spec) bool { return true }}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules()}), mineFile)
	const want = "installing mine: exit 1: the environment has \nno such package"
	if _, err := b.Installer(b.cfg).Install(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if all, err := b.Layers.List(); err != nil || len(all) > 0 || b.backend.Live() > 0 {
		t.Errorf("left %+v, %v and %d sandboxes", all, err, b.backend.Live())
	}
	res := b.run(t)
	if res.ExceptionInfo == nil || !strings.Contains(res.ExceptionInfo.Message, want) || res.VerifierResult != nil || m.installs.Load() != 2 {
		t.Errorf("exception %+v, installed %d times", res.ExceptionInfo, m.installs.Load())
	}
	noImage := errors.New("no such image")
	b = withMine(t, newBench(t, goodTask(), fake.Config{Before: fake.FailAt(fake.OpCreate, 0, noImage)}), mineFile)
	if _, err := b.Installer(b.cfg).Install(t.Context()); !errors.Is(err, noImage) {
		t.Errorf("without an image: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	m = &mine{fails: func(sandbox.Spec) bool { cancel(); return false }}
	b = withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules()}), mineFile)
	if _, err := b.Installer(b.cfg).Install(ctx); !errors.Is(err, context.Canceled) || b.backend.Live() > 0 {
		t.Errorf("cancelled: %v, %d sandboxes live", err, b.backend.Live())
	}
}

// TestDirectKey: without the gateway the agent's commands get the key and the server's own
// address; the trial's files do not, whatever is printed.
func TestDirectKey(t *testing.T) {
	t.Parallel()
	var got map[string]string
	m := &mine{}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(func(_ context.Context, p *fake.Process) (int, error) {
		got = p.Env
		_, _ = fmt.Fprintln(p.Stdout, "the key is "+p.Env["MINE_KEY"])
		return 3, p.Sandbox.WriteFile("/logs/agent/own.txt", []byte(p.Env["MINE_KEY"]), 0o644)
	})}), mineFile)
	b.Lookup = func(name string) (string, bool) { return providersKey, name == "OPENAI_API_KEY" }
	b.Models = &llm.Client{Lookup: b.Lookup, Now: time.Now}
	b.Gateway = trial.GatewayOff
	b.cfg.Agent.ModelName = new("openai/m")
	res := b.run(t)
	if exceptionType(res) != "NonZeroAgentExitCodeError" || got["MINE_KEY"] != providersKey || got["MINE_URL"] != "https://api.openai.com/v1" {
		t.Errorf("exception %+v, key %q, address %q", res.ExceptionInfo, got["MINE_KEY"], got["MINE_URL"])
	}
	b.hasNowhere(t, providersKey)
}

// TestReplayNeedsNoKey: recorded answers are enough for an agent that needs a model.
func TestReplayNeedsNoKey(t *testing.T) {
	t.Parallel()
	file := strings.Replace(mineFile, "required = false\n", "", 1)
	d := openai()
	m := &mine{}
	g := withGateway(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(calls(d, 1, ""))}), d, nil)
	settings := g.cfg.Agent.Kwargs
	settings.Delete("run")
	withMine(t, g.bench, file)
	if res := g.run(t); res.ExceptionInfo != nil || g.counted().Requests != 1 {
		t.Fatalf("recording: exception %+v, %+v", res.ExceptionInfo, g.counted())
	}
	recording, err := llm.ParseRecording([]byte(readText(t, g.dir, callsFile)))
	if err != nil {
		t.Fatal(err)
	}
	b := withMine(t, newBench(t, goodTask(), fake.Config{Rules: m.rules(calls(d, 1, ""))}), file)
	b.cfg.Agent.ModelName = new(d.provider + "/m")
	b.Models = &llm.Client{Lookup: b.Lookup, Now: time.Now}
	if typ := exceptionType(b.run(t)); typ == "" {
		t.Error("without a key and a recording it runs")
	}
	b.cfg.TrialName = "a-task__7654321"
	b.Replay = func(jobdir.TrialConfig) (*llm.Replay, error) {
		return &llm.Replay{Recording: recording, Name: "earlier"}, nil
	}
	if res := b.run(t); res.ExceptionInfo != nil || rewardsText(res) != "{'reward': 1.0}" {
		t.Errorf("replayed: exception %+v", res.ExceptionInfo)
	}
}

// filesBelow are the files of a tree.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil || len(all) == 0 {
		t.Errorf("%d files, %v", len(all), err)
	}
	return all
}
