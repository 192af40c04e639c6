package installed_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/proctor-run/proctor/agent"
	"github.com/proctor-run/proctor/agent/installed"
	"github.com/proctor-run/proctor/agent/logs"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// small is the least that a file must say.
const small = `name = "mine"
summary = "an agent"
output = "mine.txt"
[check]
command = "mine --version"
[run]
command = "mine"
`

// parse reads small with more behind it, and the old words replaced by the new ones.
func parse(t testing.TB, more string, replace ...string) *installed.Definition {
	t.Helper()
	d, err := installed.Parse("mine.toml", strings.NewReplacer(replace...).Replace(small)+more)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestParseErrors: what is wrong with a file is told with the file, the place and what is
// expected there.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, new string // of small
		more     string
		want     string // all of it after "mine.toml: ", or its beginning and its end around "…"
	}{
		"no TOML":               {"name = ", "name ", "", "…line 1…"},
		"no name":               {`name = "mine"`, "", "", "name: missing: how the agent is chosen"},
		"no summary":            {`summary = "an agent"`, "", "", "summary: missing: one line for help"},
		"no output":             {`output = "mine.txt"`, "", "", `output: missing: the file of the log directory for what it prints, as "mine.txt"`},
		"no command":            {"command = \"mine\"\n", "", "", "[run] command: missing: what runs the agent"},
		"a blank command":       {`command = "mine"`, `command = " \n"`, "", "[run] command: missing: what runs the agent"},
		"no check":              {`command = "mine --version"`, "", "", `[check] command: missing: what prints the version, as "mine --version"`},
		"name with a slash":     {`name = "mine"`, `name = "../mine"`, "", `name: want small letters, digits and hyphens, have "../mine"`},
		"output with a slash":   {`"mine.txt"`, `"/etc/passwd"`, "", `output: want the name of a file, have "/etc/passwd"`},
		"output that is above":  {`"mine.txt"`, `".."`, "", `output: want the name of a file, have ".."`},
		"text that is none":     {`"an agent"`, "7", "", "summary: want text, have 7"},
		"flag that is none":     {"[check]", "tried = \"yes\"\n[check]", "", "tried: want true or false, have 'yes'"},
		"unknown key":           {`summary`, "sumary", "", "sumary: unknown key: did you mean summary?; known here: name, …"},
		"unknown key below":     {"[run]", "patern = 'x'\n[run]", "", "[check] patern: unknown key: did you mean pattern?; known here: command, pattern"},
		"far from any key":      {"[run]", "zzzzzz = 'x'\n[run]", "", "[check] zzzzzz: unknown key; known here: command, pattern"},
		"table that is none":    {"[check]", "install = 1\n[check]", "", "install: want a table, have 1"},
		"list that is none":     {"", "", "[install]\nhosts = 'a'\n", "[install] hosts: want a list of texts, have 'a'"},
		"list of others":        {"", "", "[install]\nhosts = ['a', 1]\n", "[install] hosts: want a list of texts, have 1 in it"},
		"pattern":               {"[run]", "pattern = '('\n[run]", "", "[check] pattern: want a regular expression: …"},
		"api":                   {"", "", "[model]\napis = ['grpc']\n", `[model] apis: want ["chat" "responses" "anthropic" "gemini"], have "grpc"`},
		"npm without node":      {"", "", "[install]\nnpm = ['mine@1']\n", "[install]: packages of npm need node, …"},
		"logs":                  {"[check]", "logs = 'mine'\n[check]", "", `logs: the logs of "mine" cannot be read; known are claude-code, …`},
		"file without a path":   {"", "", "[[file]]\ncontent = ''\n", `[[file]] path: want an absolute path or one that begins with "~/", have ""`},
		"file that is relative": {"", "", "[[file]]\npath = 'a/b'\n", `[[file]] path: want an absolute path or one that begins with "~/", have "a/b"`},
		"file that is the home": {"", "", "[[file]]\npath = '~/'\n", `[[file]] path: want an absolute path or one that begins with "~/", have "~/"`},
		"file with NUL":         {"", "", "[[file]]\npath = \"/a\\u0000b\"\n", `[[file]] path: want an absolute path …`},
		"files that are none":   {"[check]", "file = 'x'\n[check]", "", "file: want tables, as in [[file]], have 'x'"},
		"files that are texts":  {"[check]", "file = ['x']\n[check]", "", "file: want tables, as in [[file]], have 'x'"},
		"key of a file":         {"", "", "[[file]]\npath = '/a'\nconten = ''\n", "[[file] 1] conten: unknown key: did you mean content?; known here: path, content"},
		"skills":                {"", "", "[skills]\ndir = 'skills'\n", `[skills] dir: want an absolute path or one that begins with "~/", have "skills"`},
		"variable":              {"", "", "[run.env]\n\"A B\" = 'x'\n", `[run.env]: want the name of a variable, have "A B"`},
		"variable of a number":  {"", "", "[run.env]\nA = 1\n", "[run.env] A: want text, have 1"},
		"setting without name":  {"", "", "[[setting]]\nflag = '--x'\n", "[[setting]] 1: name is missing"},
		"setting twice":         {"", "", "[[setting]]\nname = 'x'\n[[setting]]\nname = 'x'\n", "[[setting]] 2: there is a setting x already"},
		"setting of every one":  {"", "", "[[setting]]\nname = 'version'\n", "[[setting]] 1: there is a setting version already"},
		"setting's type":        {"", "", "[[setting]]\nname = 'x'\ntype = 'float'\n", "[[setting]] 1: …its type must be str, int, bool or enum"},
		"setting's default":     {"", "", "[[setting]]\nname = 'x'\ntype = 'int'\ndefault = 'y'\n", "[[setting]] 1: …want a whole number"},
		"failure":               {"", "", "[[failure]]\npattern = 'x'\n", "[[failure]]: want a pattern and a type"},
		"template":              {`command = "mine"`, `command = "mine {{.Modl.Name}}"`, "", "[run] command: line 1 of the template: …"},
		"template that is open": {`command = "mine"`, `command = "mine {{if .Skills}}"`, "", "[run] command: line 1 of the template: unexpected EOF"},
		"unknown function":      {`command = "mine"`, `command = "mine {{shell .Key}}"`, "", `[run] command: line 1 of the template: function "shell" not defined`},
		"unknown form":          {"", "", "[[file]]\npath = '/a'\ncontent = '{{mcp \"mine\"}}'\n", `[[file]] /a: …there is no form "mine" of MCP servers, only claude, gemini, openclaw, opencode, plain, qwen`},
		"unknown setting":       {"", "", "[[setting]]\nname = 'effort'\n[run.env]\nA = '{{setting \"efort\"}}'\n", `[run.env] A: …there is no setting "efort": did you mean effort?`},
		"what few trials have":  {"", "", "[[file]]\npath = '/a'\ncontent = '''\n{{range .MCP}}{{.Addres}}{{end}}'''\n", "[[file]] /a: line 1 of the template: …"},
		"one protocol's":        {`command = "mine"`, `command = "mine {{if eq .API \"gemini\"}}{{.X}}{{end}}"`, "[model]\napis = ['chat', 'gemini']\n", "[run] command: line 1 of the template: …"},
		"npm's template":        {"", "", "[install]\nnode = '1'\nnpm = ['x@{{.Versoin}}']\n", "[install] npm: line 1 of the template: …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := installed.Parse("mine.toml", strings.Replace(small, c.old, c.new, 1)+c.more)
			if err == nil {
				t.Fatal("no error")
			}
			parts := strings.Split(c.want, "…")
			text := err.Error()
			if !strings.HasPrefix(text, "mine.toml: "+parts[0]) || !strings.HasSuffix(text, parts[len(parts)-1]) || !strings.Contains(text, parts[len(parts)/2]) || len(parts) == 1 && text != "mine.toml: "+c.want {
				t.Errorf("got  %s\nwant mine.toml: %s", text, c.want)
			}
		})
	}
}

