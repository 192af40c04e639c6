package terminus

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/fake"
)

// installed are the package lists that were to be installed.
func installed(b *bench) []string {
	var list []string
	for _, c := range b.terminal.commands {
		if len(c.Argv) > 0 {
			list = append(list, strings.Join(c.Argv[4:], " "))
			if c.User != "root" || c.Timeout <= 0 || c.Timeout > installLimit {
				b.t.Errorf("installed by %q within %s", c.User, c.Timeout)
			}
		}
	}
	return list
}

func TestInstalling(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has, brings []string
		record      string
		installs    []string
		records     bool
		warnings    int
	}{
		"all there":                 {has: []string{"tmux", "asciinema", "apt-get"}, record: "null", records: true},
		"not recorded":              {has: []string{"tmux", "asciinema", "apt-get"}, record: "false"},
		"no recorder":               {has: []string{"tmux", "apt-get"}, record: "null", warnings: 1},
		"recorder asked for":        {has: []string{"tmux", "apt-get"}, brings: []string{"asciinema"}, record: "true", installs: []string{"asciinema"}, records: true},
		"no such recorder":          {has: []string{"tmux", "apt-get"}, record: "true", installs: []string{"asciinema"}, warnings: 1},
		"nothing there":             {has: []string{"apt-get"}, brings: []string{"tmux", "asciinema"}, record: "null", installs: []string{"tmux asciinema"}, records: true},
		"nothing there nor desired": {has: []string{"apt-get"}, brings: []string{"tmux"}, record: "false", installs: []string{"tmux"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil, "record_terminal_session", c.record)
			b.terminal.has, b.terminal.installs = map[string]bool{}, c.brings
			for _, name := range c.has {
				b.terminal.has[name] = true
			}
			b.setup()
			if got := installed(b); !slices.Equal(got, c.installs) {
				t.Errorf("it installed %q, want %q", got, c.installs)
			}
			var want []string
			if c.records {
				want = []string{"asciinema rec --stdin /logs/agent/recording.cast\n", "clear\n"}
			}
			if got := b.terminal.keys(); !slices.Equal(got, want) {
				t.Errorf("it typed %q, want %q", got, want)
			}
			if len(b.warnings) != c.warnings {
				t.Errorf("it warns %q", b.warnings)
			}
		})
	}
}

// TestRecorderHindersTmux: where the two cannot be installed together, tmux is alone.
func TestRecorderHindersTmux(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, "record_terminal_session", "null")
	b.terminal.has = map[string]bool{"apt-get": true}
	b.terminal.install = func(_ context.Context, p *fake.Process) (int, error) {
		if slices.Contains(p.Command.Argv, "asciinema") {
			return 100, nil
		}
		b.terminal.has["tmux"] = true
		return 0, nil
	}
	b.setup()
	if got := installed(b); !slices.Equal(got, []string{"tmux asciinema", "tmux"}) {
		t.Errorf("it installed %q", got)
	}
}

// TestNoTmux: the error says what the image needs.
func TestNoTmux(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has     []string
		install fake.Handler
		part    string
		tries   int
	}{
		"no package manager": {nil, nil, "it has no package manager that is known", 0},
		"fails":              {[]string{"apt-get"}, fake.InOrder(fake.Print("no route"), fake.Exit(100)), "apt-get: exit 100: no route", 1},
		"brings nothing":     {[]string{"apt-get"}, fake.Exit(0), "apt-get brought none", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			b.terminal.has, b.terminal.install = map[string]bool{}, c.install
			for _, name := range c.has {
				b.terminal.has[name] = true
			}
			err := b.agent.Setup(t.Context(), b.env)
			if exception.TypeOf(err) != exception.RuntimeError || !strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), "RUN apt-get") {
				t.Errorf("got %v", err)
			}
			if got := len(installed(b)); got != c.tries {
				t.Errorf("%d tries, want %d", got, c.tries)
			}
		})
	}
}

// TestInstallingIsBounded: all of it takes no longer than its bound.
func TestInstallingIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, "record_terminal_session", "true")
	b.terminal.has = map[string]bool{"apt-get": true}
	b.terminal.install = func(_ context.Context, p *fake.Process) (int, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.time = b.time.Add(200 * time.Second)
		return 1, nil
	}
	if err := b.agent.Setup(t.Context(), b.env); err == nil {
		t.Error("there is a tmux")
	}
	var limits []time.Duration
	for _, c := range b.terminal.commands {
		if len(c.Argv) > 0 {
			limits = append(limits, c.Timeout)
		}
	}
	if want := []time.Duration{installLimit, 40 * time.Second}; !slices.Equal(limits, want) {
		t.Errorf("the limits are %v, want %v", limits, want)
	}
}

