package installed

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/agent/installed/internal/setting"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/internal/suggest"
	"github.com/proctor-run/proctor/internal/toml"
	"github.com/proctor-run/proctor/llm"
	"github.com/proctor-run/proctor/value"
)

// Definition is an agent as a file describes it: what installs its program, how it is run,
// and what it leaves. [Parse] reads one; [Definition.Entry] makes an agent of it.
// Texts marked as templates are Go's text/template over [Vars].
type Definition struct {
	// Name is how the agent is chosen, Summary one line for help.
	Name, Summary string
	// Version is what is installed unless the setting "version" says otherwise.
	Version string
	// Output is the file of the log directory that has what the program printed.
	Output string
	// Logs names the agent whose logs these are like; empty for none that can be read.
	Logs string
	// Tried says that the program has been seen to work as the file has it.
	Tried bool

	Install  Install
	Check    Check
	Model    Model
	Run      Run
	Files    []File
	settings []setting.Setting
	// Skills is the directory that skills are copied to before a run; empty for none.
	Skills   string
	Failures []Failure

	// source is the file's text: what decides how the program is installed is part of it.
	source string
}

// Install is how the program comes into a directory of its own, as root, in a sandbox.
type Install struct {
	// Node is the version of Node that the program runs with; NodeBuild one that it is
	// only installed with. Both empty: none is needed.
	Node, NodeBuild string
	// NPM are packages of npm with their versions, templates.
	NPM []string
	// Script is run by bash after that, a template.
	Script string
	// Hosts are what the installation reaches besides npm's registry. Where a script is
	// without them, it has the whole network.
	Hosts []string
}

// empty reports whether nothing installs the program.
func (i *Install) empty() bool { return len(i.NPM) == 0 && strings.TrimSpace(i.Script) == "" }

// Check says which version of the program is there.
type Check struct {
	// Command is run by bash. Its first word is the program.
	Command string
	// Pattern finds the version in what it prints.
	Pattern *regexp.Regexp
}

// program is what the command runs.
func (c *Check) program() string { return strings.Fields(c.Command)[0] }

// Model is what the program wants of a model.
type Model struct {
	// APIs are the protocols that it speaks at an address that it is told, the best first;
	// none for programs that speak to their vendor alone.
	APIs []llm.API
	// Required: it works only with a model that is named.
	Required bool
	// Keys are variables of its own with which it finds a model by itself.
	Keys []string
}

// Run is how the program is run.
type Run struct {
	// Command is run by bash as the agent's user, in the task's working directory, with no
	// input; a template.
	Command string
	// After is run likewise when the command has ended, however that was; a template.
	After string
	// Env are variables, whose values are templates. Empty ones are left out.
	Env []Variable
}

// Variable is a name with a template of its value.
type Variable struct{ Name, Value string }

// File is written before each run, as the agent's user.
type File struct {
	// Path is absolute or begins with "~/"; Content is a template.
	Path, Content string
}

// Failure is how a run that failed can be told by what the program printed.
type Failure struct {
	Pattern *regexp.Regexp
	// Type is the name of the exception.
	Type string
}

// maxDefinition is the size of the largest file of an agent, in bytes.
const maxDefinition = 1 << 20

// Load reads the file of an agent. Errors name the file, the place in it and what is
// expected there.
func Load(file string) (*Definition, error) {
	data, err := bounded.ReadFile(file, maxDefinition)
	if err != nil {
		return nil, fmt.Errorf("reading the agent's file: %w", err)
	}
	return Parse(file, string(data))
}

// Parse reads the text of an agent's file; name stands in errors.
func Parse(name, text string) (*Definition, error) {
	d, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	r := &reader{file: name}
	if r.templates(d); r.err != nil {
		return nil, r.err
	}
	return d, nil
}

// parse is Parse without a trial of the templates, which takes longer than all the rest.
func parse(name, text string) (*Definition, error) {
	doc, err := toml.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r := &reader{file: name}
	d := r.definition(r.table(doc, ""))
	d.source = text
	if r.err == nil {
		r.complete(d)
	}
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

// reader reads tables and keeps the first error.
type reader struct {
	file string
	err  error
}

func (r *reader) failf(at, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %s: %s", r.file, at, fmt.Sprintf(format, args...))
	}
}

// table is a table whose keys are taken one by one.
type table struct {
	r     *reader
	path  string
	o     *value.Object
	known []string
}

func (r *reader) table(o *value.Object, path string) *table {
	if o == nil {
		o = &value.Object{}
	}
	return &table{r: r, path: path, o: o}
}

// at is the place of a key, for errors.
func (t *table) at(key string) string {
	if t.path == "" {
		return key
	}
	return "[" + t.path + "] " + key
}

