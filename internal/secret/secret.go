// Package secret says which values of a job are secrets. docs/security.md, "Secrets",
// is its description.
package secret

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/harbor"
	"github.com/proctor-run/proctor/internal/redact"
	"github.com/proctor-run/proctor/jobdir"
	"github.com/proctor-run/proctor/schema"
	"github.com/proctor-run/proctor/value"
)

// Source is where secrets come from besides a configuration.
type Source struct {
	// Lookup finds variables of this machine's environment, for templates; nil is an
	// empty environment.
	Lookup harbor.Lookup
	// Environ is that environment, KEY=VALUE: what looks like a secret there counts,
	// for programs read it and errors name it.
	Environ []string
	// Names are those whose values are secrets, whatever they look like.
	Names []string
}

// OfProcess are the secrets of this process's environment.
func (s Source) OfProcess() []redact.Secret { return s.collect().list }

// OfTexts are the secrets in texts such as a command line, by their form.
func (s Source) OfTexts(texts []string) []redact.Secret {
	c := &collector{source: s}
	for _, text := range texts {
		c.within("argument", text)
	}
	return c.list
}

// OfJob are the secrets of a job's configuration and of the environment.
func (s Source) OfJob(cfg jobdir.Config) []redact.Secret {
	kept := []string{cfg.JobName}
	for _, a := range cfg.Agents {
		kept = append(kept, namesOf(a)...)
	}
	for _, t := range cfg.Tasks {
		kept = append(kept, t.BaseName())
	}
	c := s.collect(kept...)
	for _, a := range cfg.Agents {
		c.agent(a)
	}
	c.environment(cfg.Environment, cfg.Verifier)
	return c.list
}

// OfTrial are the secrets of a trial's configuration, of its task, which may be nil,
// and of the environment.
func (s Source) OfTrial(cfg jobdir.TrialConfig, task *harbor.Task) []redact.Secret {
	kept := append(namesOf(cfg.Agent), cfg.Task.BaseName(), cfg.TrialName)
	if task != nil {
		kept = append(kept, task.Name)
	}
	c := s.collect(kept...)
	c.agent(cfg.Agent)
	c.environment(cfg.Environment, cfg.Verifier)
	if task != nil {
		c.task(task)
	}
	return c.list
}

// collector collects secrets.
type collector struct {
	source Source
	list   []redact.Secret
	// kept are names that results are counted by, and that directories have: what is
	// part of one of them cannot be hidden.
	kept []string
}

func (s Source) collect(kept ...string) *collector {
	c := &collector{source: s, kept: kept}
	if c.source.Lookup == nil {
		c.source.Lookup = func(string) (string, bool) { return "", false }
	}
	for _, name := range s.Names {
		if text, ok := c.source.Lookup(name); ok {
			c.add(name, text)
		}
	}
	for _, kv := range s.Environ {
		name, text, _ := strings.Cut(kv, "=")
		if now, _ := c.source.Lookup(name); now == text && named(name) && !evident(text) {
			c.add(name, text)
		}
	}
	return c
}

// namesOf are the names by which results of an agent are counted.
func namesOf(a jobdir.AgentConfig) []string {
	var names []string
	for _, name := range []*string{a.Name, a.ModelName} {
		if name != nil {
			names = append(names, *name)
		}
	}
	return names
}

// add takes a secret. Names tell them apart: of several values with one name the later
// ones are numbered.
func (c *collector) add(name, text string) {
	if len(text) < redact.MinLength || c.partOfName(text) || slices.ContainsFunc(c.list, func(s redact.Secret) bool { return s.Value == text }) {
		return
	}
	free := name
	for n := 2; slices.ContainsFunc(c.list, func(s redact.Secret) bool { return s.Name == free }); n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	c.list = append(c.list, redact.Secret{Name: free, Value: text})
}

func (c *collector) agent(a jobdir.AgentConfig) {
	c.env(a.Env.Map)
	c.object(a.Kwargs)
	for _, s := range a.MCPServers {
		c.server(s)
	}
}

func (c *collector) environment(e jobdir.EnvironmentConfig, v jobdir.VerifierConfig) {
	c.env(e.Env.Map)
	c.object(e.Kwargs)
	c.env(v.Env.Map)
	c.object(v.Kwargs)
}

func (c *collector) task(t *harbor.Task) {
	cfg := &t.Config
	for _, env := range []harbor.Env{cfg.Environment.Env, cfg.Verifier.Env, cfg.Solution.Env} {
		c.taskEnv(env)
	}
	if cfg.Verifier.Environment != nil {
		c.taskEnv(cfg.Verifier.Environment.Env)
	}
	for i := range cfg.Steps {
		c.taskEnv(cfg.Steps[i].Verifier.Env)
		if own := cfg.Steps[i].Verifier.Environment; own != nil {
			c.taskEnv(own.Env)
		}
	}
	for _, s := range cfg.Environment.MCPServers {
		c.server(s)
	}
}

// taskEnv is env for a task's files, which are public: a single word there, such as
// the password "postgres", is text.
func (c *collector) taskEnv(env harbor.Env) {
	for name, text := range env.All() {
		if !word.MatchString(text) || slices.Contains(c.source.Names, name) {
			c.variable(name, text)
		}
	}
}

var word = regexp.MustCompile(`^[A-Za-z]+\z`)

func (c *collector) env(env harbor.Env) {
	for name, text := range env.All() {
		c.variable(name, text)
	}
}