// TestStart: the history is long from the first pane on (section 10, deviation 4), and
// variables are on no command line.
func TestStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, "tmux_pane_width", "100", "tmux_pane_height", "30")
	b.agent.(*terminus).vars = []string{"KEY=secret"}
	b.env.User = "somebody"
	b.setup()
	i := slices.IndexFunc(b.terminal.commands, func(c sandbox.Command) bool { return strings.Contains(c.Shell, "new-session") })
	start := b.terminal.commands[i]
	history, session := strings.Index(start.Shell, "set-option -g history-limit 10000000"), strings.Index(start.Shell, "new-session -x 100 -y 30 -d -s terminus-2")
	if history < 0 || session < history || !strings.Contains(start.Shell, "/logs/agent/terminus_2.pane") {
		t.Errorf("it is started by %s", start.Shell)
	}
	if strings.Contains(start.Shell, "secret") || !slices.Equal(start.Env, []string{"KEY=secret"}) || start.User != "somebody" {
		t.Errorf("it is started with %v as %q", start.Env, start.User)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.terminal.has = map[string]bool{}
	terminal := b.agent.(*terminus).session(b.env)
	if err := terminal.start(t.Context()); exception.TypeOf(err) != exception.RuntimeError || !strings.HasPrefix(err.Error(), "Failed to start tmux session") {
		t.Errorf("got %v", err)
	}
}

func TestSkillsAreFound(t *testing.T) {
	t.Parallel()
	backend := fake.New(fake.Config{Dir: t.TempDir(), Rules: []fake.Rule{fake.On("find /my/skills -mindepth 2",
		fake.Print("/my/skills/a/SKILL.md\x00---\nname: a\ndescription: d\n---\n\x00/my/skills/b/SKILL.md\x00nothing\x00"))}})
	sb, err := backend.Create(t.Context(), sandbox.Spec{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sb.Destroy(context.Background()) }()
	s := session{env: agent.Env{Sandbox: sb, SkillsDir: "/my/skills"}}
	files, err := s.skillFiles(t.Context())
	if err != nil || len(files) != 2 || files[1] != (skillFile{"/my/skills/b/SKILL.md", "nothing"}) {
		t.Fatalf("got %q, %v", files, err)
	}
	if got := skillsSection(files); !strings.Contains(got, "<location>/my/skills/a/SKILL.md</location>") || strings.Contains(got, "/b/") {
		t.Errorf("the section is %s", got)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []any
		part     string // of the error; empty for none
	}{
		"none":                  {nil, ""},
		"all":                   {[]any{"parser_name", "xml", "tmux_pane_width", "80", "llm_backend", "litellm", "llm_kwargs", `{"extra_body":{"a":1}}`, "api_base", "http://x/v1", "api", "chat"}, ""},
		"null is not given":     {[]any{"max_turns", "null", "trajectory_config", "null", "llm_kwargs", "null"}, ""},
		"no model":              {[]any{"model", ""}, "needs a model"},
		"parser":                {[]any{"parser_name", "yaml"}, "want json or xml"},
		"turns":                 {[]any{"max_turns", "0"}, "setting max_turns is 0, want a whole number from 1"},
		"width":                 {[]any{"tmux_pane_width", "-1"}, "setting tmux_pane_width is -1"},
		"height":                {[]any{"tmux_pane_height", `"40"`}, "setting tmux_pane_height is '40'"},
		"flag":                  {[]any{"enable_summarize", "1"}, "setting enable_summarize is 1, want true or false"},
		"trajectory":            {[]any{"trajectory_config", `{"raw":true}`}, "has no raw"},
		"trajectory's value":    {[]any{"trajectory_config", `{"raw_content":3}`}, "raw_content of setting trajectory_config is 3"},
		"tinker":                {[]any{"llm_backend", "tinker"}, "llm_backend tinker"},
		"backend":               {[]any{"llm_backend", "other"}, `llm_backend is "other"`},
		"constructor's":         {[]any{"llm_kwargs", `{"timeout":3}`}, "setting llm_kwargs has timeout"},
		"call's":                {[]any{"llm_call_kwargs", "3"}, "setting llm_call_kwargs is 3, want a JSON object"},
		"body":                  {[]any{"llm_call_kwargs", `{"extra_body":[]}`}, "extra_body of setting llm_call_kwargs is []"},
		"temperature":           {[]any{"temperature", "-1"}, "temperature"},
		"model_info":            {[]any{"model_info", "3"}, "setting model_info is 3"},
		"two protocols":         {[]any{"use_responses_api", "true", "api", "chat"}, "leave one of them out"},
		"two protocols, agreed": {[]any{"use_responses_api", "true", "api", "responses"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := agent.Registry{Entry()}.Check(config(c.settings...), false)
			switch {
			case c.part == "" && err != nil:
				t.Errorf("got %v", err)
			case c.part != "" && (exception.TypeOf(err) != exception.ValueError || !strings.Contains(err.Error(), c.part)):
				t.Errorf("got %v, want %q", err, c.part)
			}
		})
	}
}

// TestBody: members for the body of requests are merged, those of a call before others.
func TestBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, says(doneJSON, doneJSON), "llm_kwargs", `{"extra_body":{"a":1,"b":1}}`, "llm_call_kwargs", `{"top_p":0.5,"extra_body":{"b":2}}`)
	b.must()
	got := b.script.Requests()[0].Extra
	for name, want := range map[string]string{"a": "1", "b": "2", "top_p": "0.5"} {
		if v, _ := got.Get(name); v == nil || string(must(v)) != want {
			t.Errorf("%s is %v, want %s", name, v, want)
		}
	}
	if extra := b.trajectory("trajectory.json").Agent.Extra; !extra.Has("llm_kwargs") {
		t.Error("the trajectory does not tell of llm_kwargs")
	}
}