// TestLoad: a file that is none is told by its name.
func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := installed.Load(dir); err == nil {
		t.Error("a directory was read")
	}
	file := filepath.Join(dir, "mine.toml")
	if _, err := installed.Load(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("none: %v", err)
	}
	if err := os.WriteFile(file, []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	if d, err := installed.Load(file); err != nil || d.Name != "mine" || d.Source() != small || d.HowInstalled() != "nothing: it must be in the image" {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestFiles: an agent is found by the path of its file and, in the directory, by its name;
// what is wrong with a file is told when the agent is checked.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"mine.toml": small, "broken.toml": "name = 1\n", "other.txt": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known := agent.Registry{{Name: "known", Sandboxed: func(agent.Config) (agent.Agent, error) { return nil, nil }}, installed.Files(dir)}
	for name, want := range map[string]string{
		"mine":                           "",
		filepath.Join(dir, "mine.toml"):  "",
		"broken":                         "broken.toml: name: want text, have 1",
		"other":                          `"other" is not an agent`,
		"nowhere.toml":                   "nowhere.toml",
		filepath.Join(dir, "none.toml"):  "none.toml",
		"../" + filepath.Base(dir) + "/": "reading the agent's file",
	} {
		err := known.Check(agent.Config{Name: name, Model: "openai/m"}, false)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if names := known.Names(); !slices.Equal(names, []string{"known"}) {
		t.Errorf("listed are %q", names)
	}
	all, err := installed.InDirectory(dir)
	if len(all) != 1 || all[0].Name != "mine" || err == nil || !strings.Contains(err.Error(), "broken.toml") {
		t.Errorf("in the directory: %+v, %v", all, err)
	}
	if all, err := installed.InDirectory(filepath.Join(dir, "none")); all != nil || err != nil {
		t.Errorf("in none: %+v, %v", all, err)
	}
}

// TestShipped: the files that come with proctor say what they must, and their names are
// those of the files.
func TestShipped(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("data")
	if err != nil {
		t.Fatal(err)
	}
	all := installed.Definitions()
	if len(all) != len(entries) || len(all) == 0 {
		t.Fatalf("%d files and %d agents", len(entries), len(all))
	}
	for i, d := range all {
		if d.Name+".toml" != entries[i].Name() || (d.Version == "" || d.Check.Pattern == nil) && d.Tried || strings.HasSuffix(d.Summary, ".") || strings.Contains(d.Summary, "\n") {
			t.Errorf("%s: version %q, summary %q, or what tells the version", entries[i].Name(), d.Version, d.Summary)
		}
		if _, err := installed.Parse(d.Name, d.Source()); err != nil { // the templates, too
			t.Error(err)
		}
		e := d.Entry()
		if e.Install == nil || len(e.Settings) < 3 {
			t.Errorf("%s: its entry is %+v", d.Name, e)
		}
		in, err := e.Install(agent.Config{Name: d.Name})
		if err != nil || in.Agent != d.Name || in.Version != d.Version || (len(in.Hosts) == 0) != (d.Install.Script != "") || in.Prefix != "/installed-agent/"+d.Name {
			t.Errorf("%s: its installation is %+v, %v", d.Name, in, err)
		}
	}
}

// TestEntry: what the registry tells of an agent follows from its file.
func TestEntry(t *testing.T) {
	t.Parallel()
	e := parse(t, "").Entry()
	if e.Gateway || e.NeedsModel || e.Install != nil || e.Logs != nil || e.Output != "mine.txt" {
		t.Errorf("the least: %+v", e)
	}
	d := parse(t, "[model]\napis = ['anthropic']\nkeys = ['MINE_KEY']\n[install]\nscript = 'true'\n[[setting]]\nname = 'x'\ntype = 'int'\n")
	e = d.Entry()
	if !e.Gateway || !e.NeedsModel || e.Install == nil || !slices.Equal(e.OwnKeys, []string{"MINE_KEY"}) || d.HowInstalled() != "a script" {
		t.Errorf("more: %+v", e)
	}
	known := agent.Registry{e}
	settings := func(name, text string) *value.Object {
		o := value.NewObject(1)
		o.Set(name, value.Str(text))
		return o
	}
	for want, c := range map[string]agent.Config{
		"":                           {Model: "anthropic/m", Settings: settings("install", "skip")},
		"needs a model":              {},
		"want auto, skip or always":  {Model: "anthropic/m", Settings: settings("install", "never")},
		"want a whole number":        {Model: "anthropic/m", Settings: settings("x", "y")},
		"in the protocol anthropic":  {Model: "openai/m"},
		"did you mean version?":      {Model: "anthropic/m", Settings: settings("versoin", "1")},
		"setting prompt_template_pa": {Model: "anthropic/m", Settings: settings("prompt_template_path", "/does/not/exist")},
	} {
		c.Name = "mine"
		if err := known.Check(c, false); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestInstallationDigest: what installs other files has another digest, and what does not
// the same.
func TestInstallationDigest(t *testing.T) {
	t.Parallel()
	digest := func(more string, settings ...string) string {
		t.Helper()
		c := agent.Config{Name: "mine", Settings: value.NewObject(1)}
		for i := 0; i+1 < len(settings); i += 2 {
			c.Settings.Set(settings[i], value.Str(settings[i+1]))
		}
		in, err := parse(t, "[model]\nrequired = false\n"+more).Entry().Install(c)
		if err != nil {
			t.Fatal(err)
		}
		if in == nil {
			return ""
		}
		return in.Digest
	}
	script := "[install]\nscript = 'true'\n"
	first := digest(script)
	if digest(script) != first || digest(script+"[[setting]]\nname = 'x'\n", "x", "1") != first || digest("[install]\nscript = 'true'\nhosts = ['a']\n") != first {
		t.Error("what installs the same has another digest")
	}
	for name, other := range map[string]string{
		"script": digest("[install]\nscript = 'false'\n"), "node": digest(script + "node = '2'\n"), "version": digest(script, "version", "2"),
		"npm": digest(script + "node = '2'\nnpm = ['x']\n"),
	} {
		if other == first || other == "" {
			t.Errorf("another %s has the digest %q", name, other)
		}
	}
	for _, mode := range []string{"skip", "always"} {
		if got := digest(script, "install", mode); got != "" {
			t.Errorf("install=%s has an installation", mode)
		}
	}
}

// TestFailures: what a file says of failures is found in the end of what the program
// printed, whatever the reader of its logs finds.
func TestFailures(t *testing.T) {
	t.Parallel()
	const failure = "[[failure]]\npattern = '(?i)no credit'\ntype = 'RateLimitError'\n[[failure]]\npattern = 'key'\ntype = 'AuthenticationError'\n"
	long := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct{ printed, said, typ string }{
		"nothing":          {"all is well\n", "", ""},
		"one":              {"at first\nERROR: No credit left\nbye\n", "ERROR: No credit left", "RateLimitError"},
		"the first counts": {"a key\nno credit", "no credit", "RateLimitError"},
		"the other":        {"a bad key", "a bad key", "AuthenticationError"},
		"before the end":   {"no credit\n" + long, "", ""},
		"no text":          {"\xff\xfe key", " key", "AuthenticationError"},
	} {
		for _, reader := range []string{"", "logs = 'pi'\n"} {
			e := parse(t, failure, "[check]", reader+"[check]").Entry()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte(c.printed), 0o644); err != nil {
				t.Fatal(err)
			}
			made, err := logs.Read("mine", e.Logs, logs.Input{Dir: dir})
			if err != nil || strings.TrimLeft(made.Failure, "\ufffd") != c.said || made.FailureType != c.typ {
				t.Errorf("%s: %+v, %v", name, made, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	for _, d := range installed.Definitions() {
		f.Add(d.Source())
	}
	f.Add(small + "[[failure]]\npattern = 'x'\ntype = 'T'\n[[setting]]\nname = 'x'\nformat = '-c {value}'\ndefault = 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := installed.Parse("f", text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		e := d.Entry()
		if e.Name == "" || e.Sandboxed == nil || d.HowInstalled() == "" {
			t.Errorf("an agent without a name: %+v", e)
		}
		c := agent.Config{Name: d.Name, Model: "openai/m"}
		if err := (agent.Registry{e}).Check(c, false); err == nil && e.Install != nil {
			if in, err := e.Install(c); err != nil || in != nil && in.Digest == "" {
				t.Errorf("installation %+v, %v", in, err)
			}
		}
		for _, api := range d.Model.APIs {
			if !slices.Contains([]llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini}, api) {
				t.Errorf("protocol %q", api)
			}
		}
	})
}