func (c *collector) variable(name, text string) {
	t, ok := harbor.ParseTemplate(text)
	if !ok {
		c.literal(name, text)
		return
	}
	resolved, set := c.source.Lookup(t.Name)
	switch {
	case !set:
		c.literal(name, t.Default)
	case slices.Contains(c.source.Names, name), named(name) && !evident(resolved):
		c.add(t.Name, resolved)
	case plain(t.Name) || plain(name) || evident(resolved):
		c.within(t.Name, resolved)
	default:
		c.add(t.Name, resolved)
	}
}

// mask is what Harbor's redaction leaves of a value.
const mask = "****"

// Masked tells a value that Harbor's redaction left of one (Harbor job format, section
// 1.8).
func Masked(name, text string) bool {
	return schema.Sensitive(name) && strings.Contains(text, mask) && harbor.RedactEnv(name, text, nil) == text
}

// partOfName reports whether a text is part of what results are counted by.
func (c *collector) partOfName(text string) bool {
	return slices.ContainsFunc(c.kept, func(name string) bool { return strings.Contains(name, text) })
}

func (c *collector) literal(name, text string) {
	if Masked(name, text) || len(redact.Marked(text)) > 0 {
		return // the value is not known
	}
	if slices.Contains(c.source.Names, name) || named(name) && !evident(text) {
		c.add(name, text)
		return
	}
	c.within(name, text)
}

// object takes settings, also those in tables and lists.
func (c *collector) object(o *value.Object) {
	if o == nil {
		return
	}
	for name, v := range o.All() {
		c.setting(name, v)
	}
}

func (c *collector) setting(name string, v value.Value) {
	switch v := v.(type) {
	case value.Str:
		c.variable(name, string(v))
	case value.List:
		for _, item := range v {
			c.setting(name, item)
		}
	case *value.Object:
		c.object(v)
	}
}

func (c *collector) server(s harbor.MCPServer) {
	for _, text := range append([]*string{s.URL, s.Command}, pointers(s.Args)...) {
		if text != nil {
			c.variable(s.Name, *text)
		}
	}
}

func pointers(list []string) []*string {
	out := make([]*string, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// Credentials are known by their first characters.
var known = regexp.MustCompile(`^(sk-|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|hf_|eyJ[\w-]+\.[\w-]+\.)[\w.=+/-]+\z`)

// Parts of texts that are secrets: what follows a scheme of HTTP or an assignment, the
// password of a URL, keys in PEM, and words that begin like credentials.
var (
	scheme     = regexp.MustCompile(`(?i)\b(?:bearer|basic|token)[ +]+([\w.~+/=-]{8,})`)
	assignment = regexp.MustCompile(`([A-Za-z][\w-]*)["']?\s*[=:]\s*["']?([^\s"'&;,]{8,})`)
	userinfo   = regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s/:@"']*:([^\s/@"']{8,})@`)
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)`)
	words      = regexp.MustCompile(`[\w.=+/-]{16,}`)
	digit      = regexp.MustCompile(`[0-9A-Z]`)
)

// within takes what is a secret of a text that is none as a whole.
func (c *collector) within(name, text string) {
	if known.MatchString(text) {
		c.add(name, text)
		return
	}
	for _, m := range scheme.FindAllStringSubmatch(text, -1) {
		c.part(name, m[1])
	}
	for _, m := range userinfo.FindAllStringSubmatch(text, -1) {
		c.part(name, m[1])
	}
	for _, m := range assignment.FindAllStringSubmatch(text, -1) {
		if named(m[1]) && !evident(m[2]) && !strings.HasPrefix(m[2], "$") && !word.MatchString(m[2]) {
			c.part(m[1], m[2])
		}
	}
	for _, key := range privateKey.FindAllString(text, -1) {
		c.add(name, key)
	}
	for _, w := range words.FindAllString(text, -1) {
		if known.MatchString(w) && digit.MatchString(w) {
			c.add(name, w)
		}
	}
}

// part takes a part of a text, unless a shell puts something in its place.
func (c *collector) part(name, text string) {
	if !strings.ContainsAny(text, "$`{}") {
		c.add(name, text)
	}
}

// named reports whether a name looks like that of a secret, by the words of Harbor
// (Harbor job format, section 1.8), of outcome.md, section 13.4, and some more.
func named(name string) bool {
	upper := harmless.Replace(strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	switch upper {
	case "GPG_KEY", "PYTHON_SHA256", "PYTHON_GET_PIP_SHA256":
		return false
	}
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(upper, word) })
}

var secretWords = []string{"KEY", "SECRET", "TOKEN", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "BEARER", "COOKIE"}

// harmless takes words out of names that only begin like secret ones.
var harmless = strings.NewReplacer("AUTHORIZ", "AUTH", "AUTHOR", "", "TOKENIZ", "", "KEYBOARD", "", "KEYWORD", "", "MAX_TOKENS", "")

// plain reports whether a variable's name says that its value is no secret.
func plain(name string) bool {
	upper := strings.ToUpper(name)
	return slices.Contains(plainNames, upper) ||
		slices.ContainsFunc(plainWords, func(word string) bool { return strings.Contains(upper, word) })
}

var (
	plainNames = []string{"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "PWD", "OLDPWD", "SHELL", "TERM", "EDITOR", "DISPLAY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}
	plainWords = []string{"MODEL", "URL", "HOST", "PORT", "REGION", "DIR", "PATH", "VERSION", "LEVEL", "MODE", "FILE", "NAME", "PROVIDER", "ENDPOINT", "LC_"}
)

var number = regexp.MustCompile(`^[-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?\z`)

// evident reports whether a value is no secret whatever its name is: a number, which
// would be found among numbers, or the path of something that is there.
func evident(text string) bool {
	if number.MatchString(text) && len(text) < 12 {
		return true
	}
	if !filepath.IsAbs(text) {
		return false
	}
	_, err := os.Lstat(text)
	return err == nil
}