func (t *table) take(key string) value.Value {
	t.known = append(t.known, key)
	v, _ := t.o.Get(key)
	return v
}

func (t *table) text(key string) string {
	switch v := t.take(key).(type) {
	case nil:
		return ""
	case value.Str:
		return string(v)
	default:
		t.r.failf(t.at(key), "want text, have %s", value.ShortRepr(value.Repr(v)))
		return ""
	}
}

func (t *table) flag(key string, absent bool) bool {
	switch v := t.take(key).(type) {
	case nil:
		return absent
	case value.Bool:
		return bool(v)
	default:
		t.r.failf(t.at(key), "want true or false, have %s", value.ShortRepr(value.Repr(v)))
		return absent
	}
}

func (t *table) texts(key string) []string {
	v := t.take(key)
	if v == nil {
		return nil
	}
	list, ok := v.(value.List)
	if !ok {
		t.r.failf(t.at(key), "want a list of texts, have %s", value.ShortRepr(value.Repr(v)))
	}
	var all []string
	for _, item := range list {
		s, ok := item.(value.Str)
		if !ok {
			t.r.failf(t.at(key), "want a list of texts, have %s in it", value.ShortRepr(value.Repr(item)))
		}
		all = append(all, string(s))
	}
	return all
}

// sub is a table below; an absent one is empty.
func (t *table) sub(key string) *table {
	v := t.take(key)
	o, ok := v.(*value.Object)
	if v != nil && !ok {
		t.r.failf(t.at(key), "want a table, have %s", value.ShortRepr(value.Repr(v)))
	}
	return t.r.table(o, strings.TrimPrefix(t.path+"."+key, "."))
}

// each are the tables of a list below.
func (t *table) each(key string) []*table {
	v := t.take(key)
	if v == nil {
		return nil
	}
	list, ok := v.(value.List)
	if !ok {
		t.r.failf(t.at(key), "want tables, as in [[%s]], have %s", key, value.ShortRepr(value.Repr(v)))
	}
	var all []*table
	for i, item := range list {
		o, ok := item.(*value.Object)
		if !ok {
			t.r.failf(t.at(key), "want tables, as in [[%s]], have %s", key, value.ShortRepr(value.Repr(item)))
		}
		all = append(all, t.r.table(o, fmt.Sprintf("[%s] %d", key, i+1)))
	}
	return all
}

func (t *table) pattern(key string) *regexp.Regexp {
	text := t.text(key)
	if text == "" {
		return nil
	}
	p, err := regexp.Compile(text)
	if err != nil {
		t.r.failf(t.at(key), "want a regular expression: %v", err)
	}
	return p
}

// done reports keys that nobody took.
func (t *table) done() {
	for key := range t.o.Keys() {
		if slices.Contains(t.known, key) {
			continue
		}
		hint := suggest.DidYouMean(": ", suggest.Nearest(key, t.known))
		t.r.failf(t.at(key), "unknown key%s; known here: %s", hint, strings.Join(t.known, ", "))
	}
}

func (r *reader) definition(t *table) *Definition {
	d := &Definition{
		Name: t.text("name"), Summary: t.text("summary"), Version: t.text("version"),
		Output: t.text("output"), Logs: t.text("logs"), Tried: t.flag("tried", false),
	}
	install := t.sub("install")
	d.Install = Install{
		Node: install.text("node"), NodeBuild: install.text("node_build"), NPM: install.texts("npm"),
		Script: install.text("script"), Hosts: install.texts("hosts"),
	}
	install.done()
	check := t.sub("check")
	d.Check = Check{Command: check.text("command"), Pattern: check.pattern("pattern")}
	check.done()
	model := t.sub("model")
	for _, api := range model.texts("apis") {
		d.Model.APIs = append(d.Model.APIs, llm.API(api))
	}
	d.Model.Required, d.Model.Keys = model.flag("required", true), model.texts("keys")
	model.done()
	run := t.sub("run")
	d.Run = Run{Command: run.text("command"), After: run.text("after")}
	env := run.sub("env")
	for name := range env.o.Keys() {
		d.Run.Env = append(d.Run.Env, Variable{Name: name, Value: env.text(name)})
	}
	run.done()
	for _, f := range t.each("file") {
		d.Files = append(d.Files, File{Path: f.text("path"), Content: f.text("content")})
		f.done()
	}
	for _, s := range t.each("setting") {
		d.settings = append(d.settings, r.setting(s))
	}
	skills := t.sub("skills")
	d.Skills = skills.text("dir")
	skills.done()
	for _, f := range t.each("failure") {
		d.Failures = append(d.Failures, Failure{Pattern: f.pattern("pattern"), Type: f.text("type")})
		f.done()
	}
	t.done()
	return d
}