func TestEntry(t *testing.T) {
	t.Parallel()
	e := Entry()
	c := config()
	c.Models = llm.OpenerFunc(func(string, llm.Options) (llm.Model, error) { return nil, nil })
	a, err := e.Sandboxed(c)
	if err != nil || a.Info() != (agent.Info{Name: "terminus-2", Version: "2.0.0"}) {
		t.Fatalf("got %v, %v", a, err)
	}
	c.Model = ""
	if _, err := e.Sandboxed(c); exception.TypeOf(err) != exception.ValueError {
		t.Errorf("without a model: %v", err)
	}
}

// TestProvisioned: what is installed and the terminal are apart, so that another trial's agent
// finds what was installed and opens a terminal of its own. Where it does not find it, it says
// so and installs nothing.
func TestProvisioned(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, "record_terminal_session", "null")
	b.terminal.has, b.terminal.installs = map[string]bool{"apt-get": true}, []string{"tmux", "asciinema"}
	if err := b.agent.(agent.Provisioner).Provision(t.Context(), b.env); err != nil {
		t.Fatal(err)
	}
	if b.terminal.running || len(installed(b)) != 1 {
		t.Errorf("the terminal is open: %t; installed: %q", b.terminal.running, installed(b))
	}
	looks := len(b.terminal.commands)
	b.env.Provisioned = true
	b.setup()
	if !b.terminal.running || len(b.terminal.keys()) != 2 || len(installed(b)) != 1 {
		t.Errorf("the terminal is open: %t; typed %q; installed %q", b.terminal.running, b.terminal.keys(), installed(b))
	}
	if again := b.terminal.commands[looks].Shell; strings.HasPrefix(again, "tmux -V") {
		t.Error("what was found is looked for again")
	}

	other := newBench(t, nil, "record_terminal_session", "null")
	other.env.Provisioned = true
	other.terminal.has = map[string]bool{"apt-get": true, "tmux": true, "asciinema": true}
	other.setup()
	if !other.terminal.running || len(other.terminal.keys()) != 2 || len(installed(other)) != 0 {
		t.Errorf("the other's terminal is open: %t; typed %q; installed %q", other.terminal.running, other.terminal.keys(), installed(other))
	}

	none := newBench(t, nil)
	none.env.Provisioned = true
	none.terminal.has = map[string]bool{"apt-get": true}
	if err := none.agent.Setup(t.Context(), none.env); err == nil || !strings.Contains(err.Error(), "needs tmux") || len(installed(none)) != 0 {
		t.Errorf("without tmux: %v; installed %q", err, installed(none))
	}
}