func (r *reader) setting(t *table) setting.Setting {
	s := setting.Setting{
		Name: t.text("name"), Summary: t.text("summary"), Flag: t.text("flag"), Format: t.text("format"), Env: t.text("env"),
		Kind: setting.Kind(cmp.Or(t.text("type"), string(setting.Text))), Choices: t.texts("choices"), Default: t.take("default"),
		HostEnv: t.text("host_env"), True: t.text("true"), False: t.text("false"),
	}
	t.done()
	return s
}

// complete refuses a definition that lacks what an agent needs.
func (r *reader) complete(d *Definition) {
	need := func(key, text, what string) {
		if strings.TrimSpace(text) == "" {
			r.failf(key, "missing: %s", what)
		}
	}
	need("name", d.Name, "how the agent is chosen")
	need("summary", d.Summary, "one line for help")
	need("output", d.Output, `the file of the log directory for what it prints, as "`+d.Name+`.txt"`)
	need("[run] command", d.Run.Command, "what runs the agent")
	need("[check] command", d.Check.Command, "what prints the version, as \""+d.Name+" --version\"")
	if !isName(d.Name) {
		r.failf("name", "want small letters, digits and hyphens, have %q", d.Name)
	}
	if !isName(strings.NewReplacer(".", "", "_", "").Replace(d.Output)) {
		r.failf("output", "want the name of a file, have %q", d.Output)
	}
	r.parts(d)
	r.settings(d)
}

// parts refuses what is there and cannot be.
func (r *reader) parts(d *Definition) {
	for _, api := range d.Model.APIs {
		if all := []llm.API{llm.Chat, llm.Responses, llm.Anthropic, llm.Gemini}; !slices.Contains(all, api) {
			r.failf("[model] apis", "want %q, have %q", all, api)
		}
	}
	if len(d.Install.NPM) > 0 && d.Install.Node == "" && d.Install.NodeBuild == "" {
		r.failf("[install]", "packages of npm need node, or node_build where the program runs without it: give its version")
	}
	r.paths(d)
	r.run(d)
	r.settings(d)
}

// paths refuses places that are none.
func (r *reader) paths(d *Definition) {
	for _, f := range d.Files {
		r.place("[[file]] path", f.Path)
	}
	if d.Skills != "" {
		r.place("[skills] dir", d.Skills)
	}
}

// run refuses what a run cannot use.
func (r *reader) run(d *Definition) {
	for _, v := range d.Run.Env {
		if !isVariable(v.Name) {
			r.failf("[run.env]", "want the name of a variable, have %q", v.Name)
		}
	}
	if d.Logs != "" && readers[d.Logs] == nil {
		r.failf("logs", "the logs of %q cannot be read; known are %s", d.Logs, strings.Join(slices.Sorted(maps.Keys(readers)), ", "))
	}
	for _, f := range d.Failures {
		if f.Pattern == nil || f.Type == "" {
			r.failf("[[failure]]", "want a pattern and a type")
		}
	}
}

// place refuses what is no path in a sandbox.
func (r *reader) place(at, name string) {
	rest, home := strings.CutPrefix(name, "~/")
	if !home && !path.IsAbs(name) || home && rest == "" || strings.ContainsRune(name, 0) {
		r.failf(at, `want an absolute path or one that begins with "~/", have %q`, name)
	}
}

// isVariable reports whether text can name a variable of a program.
func isVariable(text string) bool {
	return text != "" && (text[0] < '0' || text[0] > '9') && strings.Trim(strings.ToLower(text), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// settings refuses settings that cannot be given or are given twice.
func (r *reader) settings(d *Definition) {
	seen := slices.Clone(ownSettings)
	for i, s := range d.settings {
		at := fmt.Sprintf("[[setting]] %d", i+1)
		switch {
		case s.Name == "":
			r.failf(at, "name is missing")
		case slices.Contains(seen, s.Name):
			r.failf(at, "there is a setting %s already", s.Name)
		}
		seen = append(seen, s.Name)
		if err := s.Check(); err != nil {
			r.failf(at, "%v", err)
		}
	}
}

// isName reports whether text can name an agent.
func isName(text string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	return text != "" && strings.Trim(text, letters) == ""
}

// Source is the text of the file.
func (d *Definition) Source() string { return d.source }

// HowInstalled says in a few words how the program is installed.
func (d *Definition) HowInstalled() string {
	var parts []string
	if len(d.Install.NPM) > 0 {
		packages := strings.ReplaceAll(strings.Join(d.Install.NPM, ", "), "{{.Version}}", cmp.Or(d.Version, "VERSION"))
		parts = append(parts, "npm: "+packages)
	}
	if strings.TrimSpace(d.Install.Script) != "" {
		parts = append(parts, "a script")
	}
	if len(parts) == 0 {
		return "nothing: it must be in the image"
	}
	return strings.Join(parts, ", then ")
}
